//! Hundreds of ways to spell a path, judged by a reader that knows nothing of the gate's own.

use super::paths::Surrounded;

const INSERTED: &str = r##"
    / // . ./ ../ /./ /../ ; ;a=b %2f %2F %5c \ %2e %2e/ %2e%2e/ %00 %20 %09 %0d %3f %23 %3b %25
    %252f ? # %c0%af %e2%80%8b %ff % %u002f * ~
"##;

/// The most lenient handler: it decodes until nothing changes, ignores case, parameters and whatever is
/// strange at the end of a name, and walks dots and slashes of both kinds.
fn lenient(path: &str) -> String {
    let mut bytes = path.as_bytes().to_vec();
    loop {
        let once = decoded(&bytes);
        if once == bytes {
            break;
        }
        bytes = once;
    }
    let text = String::from_utf8_lossy(&bytes)
        .to_lowercase()
        .replace('\\', "/");
    let text = text.split(['?', '#', '\0']).next().unwrap();
    let mut walked: Vec<&str> = Vec::new();
    for segment in text.split('/') {
        let name = segment.split(';').next().unwrap().trim();
        match name {
            ".." => drop(walked.pop()),
            _ if name.trim_end_matches('.').is_empty() => {}
            _ => walked.push(name.trim_end_matches(['.', ' '])),
        }
    }
    format!("/{}", walked.join("/"))
}

fn decoded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some((&first, behind)) = rest.split_first() {
        let hex = behind
            .get(..2)
            .and_then(|two| std::str::from_utf8(two).ok());
        let byte = hex.and_then(|two| u8::from_str_radix(two, 16).ok());
        match byte {
            Some(byte) if first == b'%' && behind[0] != b'+' => {
                out.push(byte);
                rest = &behind[2..];
            }
            _ => {
                out.push(first);
                rest = behind;
            }
        }
    }
    out
}

/// All that one change makes of a path.
fn changed(path: &str) -> Vec<String> {
    let mut changed = Vec::new();
    for (at, c) in path.char_indices() {
        let (before, behind) = (&path[..at], &path[at + c.len_utf8()..]);
        for escape in [
            format!("%{:02x}", c as u32),
            format!("%{:02X}", c as u32),
            format!("%25{:02x}", c as u32),
            c.to_ascii_uppercase().to_string(),
        ] {
            changed.push(format!("{before}{escape}{behind}"));
        }
    }
    for at in 0..=path.len() {
        let (before, behind) = path.split_at(at);
        let inserted = INSERTED.split_whitespace();
        changed.extend(inserted.map(|new| format!("{before}{new}{behind}")));
    }
    changed
}

#[test]
fn the_lenient_handler_is_lenient() {
    let alike = "/charge /CHARGE/ /x/..;/charge /%2563harge /./charge. //charge;a /charge%00x /x%2f..%5ccharge%20";
    for path in alike.split_whitespace() {
        assert_eq!(lenient(path), "/charge", "{path}");
    }
    assert_eq!(lenient("/charges"), "/charges");
}

#[tokio::test]
async fn what_any_handler_could_take_for_a_protected_path_is_never_passed() {
    let gate = Surrounded::new().await;
    let mut passed = 0;
    for spelling in changed("/charge")
        .into_iter()
        .chain(changed("/x/../charge"))
    {
        let (reply, seen) = gate.post(spelling.as_bytes()).await;
        let Some(seen) = seen else {
            assert!(reply.starts_with("HTTP/1.1 4"), "{spelling}: {reply}");
            continue;
        };
        let path = seen.path.split('?').next().unwrap();
        if seen.header("semel-key").is_some() {
            assert_eq!(path, "/charge", "{spelling}");
        } else {
            assert_ne!(lenient(path), "/charge", "{spelling} was passed as {path}");
            passed += 1;
        }
    }
    assert!(passed > 10, "only {passed} were passed");
}
