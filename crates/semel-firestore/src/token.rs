//! Tokens: who we are, told to Firestore with every request, asked for anew before it is too old.

mod credentials;
mod jwt;
mod fetch;

pub(crate) use credentials::{from_file, from_metadata};

use credentials::Account;
use fetch::{Fetcher, Granted, not_had};
use semel::Error;
use semel::clock::SystemClock;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::metadata::{Ascii, MetadataValue};

/// What an emulator takes for a token.
const EMULATOR_TOKEN: &str = "Bearer owner";

/// How long before its end another token is asked for, or a quarter of its life. Until there is one, it is used as long as
/// it is good.
const MARGIN_MAX: Duration = Duration::from_secs(120);

/// How long a token lasts at most, whatever is said of it.
const LASTS_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long nobody asks after a question that failed, while there is a token that is good. It doubles.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(30);

/// How long before its end a token is no longer used: a request may be on its way for a while.
const TRAVEL: Duration = Duration::from_secs(5);

/// Where tokens come from.
#[derive(Debug)]
pub(crate) enum TokenSource {
    /// An emulator asks for nothing.
    Emulator,
    /// Google, for an account.
    Account(Account),
}

/// The token of the moment.
#[derive(Debug)]
pub(crate) struct Tokens(Option<Arc<Keeper>>);

/// Who asks for tokens, and what it got.
#[derive(Debug)]
struct Keeper {
    account: Account,
    fetcher: Fetcher,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Current>,
    /// What is asked for at this moment; everybody who needs a token waits for this one answer.
    asked: Option<watch::Receiver<Option<Result<Token, Error>>>>,
    /// How long nobody asks again, and until when.
    rest: Option<(Duration, Instant)>,
}

/// What goes with a request.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) bearer: MetadataValue<Ascii>,
    pub(crate) quota_project: Option<MetadataValue<Ascii>>,
}

#[derive(Clone, Debug)]
struct Current {
    token: Token,
    fresh_until: Instant,
    good_until: Instant,
}

// === impl Tokens ===

impl Tokens {
    pub(crate) fn new(source: TokenSource) -> Result<Self, Error> {
        Ok(Self(match source {
            TokenSource::Emulator => None,
            TokenSource::Account(account) => Some(Arc::new(Keeper {
                account,
                fetcher: Fetcher::new(SystemClock::new())?,
                state: Mutex::default(),
            })),
        }))
    }

    /// A token that is good for a while.
    pub(crate) async fn current(&self) -> Result<Token, Error> {
        match &self.0 {
            Some(keeper) => Arc::clone(keeper).current().await,
            None => Ok(Token {
                bearer: MetadataValue::from_static(EMULATOR_TOKEN),
                quota_project: None,
            }),
        }
    }

    /// What a caller is told who could not wait for one any longer.
    pub(crate) fn not_in_time(&self) -> Error {
        match &self.0 {
            Some(keeper) => not_had(&keeper.account, "did not answer in time"),
            None => Error::bug("an emulator's token needs no time"),
        }
    }

    /// This token is not accepted: ask for another.
    pub(crate) fn forget(&self, refused: &Token) {
        if let Some(keeper) = &self.0 {
            let current = &mut keeper.lock().current;
            drop(current.take_if(|it| it.token.bearer == refused.bearer));
        }
    }
}

// === impl Keeper ===

impl Keeper {
    async fn current(self: Arc<Self>) -> Result<Token, Error> {
        let (good, mut asked) = {
            let mut state = self.lock();
            let now = Instant::now();
            let current = state.current.as_ref();
            if let Some(current) = current.filter(|it| now < it.fresh_until) {
                return Ok(current.token.clone());
            }
            let good = current.filter(|it| now < it.good_until);
            let good = good.map(|it| it.token.clone());
            if let Some(token) = good.as_ref().filter(|_| state.rests(now)) {
                return Ok(token.clone());
            }
            // Nobody answers any more where whoever asked is gone.
            let asked = state.asked.clone();
            let asked = asked.filter(|it| it.has_changed().is_ok());
            (good, asked.unwrap_or_else(|| self.ask(&mut state)))
        };
        // One that is good is used while another is asked for, whatever becomes of that.
        if let Some(token) = good {
            return Ok(token);
        }
        let answered = asked.wait_for(Option::is_some).await;
        let answer = answered.ok().and_then(|it| it.clone());
        answer.unwrap_or_else(|| Err(Error::bug("whoever asks for tokens is gone")))
    }

    /// Asks in the background: those who wait may give up, and the next ones need the token as well.
    fn ask(self: &Arc<Self>, state: &mut State) -> watch::Receiver<Option<Result<Token, Error>>> {
        let (tell, asked) = watch::channel(None);
        state.asked = Some(asked.clone());
        let keeper = Arc::clone(self);
        tokio::spawn(async move {
            let began = Instant::now();
            let granted = keeper.fetcher.fetch(&keeper.account).await;
            let current = granted.and_then(|it| Current::new(&it, &keeper.account, began));
            let mut state = keeper.lock();
            state.asked = None;
            state.rest = state.rest_after(current.is_ok());
            let token = current.map(|current| {
                let token = current.token.clone();
                state.current = Some(current);
                token
            });
            drop(state);
            tell.send_replace(Some(token));
        });
        asked
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

// === impl State ===

impl State {
    fn rests(&self, now: Instant) -> bool {
        self.rest.is_some_and(|(_, until)| now < until)
    }

    fn rest_after(&self, granted: bool) -> Option<(Duration, Instant)> {
        if granted {
            return None;
        }
        let rest = self.rest.map_or(REST_MIN, |(rest, _)| rest * 2);
        let rest = rest.min(REST_MAX);
        Some((rest, Instant::now() + rest))
    }
}

// === impl Current ===

impl Current {
    fn new(granted: &Granted, account: &Account, asked: Instant) -> Result<Self, Error> {
        let lasts = Duration::from_secs(granted.expires_in).min(LASTS_MAX);
        let margin = MARGIN_MAX.min(lasts / 4).max(TRAVEL);
        let wrong = |_| {
            Error::denied(
                "the token that we were given is no text; look at what answers for tokens",
            )
        };
        let mut bearer: MetadataValue<Ascii> = format!("Bearer {}", granted.access_token)
            .parse()
            .map_err(wrong)?;
        bearer.set_sensitive(true);
        let quota_project = account.quota_project().map(str::parse).transpose();
        Ok(Self {
            token: Token {
                bearer,
                quota_project: quota_project.map_err(wrong)?,
            },
            fresh_until: asked + lasts.saturating_sub(margin),
            good_until: asked + lasts.saturating_sub(TRAVEL),
        })
    }
}

#[cfg(test)]
mod tests;
