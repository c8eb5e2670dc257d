//! What went wrong, by what to do next.

use crate::tls;
use deadpool_postgres::PoolError;
use deadpool_postgres::TimeoutType;
use semel::Error;
use semel_tls::is_out_of_time;
use std::error::Error as StdError;
use std::fmt::Write;
use std::time::Duration;
use tokio_postgres::error::SqlState;

/// Why a statement did not answer.
#[derive(Debug)]
pub(crate) enum QueryError {
    /// A row was held by another transaction longer than we wait.
    Held,
    /// Two transactions got into each other's way: the same statement again.
    Again,
    /// Nothing the store can do about it.
    Failed(Error),
    /// The same, and the connection is of no more use.
    Broken(Error),
}

// === impl QueryError ===

impl QueryError {
    /// Reads what the driver says of a statement.
    pub(crate) fn of(error: tokio_postgres::Error, place: &str) -> Self {
        match Self::meaning(&error, place) {
            Self::Failed(meaning) => Self::Failed(meaning.caused_by(error)),
            Self::Broken(meaning) => Self::Broken(meaning.caused_by(error)),
            passing @ (Self::Held | Self::Again) => passing,
        }
    }

    fn meaning(error: &tokio_postgres::Error, place: &str) -> Self {
        let Some(code) = error.code() else {
            return Self::Broken(without_code(error, place));
        };
        let class = code.code().get(..2).unwrap_or_default();
        if *code == SqlState::LOCK_NOT_AVAILABLE {
            Self::Held
        } else if *code == SqlState::T_R_DEADLOCK_DETECTED
            || *code == SqlState::T_R_SERIALIZATION_FAILURE
        {
            Self::Again
        } else if speaks_of_a_pooler(error) {
            Self::Broken(denied(
                place,
                &words(error),
                "a pooler in transaction mode seems to be in between: set `pooler = true`",
            ))
        } else if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
            // Another connection may lead to the new primary.
            Self::Broken(denied(
                place,
                &words(error),
                "it is read-only: make it writable, or name the primary",
            ))
        } else if *code == SqlState::FEATURE_NOT_SUPPORTED {
            // A plan from before a migration.
            Self::Broken(unavailable(place, &words(error)))
        } else {
            Self::Failed(by_class(class, error, place))
        }
    }

    /// Reads what the driver says while a store is opened or migrated: what is wrong then is wrong in
    /// its settings, and nothing is lost by saying so.
    pub(crate) fn at_start(error: tokio_postgres::Error, place: &str) -> Error {
        let passes = [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::DISK_FULL];
        let meaning = match Self::meaning(&error, place).into() {
            Error::Denied(_) if error.code().is_some_and(|code| passes.contains(code)) => {
                unavailable(place, &words(&error))
            }
            Error::Denied(why) if is_out_of_time(&error) => Error::Unavailable(why),
            Error::Denied(why) => Error::Invalid(why),
            other @ (Error::Unavailable(_)
            | Error::Invalid(_)
            | Error::Corrupt(_)
            | Error::Bug(_)) => other,
        };
        meaning.caused_by(error)
    }

    /// Reads what the pool says of a connection that could not be had.
    pub(crate) fn of_pool(
        error: PoolError,
        place: &str,
        connect_timeout: Duration,
        wait_timeout: Duration,
    ) -> Self {
        let what = match &error {
            PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
                format!("connecting took longer than {connect_timeout:?}")
            }
            PoolError::Timeout(TimeoutType::Wait) => {
                format!(
                    "no connection came free within {wait_timeout:?}: all of this store's are in use"
                )
            }
            PoolError::Backend(driver) if driver.code().is_none() => {
                let meaning = without_code(driver, place);
                return Self::Failed(meaning.caused_by(error));
            }
            PoolError::Backend(_)
            | PoolError::Closed
            | PoolError::NoRuntimeSpecified
            | PoolError::PostCreateHook(_) => error.to_string(),
        };
        match error {
            PoolError::Backend(driver) => Self::of(driver, place),
            PoolError::Timeout(_)
            | PoolError::Closed
            | PoolError::NoRuntimeSpecified
            | PoolError::PostCreateHook(_) => {
                Self::Failed(unavailable(place, &what).caused_by(error))
            }
        }
    }

    /// Nothing came within the time a statement has.
    pub(crate) fn no_answer(place: &str, waited: Duration) -> Self {
        Self::Broken(unavailable(place, &format!("no answer within {waited:?}")))
    }
}

