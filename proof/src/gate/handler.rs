//! The handler: what the gates protect. Every effect is written to the ledger, or is a row or a charge outside.

use super::deployment::Deployment;
use super::kept_effects::KeptEffects;
use super::points::HandlerPoint;
use super::program::{here, stopped};
use super::store_probe::{Works, delivery};
use crate::crash::{Actor, Mode, always_fails};
use crate::faults::Defect;
use crate::harness::{Attempt, EffectPart, Event, FaultPoints, Ledger, WorkId};
use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use semel::Key;
use semel::protocol::{Fence, Lease, Owner};
use semel::work::Failure;
use serde::Deserialize;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// What the handler answers to work that fails for good.
pub(super) const FINAL_STATUS: u16 = 422;

/// How long most effects take.
const EFFECT_MS: u64 = 20;

/// How many probes in a hundred are answered with a 503, which is asked again, and with a 500, which says nothing; where
/// that is taken for a no, many are.
const CANNOT_SAY_NOW: u64 = 5;
const SAYS_NOTHING: u64 = 2;
const SAYS_NOTHING_TO_BROKEN: u64 = 50;

/// All that a request needs.
#[derive(Debug)]
struct Handler {
    deployment: Deployment,
    actor: Actor,
    kept: KeptEffects,
    works: Mutex<Works>,
}

/// What the gate says about the run that a request is for.
#[derive(Clone, Debug)]
struct RunHeaders {
    lease: Lease,
    attempt: Attempt,
}

#[derive(Deserialize)]
struct Payload {
    work: u32,
}

/// What the dice say about one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandlerBehaviour {
    Acts(Duration),
    /// Says that it did not happen.
    Fails,
    /// Takes effect, and hangs up without a word.
    Cuts,
}

/// Serves until the process is told to stop.
pub(super) async fn serve(
    deployment: &Deployment,
    number: u32,
    ledger: Ledger,
    fault_points: FaultPoints,
) -> anyhow::Result<()> {
    let case = &deployment.case;
    // A handler that refuses lower fences would save a gate that asks too early.
    let fences = case.defect != Some(Defect::ForgetsHowLongRunsAct);
    let asked_about = if case.mode == Mode::Probe { number } else { 0 };
    let handler = Arc::new(Handler {
        deployment: deployment.clone(),
        kept: KeptEffects::read(&case.dir, asked_about, ledger.clone(), fences)?,
        works: Mutex::new(Works::new(case)),
        actor: Actor {
            case: case.clone(),
            ledger,
            fault_points,
        },
    });
    let listener = TcpListener::bind(here(deployment.handler)).await?;
    let mut stopped = std::pin::pin!(stopped()?);
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => accepted?.0,
            () = &mut stopped => return Ok(()),
        };
        let handler = Arc::clone(&handler);
        let service = service_fn(move |request| Arc::clone(&handler).handle(request));
        tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service),
        );
    }
}

// === impl Handler ===

impl Handler {
    /// An error is a connection that breaks without an answer.
    async fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> anyhow::Result<Response<Full<Bytes>>> {
        let (status, body) = match *request.method() {
            Method::GET => self.say(&request)?,
            _ => self.run(request).await?,
        };
        let mut answer = Response::new(Full::new(body));
        *answer.status_mut() = status.try_into()?;
        Ok(answer)
    }

    async fn run(self: Arc<Self>, request: Request<Incoming>) -> anyhow::Result<(u16, Bytes)> {
        let told = told(request).await?;
        let number = told.attempt.delivery;
        self.actor.ledger.write(&Event::Received {
            delivery: number,
            work: told.attempt.work,
        });
        self.actor.ledger.write(&Event::Begun(told.attempt));
        // It goes on when its gate hangs up, as most handlers do.
        let goes_on = tokio::spawn(async move {
            let answered = self.act(&told).await;
            self.pass(HandlerPoint::BeforeAnswer);
            // A run whose answer is cut stays in hand: the gate cannot know how it ended.
            let answer = answered?;
            self.actor
                .ledger
                .write(&Event::Answered { delivery: number });
            Ok(answer)
        });
        goes_on.await?
    }

    /// Says what became of the runs before the one that asks.
    fn say(&self, request: &Request<Incoming>) -> anyhow::Result<(u16, Bytes)> {
        let key: Key = header(request.headers(), "semel-key")?.parse()?;
        let fence: u64 = header(request.headers(), "semel-fence")?.parse()?;
        let asked = request.uri().path();
        anyhow::ensure!(asked == format!("/effects/{key}"), "asked for {asked}");
        let mut works = self.works.lock().expect("no holder of this lock panics");
        let work = works.of(&key);
        drop(works);
        if let Some(status) = self.unclear(work, fence) {
            self.kept.note(work, fence, status);
            // A gate that takes it for a no would do what it does when it hears one.
            let is_no = self.has(Defect::UnclearProbeIsNo);
            return Ok((if is_no { 404 } else { status }, "who knows".into()));
        }
        Ok(match self.kept.ask(work, fence) {
            Some(nonce) => (200, nonce.into()),
            None => (404, "it did not happen, and will not".into()),
        })
    }

