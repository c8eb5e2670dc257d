//! The values that a Bind message brings. Their types are not known here, so binary ones are read by their length.

/// Every value as a person would write it; none when the message is cut off or is not a Bind.
pub(super) fn bound(message: &[u8]) -> Option<Vec<String>> {
    let mut rest = message;
    skip_text(&mut rest)?;
    skip_text(&mut rest)?;
    let formats = take_count(&mut rest)?;
    let formats: Option<Vec<u16>> = (0..formats).map(|_| take_u16(&mut rest)).collect();
    let formats = formats?;
    let count = take_count(&mut rest)?;
    let mut values = Vec::new();
    for at in 0..count {
        // One format stands for all, none for text.
        let format = formats.get(at).or(formats.first()).copied();
        let binary = format == Some(1) && (formats.len() == 1 || at < formats.len());
        values.push(value(&mut rest, binary)?);
    }
    Some(values)
}

fn value(rest: &mut &[u8], binary: bool) -> Option<String> {
    let length = i32::from_be_bytes(take(rest, 4)?.try_into().ok()?);
    let Ok(length) = usize::try_from(length) else {
        return Some("NULL".to_owned());
    };
    let bytes = take(rest, length)?;
    Some(if binary {
        shown(bytes)
    } else {
        String::from_utf8_lossy(bytes).into_owned()
    })
}

/// A text where it is one, else a number or a UUID by its length, else its bytes.
fn shown(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).ok();
    let text = text.filter(|text| !text.is_empty() && !text.contains(char::is_control));
    if let Some(text) = text {
        return text.to_owned();
    }
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if let Ok(eight) = bytes.try_into() {
        return i64::from_be_bytes(eight).to_string();
    }
    if let Ok(four) = bytes.try_into() {
        return i32::from_be_bytes(four).to_string();
    }
    if let Ok(two) = bytes.try_into() {
        return i16::from_be_bytes(two).to_string();
    }
    if bytes.len() == 16 {
        let part = |from, to| hex.get(from..to).unwrap_or_default();
        let parts = [
            part(0, 8),
            part(8, 12),
            part(12, 16),
            part(16, 20),
            part(20, 32),
        ];
        return parts.join("-");
    }
    format!("\\x{hex}")
}

fn skip_text(rest: &mut &[u8]) -> Option<()> {
    let end = rest.iter().position(|byte| *byte == 0)?;
    take(rest, end + 1).map(drop)
}

fn take_count(rest: &mut &[u8]) -> Option<usize> {
    take_u16(rest).map(usize::from)
}

fn take_u16(rest: &mut &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(take(rest, 2)?.try_into().ok()?))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(formats: &[u16], values: &[Option<&[u8]>]) -> Vec<u8> {
        let count = |number: usize| u16::try_from(number).unwrap().to_be_bytes();
        let mut message = b"portal\0name\0".to_vec();
        message.extend(count(formats.len()));
        message.extend(formats.iter().flat_map(|format| format.to_be_bytes()));
        message.extend(count(values.len()));
        for value in values {
            let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap());
            message.extend(length.to_be_bytes());
            message.extend(value.unwrap_or_default());
        }
        message
    }

    #[test]
    fn texts_numbers_and_ids_are_shown() {
        let texts = bind(&[], &[Some(b"a1"), None, Some(b"900")]);
        assert_eq!(bound(&texts).unwrap(), ["a1", "NULL", "900"]);
        let id = 0x1234_5678_9abc_def0_1234_5678_9abc_def0_u128.to_be_bytes();
        let binary = [Some(&b"a1"[..]), Some(&[0, 0, 3, 132]), Some(&id)];
        let shown = ["a1", "900", "12345678-9abc-def0-1234-56789abcdef0"];
        assert_eq!(bound(&bind(&[1], &binary)).unwrap(), shown);
        let mixed = bind(&[0, 1], &[Some(b"7"), Some(&7_i64.to_be_bytes())]);
        assert_eq!(bound(&mixed).unwrap(), ["7", "7"]);
    }

    #[test]
    fn message_that_is_cut_off_has_none() {
        let whole = bind(&[], &[Some(b"a1")]);
        for length in 0..whole.len() {
            assert_eq!(bound(&whole[..length]), None, "{length}");
        }
    }
}
