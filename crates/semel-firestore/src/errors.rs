//! What Firestore's refusals mean: whether the turn is made again, and what the caller is told if not. The words have all
//! that a status says, so it is not named as a cause beside them.

use crate::channel::{Place, REMEDIES};
use crate::client::Call;
use semel::Error;
use std::error::Error as StdError;
use tonic::{Code, Status};

/// What follows from a refusal.
#[derive(Debug)]
pub(crate) enum Next {
    /// Another has made the document first, or our own earlier try has: look again at once.
    AtOnce,
    /// Contention, or nobody knows: look again after a pause.
    AfterPause,
    /// The version that the condition named is newer than the document. Once it may be a server that was restored.
    VersionUnknown,
    /// The token is not accepted. Once it may be an old one.
    TokenRefused,
    /// Nothing to try again.
    Stop(Error),
}

/// What is known of the tries before the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// Nothing was written by them.
    Nothing,
    /// One of them may have been made, or was, and not all that goes with it.
    Unknown,
}

pub(crate) fn judge(call: Call, status: &Status, place: &Place) -> Next {
    if let Some(error) = lasting_tls_failure(status, place) {
        return Next::Stop(error);
    }
    match (status.code(), call) {
        (Code::AlreadyExists, Call::Commit) => Next::AtOnce,
        (Code::Aborted | Code::ResourceExhausted, _)
        | (
            Code::Unavailable
            | Code::DeadlineExceeded
            | Code::Cancelled
            | Code::Internal
            | Code::Unknown,
            _,
        ) => Next::AfterPause,
        (Code::InvalidArgument, Call::Commit) if !is_about_size(status) => Next::VersionUnknown,
        (Code::Unauthenticated, _) => Next::TokenRefused,
        (
            Code::Ok
            | Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::DataLoss,
            _,
        ) => Next::Stop(refusal(status, place)),
    }
}

/// What TLS says of a connection that cannot be made, if that stays so until somebody changes something.
fn lasting_tls_failure(status: &Status, place: &Place) -> Option<Error> {
    let failure = semel_tls::find(status).filter(|it| !semel_tls::is_out_of_time(*it))?;
    let what = semel_tls::explain(failure, place.host(), REMEDIES);
    let told =
        format!("{place}: {what}; nothing was sent, a retry is safe and fails until that is done");
    Some(Error::denied(told))
}

/// What the caller is told of a refusal that no other turn can heal.
pub(crate) fn refusal(status: &Status, place: &Place) -> Error {
    let said = said(status, place);
    let denied = |what: &str| {
        Error::denied(format!(
            "{place}: {what} ({said}); nothing was written, a retry is safe and succeeds once that is done"
        ))
    };
    let Place {
        project, database, ..
    } = place;
    match status.code() {
        Code::NotFound => denied(&format!(
            "there is no such database: create it with `gcloud firestore databases create --database='{database}' \
             --project={project} --location=…`, or name another in the URL"
        )),
        Code::FailedPrecondition if said.contains("Datastore Mode") => denied(
            "it is in Datastore mode, where this store cannot keep records: name a database in Native mode",
        ),
        Code::FailedPrecondition => denied("it does not take the call until that is fixed"),
        Code::PermissionDenied if is_about_project(&said) => denied(&format!(
            "there is no project with the id {project}, or it does not allow the Firestore API: an alias of .firebaserc or \
             a display name is not an id, `gcloud projects list` shows it; `gcloud services enable \
             firestore.googleapis.com --project={project}` allows the API"
        )),
        Code::PermissionDenied => denied(
            "this account may not read and write documents: give it the role roles/datastore.user",
        ),
        Code::Unauthenticated => denied("it does not accept our token: look at the credentials"),
        Code::InvalidArgument if is_about_size(status) => Error::invalid(format!(
            "{place}: a document is over its limit of 1 MiB, or all that is written at once is over that of a request ({said}); nothing was written, keep less of it before you retry"
        )),
        Code::InvalidArgument => Error::bug(format!("{place} does not understand us: {said}")),
        Code::Unimplemented => denied("what answers there is no Firestore: look at the address"),
        Code::DataLoss => Error::corrupt(format!("{place} lost data: {said}; stop and look")),
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::AlreadyExists
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::OutOfRange
        | Code::Internal
        | Code::Unavailable => Error::unavailable(format!(
            "{place} said: {said}; whether the write was made is unknown, a retry is safe"
        )),
    }
}

/// What the caller is told when nobody can say what became of a write.
pub(crate) fn unknown(place: &Place) -> Error {
    Error::unavailable(format!(
        "{place} did not say what became of a write, and somebody has changed the same document since: whether it was made is \
         unknown; look at the document before you repeat the call"
    ))
}

/// What the caller is told when the time is over.
pub(crate) fn out_of_time(
    last: Option<&Status>,
    place: &Place,
    timeout: std::time::Duration,
    earlier: Earlier,
) -> Error {
    let Some(status) = last else {
        return Error::unavailable(format!(
            "{place} did not come to an end within {timeout:?}; whether the write was made is unknown, a retry is safe"
        ));
    };
    let said = said(status, place);
    let what = match (status.code(), &place.emulator) {
        (Code::Unavailable, Some(_)) if is_unreachable(status) => {
            format!(
                "is not there ({said}): start it, or unset FIRESTORE_EMULATOR_HOST; a retry is safe"
            )
        }
        (Code::Unavailable, None) if is_unreachable(status) => {
            format!("cannot be reached ({said}); a retry is safe")
        }
        (Code::Aborted, _) => format!(
            "is locked by somebody's transaction ({said}): one that was killed leaves its locks for up to 60 s; {}, a retry is \
             safe",
            earlier.fate()
        ),
        (Code::ResourceExhausted, _) => format!(
            "takes no more calls for now ({said}): look at its quotas; {}, a retry is safe",
            earlier.fate()
        ),
        _ => format!(
            "gave no answer within {timeout:?} ({said}); whether the write was made is unknown, a retry is safe"
        ),
    };
    Error::unavailable(format!("{place} {what}"))
}

