//! One translation: what Redis or the connection to it said → what the caller should do next.

use crate::tls;
use redis::{ErrorKind, RedisError};
use semel::Error;
use semel_tls::is_out_of_time;
use std::time::Duration;

const NO_RIGHTS: &str =
    "does not let this user do what Semel does there (the crate's documentation lists it)";

/// What the server said instead of an answer, by what it means for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// It lacks a function: load the library and ask again.
    MissingFunction,
    /// It cannot take writes for a while; nothing was written.
    NotNow(&'static str),
    /// It takes none until somebody has fixed it; nothing was written.
    NotUntilFixed(&'static str),
    /// It does not let us; nothing was written.
    NotAllowed(&'static str),
    /// What is stored is not what we stored.
    Corrupt,
    /// It did not understand.
    Bug,
}

/// Whether the server lacks the function: nothing was done, and loading the library fixes it.
pub(crate) fn is_missing_function(error: &RedisError) -> bool {
    refusal(error) == Some(Refusal::MissingFunction)
}

/// Whether the connection is of no more use: broken, silent, or to a server that was demoted.
pub(crate) fn costs_the_connection(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::Parse)
        || matches!(error.code(), Some("READONLY" | "MASTERDOWN" | "NOAUTH"))
}

/// The error of a call. Everything that may heal by itself is `Unavailable`, what heals when somebody
/// fixes it is `Denied`; the calls are the same ones all the time, so none is `Invalid`.
pub(crate) fn error(error: &RedisError, address: &str, patience: Duration) -> Error {
    meaning(error, address, patience).caused_by(error.clone())
}

fn meaning(error: &RedisError, address: &str, patience: Duration) -> Error {
    let unavailable = |what: String| Error::unavailable(format!("Redis at {address} {what}"));
    match refusal(error) {
        Some(Refusal::MissingFunction) => unavailable(
            "has lost Semel's functions right after they were loaded; nothing was written, a repeat is safe".into(),
        ),
        Some(Refusal::NotNow(what)) => {
            unavailable(format!("{what}; nothing was written, a repeat is safe"))
        }
        Some(Refusal::NotUntilFixed(what) | Refusal::NotAllowed(what)) => Error::denied(format!(
            "Redis at {address} {what} ({}); nothing was written, a repeat is safe",
            said(error)
        )),
        Some(Refusal::Corrupt) => Error::corrupt(format!(
            "Redis at {address} keeps something else where a record should be: {}; stop and look who else \
             writes under this prefix; a retry fails again",
            said(error)
        )),
        Some(Refusal::Bug) => Error::bug(format!("Redis at {address} did not understand: {}", said(error))),
        None if error.is_timeout() => unavailable(format!(
            "did not answer within {patience:?}; whether the write was made is unknown, a \
             repeat is safe"
        )),
        None => unavailable(format!(
            "broke the connection ({error}); whether the write was made is unknown, a repeat is safe"
        )),
    }
}

/// The error of a connection that could not be made.
pub(crate) fn error_at_dial(problem: &RedisError, address: &str) -> Error {
    if let Some(what) = tls::lasting_failure(problem) {
        return Error::denied(format!(
            "Redis at {address}: {what}; nothing was sent, a repeat is safe and fails until that is done"
        ))
        .caused_by(problem.clone());
    }
    let meaning = match forbids(problem) {
        Some(what) => Error::denied(format!(
            "Redis at {address} {what} ({}); nothing was sent, a repeat is safe",
            said(problem)
        )),
        None => Error::unavailable(format!(
            "Redis at {address} cannot be reached ({problem}); nothing was sent, a repeat is safe"
        )),
    };
    meaning.caused_by(problem.clone())
}

/// The error of a start: what is wrong in the settings is `Invalid`.
pub(crate) fn error_at_start(problem: &RedisError, address: &str, patience: Duration) -> Error {
    if let Some(refused) = forbids(problem) {
        return Error::invalid(format!(
            "Redis at {address} {refused} ({}); fix that before you retry",
            said(problem)
        ))
        .caused_by(problem.clone());
    }
    if refusal(problem).is_none() {
        return match error_at_dial(problem, address) {
            Error::Denied(why) if is_out_of_time(problem) => Error::Unavailable(why),
            Error::Denied(why) => Error::Invalid(why),
            other @ (Error::Unavailable(_)
            | Error::Invalid(_)
            | Error::Corrupt(_)
            | Error::Bug(_)) => other,
        };
    }
    match error(problem, address, patience) {
        Error::Denied(why) => Error::Unavailable(why),
        other @ (Error::Unavailable(_) | Error::Invalid(_) | Error::Corrupt(_) | Error::Bug(_)) => {
            other
        }
    }
}

/// What the server does not let this user do, if that is it.
fn forbids(problem: &RedisError) -> Option<&'static str> {
    const WHO: &str = "does not accept the user or password";
    if problem.to_string().contains("refused to switch database") {
        return Some("has no database of the number that the URL ends with");
    }
    if problem.kind() == ErrorKind::AuthenticationFailed {
        return Some(WHO);
    }
    match refusal(problem)? {
        Refusal::NotAllowed(what) => Some(what),
        Refusal::MissingFunction
        | Refusal::NotNow(_)
        | Refusal::NotUntilFixed(_)
        | Refusal::Corrupt
        | Refusal::Bug => None,
    }
}

