//! The turns of one operation: each reads, decides and commits; what came to nothing is made again until time is over.

use crate::client::{Client, Conditions, Failure, is_silence};
use crate::errors::{self, Earlier, Next};
use crate::parts::Kept;
use semel::Error;
use semel::protocol::Owner;
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;

const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// How much longer an operation may take for each part that it writes or reads.
const PART_WITHIN: Duration = Duration::from_secs(1);

/// How often bytes may be found replaced while they are read before something else must be wrong.
const TORN_MAX: u32 = 5;

/// The turns of one operation.
#[derive(Debug)]
pub(crate) struct Turns<'a> {
    client: &'a Client,
    timeout: Duration,
    deadline: Instant,
    pause: Duration,
    torn: u32,
    version_refused: bool,
    /// What the last commit was made on that was refused for that.
    unmet: Option<Conditions>,
    token_refused: bool,
    /// What tells most of what was heard.
    last: Option<Status>,
    /// Why there was no token, where that was the last thing that failed.
    no_token: Option<Error>,
    earlier: Earlier,
    /// What is kept in parts so far.
    pub(crate) kept: Option<Kept>,
    /// For how many parts there is time.
    allowed: u32,
}

// === impl Turns ===

impl<'a> Turns<'a> {
    pub(crate) fn new(client: &'a Client, timeout: Duration) -> Self {
        Self {
            client,
            timeout,
            deadline: Instant::now() + timeout,
            pause: PAUSE_MIN,
            torn: 0,
            version_refused: false,
            unmet: None,
            token_refused: false,
            last: None,
            no_token: None,
            earlier: Earlier::Nothing,
            kept: None,
            allowed: 0,
        }
    }

    /// How long the next call may take: half of all, so that a lost answer leaves time for another turn.
    pub(crate) fn within(&self) -> Duration {
        let left = self.deadline.duration_since(Instant::now());
        left.min(self.timeout / 2)
    }

    /// What is large may take longer: a while for each of its parts.
    pub(crate) fn allow_for(&mut self, parts: u32) {
        let more = parts.saturating_sub(self.allowed);
        self.deadline += PART_WITHIN * more;
        self.allowed += more;
    }

    /// Waits for the next turn, unless there is none.
    pub(crate) async fn after(&mut self, failure: Failure) -> Result<(), Error> {
        if failure.may_have_written() {
            self.earlier = Earlier::Unknown;
        }
        match failure {
            Failure::Final(error) => return Err(self.earlier.told(error)),
            Failure::NoToken(error) => self.after_no_token(error).await?,
            Failure::Torn => self.after_torn()?,
            Failure::Overtaken => self.pause().await,
            Failure::Unmet(conditions, status) => self.after_unmet(conditions, status)?,
            Failure::Refused(call, status) => {
                self.no_token = None;
                let next = errors::judge(call, &status, &self.client.place);
                let pause = self.after_refusal(next, &status)?;
                self.keep_most_telling(status);
                if pause {
                    self.pause().await;
                }
            }
        }
        if Instant::now() < self.deadline {
            return Ok(());
        }
        Err(self.out_of_time())
    }

    /// What goes wrong from now on comes after a write.
    pub(crate) const fn has_written(&mut self) {
        self.earlier = Earlier::Unknown;
    }

    fn out_of_time(&mut self) -> Error {
        if let Some(error) = self.no_token.take() {
            return self.earlier.told(error);
        }
        let place = &self.client.place;
        errors::out_of_time(self.last.as_ref(), place, self.timeout, self.earlier)
    }

    /// Silence says nothing about what was said before it: a lock, most often, for which the last call had too little time.
    fn keep_most_telling(&mut self, status: Status) {
        if self.last.is_none() || !is_silence(&status) {
            self.last = Some(status);
        }
    }

    /// Whoever grants tokens may do so a moment later; what is wrong with the credentials stays so.
    async fn after_no_token(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Unavailable(_) => {
                self.no_token = Some(error);
                self.pause().await;
                Ok(())
            }
            Error::Denied(_) | Error::Invalid(_) | Error::Corrupt(_) | Error::Bug(_) => {
                Err(self.earlier.told(error))
            }
        }
    }

    /// Whether to pause before the next turn.
    fn after_refusal(&mut self, next: Next, status: &Status) -> Result<bool, Error> {
        let place = &self.client.place;
        match next {
            Next::AtOnce => Ok(false),
            Next::AfterPause => Ok(true),
            Next::VersionUnknown if self.version_refused => Err(Error::corrupt(format!(
                "{place} refuses a commit on the version that it has just told ({}); stop and look",
                status.message()
            ))),
            Next::VersionUnknown => {
                self.version_refused = true;
                Ok(false)
            }
            Next::TokenRefused if self.token_refused => {
                Err(self.earlier.told(errors::refusal(status, place)))
            }
            Next::TokenRefused => {
                self.token_refused = true;
                Ok(false)
            }
            Next::Stop(error) => Err(self.earlier.told(error)),
        }
    }

    /// Another's write came first: look again at once. Where that shows no other version, it is not about versions.
    fn after_unmet(&mut self, conditions: Conditions, status: Status) -> Result<(), Error> {
        self.no_token = None;
        if self.unmet.as_ref() == Some(&conditions) {
            self.client.doubt_writes();
            let refusal = errors::refusal(&status, &self.client.place);
            return Err(self.earlier.told(refusal));
        }
        self.unmet = Some(conditions);
        self.keep_most_telling(status);
        Ok(())
    }

    fn after_torn(&mut self) -> Result<(), Error> {
        self.torn += 1;
        if self.torn < TORN_MAX {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "{} has a document whose parts are not there; nothing is replayed from it, stop and look who deletes in the \
             collection of parts",
            self.client.place
        )))
    }

    /// Half to all of a pause that doubles.
    async fn pause(&mut self) {
        let [part, ..] = Owner::random().0;
        let jitter = self.pause.mul_f64(0.5 + f64::from(part) / 512.0);
        let left = self.deadline.duration_since(Instant::now());
        tokio::time::sleep(jitter.min(left)).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }
}