// === impl Earlier ===

impl Earlier {
    /// What the caller is told of the last try, with what is known of those before it.
    pub(crate) fn told(self, error: Error) -> Error {
        match (self, error) {
            (Self::Unknown, Error::Denied(why) | Error::Invalid(why)) => {
                Error::unavailable(format!(
                    "{}; {}, a retry is safe",
                    why.replace("nothing was written", "this try wrote nothing"),
                    self.fate()
                ))
            }
            (_, error) => error,
        }
    }

    const fn fate(self) -> &'static str {
        match self {
            Self::Nothing => "nothing was written",
            Self::Unknown => "whether an earlier try was written is unknown",
        }
    }
}

/// Whether no connection could be made.
fn is_unreachable(status: &Status) -> bool {
    status.source().is_some()
}

/// Its own words, or the innermost reason of a connection that broke.
fn said(status: &Status, place: &Place) -> String {
    if let Some(failure) = semel_tls::find(status) {
        return semel_tls::explain(failure, place.host(), REMEDIES);
    }
    let mut innermost: Option<&dyn StdError> = status.source();
    while let Some(deeper) = innermost.and_then(|it| it.source()) {
        innermost = Some(deeper);
    }
    match innermost {
        Some(reason) => reason.to_string(),
        None if status.message().is_empty() => format!("{:?}", status.code()),
        None => status.message().to_owned(),
    }
}

fn is_about_size(status: &Status) -> bool {
    let said = status.message();
    [
        "maximum size",
        "maximum entity size",
        "exceeds the maximum",
        "longer than",
        "too large",
        "payload size exceeds",
        "Transaction too big",
    ]
    .iter()
    .any(|words| said.contains(words))
}

fn is_about_project(said: &str) -> bool {
    [
        "resource project",
        "has not been used in project",
        "CONSUMER_INVALID",
    ]
    .iter()
    .any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place {
            project: "shop-prod".into(),
            database: "(default)".into(),
            emulator: None,
            endpoint: None,
        }
    }

    fn told(call: Call, code: Code, said: &str) -> Error {
        let next = judge(call, &Status::new(code, said), &place());
        let Next::Stop(error) = next else {
            panic!("{code:?}: {next:?}");
        };
        error
    }

    /// Google's words, as its documentation and its servers have them.
    #[test]
    fn refusals_say_what_to_do() {
        for (code, said, does) in [
            (
                Code::FailedPrecondition,
                "The Cloud Firestore API is not available for Firestore in Datastore Mode database \
                 projects/shop-prod/databases/(default).",
                "Native mode",
            ),
            (
                Code::NotFound,
                "The database (default) does not exist for project shop-prod",
                "gcloud firestore databases create",
            ),
            (
                Code::PermissionDenied,
                "Missing or insufficient permissions.",
                "roles/datastore.user",
            ),
            (
                Code::PermissionDenied,
                "Permission denied on resource project shop-prod.",
                "an alias of .firebaserc",
            ),
            (
                Code::PermissionDenied,
                "Cloud Firestore API has not been used in project shop-prod before or it is disabled.",
                "gcloud services enable",
            ),
        ] {
            let error = told(Call::Read, code, said);
            assert!(matches!(error, Error::Denied(_)), "{error}");
            let text = error.to_string();
            assert!(text.contains(does) && text.contains(said), "{text}");
            assert!(text.contains("a retry is safe"), "{text}");
        }
    }

    #[test]
    fn what_is_over_a_limit_is_the_callers_to_fix() {
        for said in [
            "Document 'x' cannot be written because its size (1,048,960 bytes) exceeds the maximum allowed size of \
             1,048,576 bytes.",
            "Request payload size exceeds the limit: 11534336 bytes.",
            "Transaction too big. Decrease transaction size.",
        ] {
            let error = told(Call::Commit, Code::InvalidArgument, said);
            assert!(matches!(error, Error::Invalid(_)), "{error}");
            assert!(error.to_string().contains("1 MiB"), "{error}");
        }
    }

    #[test]
    fn nothing_was_written_is_said_only_where_that_is_known() {
        let said = "Missing or insufficient permissions.";
        let error = told(Call::Commit, Code::PermissionDenied, said);
        assert_eq!(Earlier::Nothing.told(error.clone()), error);
        let error = Earlier::Unknown.told(error);
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        let text = error.to_string();
        assert!(!text.contains("nothing was written"), "{text}");
        for part in [said, "whether an earlier try was written is unknown"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn failed_condition_is_looked_at_again_at_once_and_the_unknown_after_a_pause() {
        let next = |call, code| judge(call, &Status::new(code, "x"), &place());
        assert!(matches!(
            next(Call::Commit, Code::AlreadyExists),
            Next::AtOnce
        ));
        for code in [
            Code::AlreadyExists,
            Code::FailedPrecondition,
            Code::NotFound,
        ] {
            assert!(matches!(next(Call::Read, code), Next::Stop(_)));
        }
        for code in [
            Code::Aborted,
            Code::Unavailable,
            Code::Cancelled,
            Code::Internal,
        ] {
            assert!(matches!(next(Call::Commit, code), Next::AfterPause));
        }
        let version = next(Call::Commit, Code::InvalidArgument);
        assert!(matches!(version, Next::VersionUnknown));
    }
}