    /// What the dice make of a probe, if it is not answered.
    fn unclear(&self, work: WorkId, fence: u64) -> Option<u16> {
        let says_nothing = if self.has(Defect::UnclearProbeIsNo) {
            SAYS_NOTHING_TO_BROKEN
        } else {
            SAYS_NOTHING
        };
        match self.dice((work, fence)) % 100 {
            percent if percent < says_nothing => Some(500),
            percent if percent < says_nothing + CANNOT_SAY_NOW => Some(503),
            _ => None,
        }
    }

    async fn act(&self, told: &RunHeaders) -> anyhow::Result<(u16, Bytes)> {
        self.pass(HandlerPoint::BeforeEffect);
        if always_fails(told.attempt.work) {
            return Ok((FINAL_STATUS, "this will never do".into()));
        }
        let behaviour = self.behaviour(told.attempt);
        let lasts = match behaviour {
            HandlerBehaviour::Acts(lasts) => lasts,
            HandlerBehaviour::Cuts => Duration::ZERO,
            HandlerBehaviour::Fails => return Ok((503, "the handler said no".into())),
        };
        let mode = self.deployment.case.mode;
        // Where doubt is asked about, the effect comes last: whoever asks too early does not hear of it.
        let before = if mode == Mode::Probe {
            lasts
        } else {
            lasts / 2
        };
        sleep(before).await;
        let (lease, attempt) = (&told.lease, told.attempt);
        let said = match mode {
            Mode::Transaction => {
                let outcome = self.actor.in_a_transaction(lease, attempt).await;
                outcome.map(|outcome| outcome.body_bytes())
            }
            Mode::Downstream => self.actor.charge(lease.key, attempt).await.map(Bytes::from),
            Mode::Park | Mode::Retry => {
                Ok(self.actor.take_effect(attempt, EffectPart::Work).into())
            }
            Mode::Probe => {
                let take_effect = || self.actor.take_effect(attempt, EffectPart::Work);
                let nonce = self.kept.act(attempt, take_effect).map(Bytes::from);
                nonce.ok_or_else(|| Failure::retryable("a higher fence was seen"))
            }
        };
        self.pass(HandlerPoint::AfterEffect);
        sleep(lasts - before).await;
        if behaviour == HandlerBehaviour::Cuts {
            self.actor.ledger.write(&Event::Cut {
                delivery: told.attempt.delivery,
            });
            anyhow::bail!("hung up");
        }
        match said {
            Ok(nonce) => Ok((200, nonce)),
            Err(failure) => Ok((503, format!("{failure:?}").into())),
        }
    }

    fn has(&self, defect: Defect) -> bool {
        self.deployment.case.defect == Some(defect)
    }

    /// The dice are thrown by seed, work and attempt.
    fn behaviour(&self, attempt: Attempt) -> HandlerBehaviour {
        let dice = self.dice((attempt.work, attempt.attempt));
        let lease = self.deployment.case.lease;
        let long = match attempt.attempt {
            0 | 1 => self.deployment.long.first,
            _ => self.deployment.long.later,
        };
        match dice % 100 {
            0..5 => HandlerBehaviour::Fails,
            5..8 => HandlerBehaviour::Cuts,
            percent if percent < 8 + long => HandlerBehaviour::Acts(lease + lease / 2),
            _ => HandlerBehaviour::Acts(Duration::from_millis(dice / 100 % EFFECT_MS)),
        }
    }

    fn dice(&self, of: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.deployment.seed.hash(&mut hasher);
        of.hash(&mut hasher);
        hasher.finish()
    }

    fn pass(&self, point: HandlerPoint) {
        self.actor.fault_points.pass(None, point.name());
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> anyhow::Result<&'a str> {
    let value = headers.get(name).and_then(|it| it.to_str().ok());
    value.with_context(|| format!("the gate sends {name}"))
}

async fn told(request: Request<Incoming>) -> anyhow::Result<RunHeaders> {
    let (head, body) = request.into_parts();
    let headers = &head.headers;
    let key: Key = header(headers, "semel-key")?.parse()?;
    let fence: u64 = header(headers, "semel-fence")?.parse()?;
    let attempt: u32 = header(headers, "semel-attempt")?.parse()?;
    let steps = header(headers, "semel-steps")?;
    let owner = steps.rsplit('/').next().unwrap_or_default();
    let mut bytes = [0; 16];
    hex::decode_to_slice(owner.replace('-', ""), &mut bytes)?;
    let owner = Owner(bytes);
    let body = body.collect().await?.to_bytes();
    let Payload { work } = serde_json::from_slice(&body)?;
    let attempt = Attempt {
        delivery: delivery(owner),
        work: WorkId(work),
        fence,
        attempt,
    };
    let lease = Lease {
        key,
        owner,
        fence: Fence(fence),
        born: Fence(fence),
        attempt: attempt.attempt,
        in_doubt: false,
    };
    Ok(RunHeaders { lease, attempt })
}
