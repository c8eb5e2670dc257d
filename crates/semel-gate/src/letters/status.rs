//! How a letter stands: derived from the record of its work by whoever looks, never written where keys
//! settle. So it also covers other gates, operators and handlers that complete by themselves.

use super::latest_run::LatestRun;
use semel::clock::Time;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Standing};
use semel::protocol::{Fence, Record};
use semel::store::{Letters, StoreExt};
use semel::{Error, Key};

/// How a letter stands, and by the record of which key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LetterStatus {
    pub(crate) standing: Standing,
    pub(crate) key: Key,
    /// The fence of the record that was looked at, if there is one.
    pub(crate) fence: Option<Fence>,
    /// Running: the end of its lease. Waiting: when it is due. Otherwise when it got there.
    pub(crate) due_at: Option<Time>,
    /// Its latest run, if a record tells of it.
    run: Option<LatestRun>,
}

/// What a look at one letter among many found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observed {
    Status(LetterStatus),
    /// The record of its work cannot be read, so nothing is known of it; the letter is open.
    Damaged,
}

/// The sentence where a record cannot be read.
const UNREADABLE: &str = "its record cannot be read";

/// Looks at the record of a letter's work; a letter whose work has succeeded is closed.
pub(crate) async fn look(letters: &dyn Letters, head: &LetterHead) -> Result<LetterStatus, Error> {
    let stands = observe(letters, head).await?;
    settle(letters, &head.id, stands).await
}

/// The same, for whoever looks at many: one record that cannot be read does not hide the others.
///
/// # Errors
/// `Unavailable` and `Denied`, which are about the store and not about this record.
pub(crate) async fn see(letters: &dyn Letters, head: &LetterHead) -> Result<Observed, Error> {
    seen(head, look(letters, head).await)
}

/// Describes the end of the latest run of a letter's work. Nothing is changed by asking.
///
/// # Errors
/// The same.
pub(crate) async fn latest_run(letters: &dyn Letters, head: &LetterHead) -> Result<String, Error> {
    Ok(seen(head, observe(letters, head).await)?.says())
}

async fn observe(letters: &dyn Letters, head: &LetterHead) -> Result<LetterStatus, Error> {
    let record = letters.look(&head.work_key()).await?;
    let standing = head.standing(record.as_ref());
    let stands = LetterStatus::of(standing, head.work_key(), record.as_ref());
    match stands.standing {
        Standing::Succeeded => Ok(stands),
        Standing::Unfinished(_) | Standing::NotRun | Standing::Unknown => {
            Ok(under_taken(letters, head).await?.unwrap_or(stands))
        }
    }
}

fn seen(head: &LetterHead, looked: Result<LetterStatus, Error>) -> Result<Observed, Error> {
    match looked {
        Ok(stands) => Ok(Observed::Status(stands)),
        Err(error @ (Error::Unavailable(_) | Error::Denied(_))) => Err(error),
        Err(error @ (Error::Corrupt(_) | Error::Invalid(_) | Error::Bug(_))) => {
            tracing::error!(
                letter = %head.id, key = %head.work_key(), %error,
                "the record of a letter's work cannot be read; the letter stays open"
            );
            Ok(Observed::Damaged)
        }
    }
}

/// The same for a whole letter.
pub(crate) async fn look_at(letters: &dyn Letters, letter: &Letter) -> Result<LetterStatus, Error> {
    look(letters, &letter.head(Time(0))).await
}

/// How a mismatched letter stands by its own work under the delivery's key: a duplicate ran there once
/// the other work's record was gone.
pub(crate) async fn under_taken(
    letters: &dyn Letters,
    head: &LetterHead,
) -> Result<Option<LetterStatus>, Error> {
    let Some(key) = head.taken_key() else {
        return Ok(None);
    };
    let record = letters.look(&key).await?;
    let standing = head.standing_under_taken(record.as_ref());
    Ok(standing.map(|standing| LetterStatus::of(standing, key, record.as_ref())))
}

async fn settle(
    letters: &dyn Letters,
    id: &LetterId,
    stands: LetterStatus,
) -> Result<LetterStatus, Error> {
    match stands.standing {
        Standing::Succeeded => {}
        Standing::Unfinished(_) | Standing::NotRun | Standing::Unknown => return Ok(stands),
    }
    match letters.mark(id, Mark::Closed).await? {
        Marked::Applied => {
            tracing::info!(letter = %id, key = %stands.key, "a letter is closed: its work has succeeded");
        }
        // Somebody else was first.
        Marked::Gone => {}
    }
    Ok(stands)
}

// === impl LetterStatus ===

impl LetterStatus {
    fn of(standing: Standing, key: Key, record: Option<&Record>) -> Self {
        // A record of other work under the key tells nothing of this letter's.
        let is_own = match standing {
            Standing::Succeeded | Standing::Unfinished(_) => true,
            Standing::NotRun | Standing::Unknown => false,
        };
        Self {
            standing,
            key,
            fence: record.map(|record| record.fence),
            due_at: record.map(|record| record.lease_until),
            run: record.filter(|_| is_own).map(LatestRun::of),
        }
    }
}

// === impl Observed ===

impl Observed {
    /// Describes the end of the latest run of the letter's work.
    pub(crate) fn says(self) -> String {
        match self {
            Self::Damaged => UNREADABLE.into(),
            Self::Status(stands) => match (stands.run, stands.standing) {
                (Some(run), _) => run.says(),
                (None, Standing::NotRun) => "no run has begun".into(),
                (None, Standing::Unknown | Standing::Unfinished(_) | Standing::Succeeded) => {
                    "no record of a run: it has expired or was forgotten, or no run was begun"
                        .into()
                }
            },
        }
    }

    /// The status of that run, if it is recorded.
    pub(crate) fn status(self) -> Option<u16> {
        match self {
            Self::Damaged => None,
            Self::Status(stands) => stands.run?.status(),
        }
    }
}
