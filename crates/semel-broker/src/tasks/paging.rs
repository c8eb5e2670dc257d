//! Lists in pages: a page's last name, wrapped so that only we read it.

use super::errors::invalid;
use crate::clock::Time;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::time::Duration;
use tonic::Status;

/// How long a page's token can be used.
const TOKEN_LIFE: Duration = Duration::from_secs(2 * 3600);

/// Where the next page begins: after this name.
pub(super) fn token(list: &str, last: &str, now: Time) -> String {
    let end = now.plus(TOKEN_LIFE).0;
    URL_SAFE_NO_PAD.encode(format!("{list}\n{end}\n{last}"))
}

/// The name after which a page begins; nothing for the first page.
pub(super) fn after(token: &str, list: &str, now: Time) -> Result<Option<String>, Status> {
    if token.is_empty() {
        return Ok(None);
    }
    let after = read(token, list, now);
    after.map(Some).ok_or_else(|| invalid("Invalid page_token"))
}

fn read(token: &str, list: &str, now: Time) -> Option<String> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let rest = text.strip_prefix(list)?.strip_prefix('\n')?;
    let (end, last) = rest.split_once('\n')?;
    let end: i64 = end.parse().ok()?;
    (end > now.0).then(|| last.to_owned())
}

/// How many to show: all that fit on a page unless fewer are wanted.
pub(super) fn size(wanted: i32, max: usize, request: &str) -> Result<usize, Status> {
    match usize::try_from(wanted) {
        Ok(0) => Ok(max),
        Ok(wanted) => Ok(wanted.min(max)),
        Err(_) => Err(invalid(format!("{request}.pageSize cannot be negative."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_only_where_and_while_it_is_good() {
        let token = token("tasks of q", "last\nname", Time(0));
        let read = |list, now| after(&token, list, now);
        assert_eq!(
            read("tasks of q", Time(1)).unwrap().as_deref(),
            Some("last\nname")
        );
        assert!(read("tasks of r", Time(1)).is_err());
        assert!(read("tasks of q", Time(0).plus(TOKEN_LIFE)).is_err());
        assert_eq!(
            after("bogus", "l", Time(0)).unwrap_err().message(),
            "Invalid page_token"
        );
        assert_eq!(after("", "l", Time(0)).unwrap(), None);
    }
}