/// For callers that have nothing better to do about a held row or a conflict.
impl From<QueryError> for Error {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Held => held(),
            QueryError::Again => Self::unavailable(
                "PostgreSQL: other transactions were in the way; nothing was written, a retry is safe",
            ),
            QueryError::Failed(error) | QueryError::Broken(error) => error,
        }
    }
}

/// A record that stayed in another transaction's hands.
pub(crate) fn held() -> Error {
    Error::unavailable(
        "PostgreSQL: the record is held by another transaction, probably a handler's that has \
         called semel.complete and not committed yet; nothing was written, a retry is safe",
    )
}

/// What the server said, by whether the same statement can ever succeed. The statements are the same
/// ones all the time: what the server does not take of them, it takes once somebody has fixed it.
fn by_class(class: &str, error: &tokio_postgres::Error, place: &str) -> Error {
    let what = words(error);
    match class {
        "28" if what.contains("certificate") => denied(
            place,
            &what,
            "set sslcert and sslkey in the URL to a certificate of this user",
        ),
        "28" if what.contains("no encryption") => {
            denied(place, &what, "set sslmode=verify-full in the URL")
        }
        // Wrong user, password or database; a right that is missing; tables that are not there.
        "28" => denied(place, &what, "fix user and password of the URL"),
        "3D" => denied(place, &what, "create the database, or fix the URL"),
        "42" | "3F" if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            denied(place, &what, "grant the right to the user of the URL")
        }
        "42" | "3F" => denied(place, &what, "run `semel migrate`"),
        "53" if error.code() == Some(&SqlState::DISK_FULL) => {
            denied(place, &what, "make room on the server's disk")
        }
        "22" | "23" => Error::bug(format!("{place}: {what}; please report it")),
        "XX" => Error::corrupt(format!(
            "{place}: {what}; look at the server's log before you retry"
        )),
        _ => unavailable(place, &what),
    }
}

/// What went wrong before or beside the server's own words: mostly the way to it.
fn without_code(error: &tokio_postgres::Error, place: &str) -> Error {
    let what = words(error);
    if what.contains("password missing") {
        return denied(place, &what, "put the password into the URL");
    }
    if what.contains("channel binding") {
        let to_do = "connect with TLS (sslmode=verify-full), or leave channel_binding=require out";
        return denied(place, &what, to_do);
    }
    if let Some(what) = tls::lasting_failure(error) {
        return Error::denied(format!(
            "{place}: {what}; nothing was sent, a retry is safe and fails until that is done"
        ));
    }
    unavailable(place, &what)
}

fn speaks_of_a_pooler(error: &tokio_postgres::Error) -> bool {
    let text = || error.as_db_error().map(|e| e.message().to_owned());
    match error.code() {
        Some(code) if *code == SqlState::INVALID_SQL_STATEMENT_NAME => true,
        Some(code) if *code == SqlState::DUPLICATE_PSTATEMENT => true,
        Some(code) if *code == SqlState::PROTOCOL_VIOLATION => {
            let tells = ["prepared statement", "startup parameter"];
            text().is_some_and(|text| tells.iter().any(|tell| text.contains(tell)))
        }
        Some(_) | None => false,
    }
}

pub(crate) fn unavailable(place: &str, what: &str) -> Error {
    Error::unavailable(format!("{place}: {what}; a retry is safe"))
}

fn denied(place: &str, what: &str, to_do: &str) -> Error {
    Error::denied(format!("{place}: {what}; {to_do} before you retry"))
}

pub(crate) fn invalid(place: &str, what: &str, to_do: &str) -> Error {
    Error::invalid(format!("{place}: {what}; {to_do} before you retry"))
}

/// The error and its causes, in one line.
fn words(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return format!("{} ({})", said.message(), said.code().code());
    }
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(words, ": {error}").expect("a string takes every word");
        cause = error.source();
    }
    words
}