/// The server's own words.
fn said(error: &RedisError) -> String {
    let code = error.code().unwrap_or("ERR");
    format!("{code} {}", error.detail().unwrap_or_default())
}

/// What the server refused; `None` when it was not the server that spoke.
fn refusal(error: &RedisError) -> Option<Refusal> {
    let text = error.detail().unwrap_or_default();
    Some(match error.code()? {
        "ERR" if text.starts_with("Function not found") => Refusal::MissingFunction,
        "ERR" if text.starts_with("The user executing the script") => {
            Refusal::NotAllowed(NO_RIGHTS)
        }
        "CORRUPT" | "WRONGTYPE" => Refusal::Corrupt,
        "LOADING" => Refusal::NotNow("is still loading its data"),
        "READONLY" => {
            Refusal::NotUntilFixed("is a read-only replica; it may just have lost a failover")
        }
        "MASTERDOWN" => Refusal::NotNow("is a replica without its master"),
        "NOREPLICAS" => Refusal::NotNow("has fewer replicas than its min-replicas-to-write"),
        "OOM" => Refusal::NotUntilFixed(
            "is out of memory and takes nothing new: raise maxmemory or shorten the retention",
        ),
        "MISCONF" => Refusal::NotUntilFixed("cannot write to its disk"),
        "BUSY" => Refusal::NotNow("is busy with somebody's long script"),
        "CLUSTERDOWN" | "TRYAGAIN" => Refusal::NotNow("belongs to a cluster that is not ready"),
        "MOVED" | "ASK" | "CROSSSLOT" => Refusal::NotUntilFixed(
            "belongs to a cluster of several masters, which this store does not route to",
        ),
        "NOPERM" => Refusal::NotAllowed(NO_RIGHTS),
        "NOAUTH" | "WRONGPASS" => Refusal::NotAllowed("does not accept the user or password"),
        _ => Refusal::Bug,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(2);

    fn said_by_server(code: &str, detail: &str) -> RedisError {
        redis::make_extension_error(code.into(), Some(detail.into()))
    }

    #[test]
    fn what_heals_by_itself_is_unavailable() {
        for code in [
            "LOADING",
            "MASTERDOWN",
            "BUSY",
            "CLUSTERDOWN",
            "TRYAGAIN",
            "NOREPLICAS",
        ] {
            let error = error(&said_by_server(code, "x"), "h:1", PATIENCE);
            let Error::Unavailable(text) = error else {
                panic!("{code}: {error:?}")
            };
            assert!(text.contains("a repeat is safe"), "{text}");
        }
    }

    #[test]
    fn what_somebody_must_fix_is_denied() {
        for code in [
            "READONLY",
            "OOM",
            "MISCONF",
            "MOVED",
            "ASK",
            "NOPERM",
            "NOAUTH",
            "WRONGPASS",
        ] {
            let error = error(&said_by_server(code, "x"), "h:1", PATIENCE);
            let Error::Denied(text) = error else {
                panic!("{code}: {error:?}")
            };
            assert!(text.contains("a repeat is safe"), "{text}");
        }
        for code in ["WRONGPASS", "NOAUTH", "NOPERM"] {
            let error = error_at_dial(&said_by_server(code, "x"), "h:1");
            assert!(matches!(error, Error::Denied(_)), "{code}: {error:?}");
        }
    }

    #[test]
    fn what_is_stored_wrong_is_corrupt_and_what_we_said_wrong_is_a_bug() {
        for code in ["CORRUPT", "WRONGTYPE"] {
            let error = error(&said_by_server(code, "x"), "h:1", PATIENCE);
            assert!(matches!(error, Error::Corrupt(_)), "{error:?}");
        }
        let error = error(&said_by_server("ERR", "wrong number"), "h:1", PATIENCE);
        assert!(matches!(error, Error::Bug(_)), "{error:?}");
    }

    #[test]
    fn at_start_missing_rights_are_for_the_operator() {
        for (code, text) in [
            ("NOPERM", "x"),
            ("WRONGPASS", "x"),
            ("NOAUTH", "x"),
            (
                "ERR",
                "The user executing the script can't run this command or subcommand",
            ),
        ] {
            let error = error_at_start(&said_by_server(code, text), "h:1", PATIENCE);
            assert!(matches!(error, Error::Invalid(_)), "{error:?}");
        }
    }

    #[test]
    fn demoted_server_costs_the_connection_and_a_full_one_does_not() {
        assert!(costs_the_connection(&said_by_server("READONLY", "x")));
        assert!(!costs_the_connection(&said_by_server("OOM", "x")));
    }
}
