//! The turns of one operation: each reads, decides and commits; what came to nothing is made again until time is over.

use crate::client::{Client, Failure};
use crate::errors::{self, Next};
use semel::Error;
use semel::protocol::Owner;
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;

const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(200);

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
    token_refused: bool,
    last: Option<Status>,
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
            token_refused: false,
            last: None,
        }
    }

    /// How long the next call may take: half of all, so that a lost answer leaves time for another turn.
    pub(crate) fn within(&self) -> Duration {
        let left = self.deadline.duration_since(Instant::now());
        left.min(self.timeout / 2)
    }

    /// Waits for the next turn, unless there is none.
    pub(crate) async fn after(&mut self, failure: Failure) -> Result<(), Error> {
        match failure {
            Failure::Final(error) => return Err(error),
            Failure::Torn => self.after_torn()?,
            Failure::Overtaken => self.pause().await,
            Failure::Refused(call, status) => {
                let next = errors::judge(call, &status, &self.client.place);
                let pause = self.after_refusal(next, &status)?;
                self.last = Some(status);
                if pause {
                    self.pause().await;
                }
            }
        }
        if Instant::now() < self.deadline {
            return Ok(());
        }
        let place = &self.client.place;
        Err(errors::out_of_time(self.last.as_ref(), place, self.timeout))
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
            Next::TokenRefused if self.token_refused => Err(errors::refusal(status, place)),
            Next::TokenRefused => {
                self.token_refused = true;
                self.client.forget_token();
                Ok(false)
            }
            Next::Stop(error) => Err(error),
        }
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
