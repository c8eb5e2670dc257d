//! The handler: what the gates protect. Every effect is written to the ledger, or is a row or a charge outside.

use super::deployment::Deployment;
use super::points::HandlerPoint;
use super::program::{here, stopped};
use super::store_probe::delivery;
use crate::crash::{Actor, Mode, always_fails};
use crate::harness::{Attempt, EffectPart, Event, FaultPoints, Ledger, WorkId};
use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use semel::Key;
use semel::protocol::{Fence, Lease, Owner};
use serde::Deserialize;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// What the handler answers to work that fails for good.
pub(super) const FINAL_STATUS: u16 = 422;

/// How long most effects take.
const EFFECT_MS: u64 = 20;

/// All that a request needs.
#[derive(Debug)]
struct Handler {
    deployment: Deployment,
    actor: Actor,
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
    ledger: Ledger,
    fault_points: FaultPoints,
) -> anyhow::Result<()> {
    let handler = Arc::new(Handler {
        deployment: deployment.clone(),
        actor: Actor {
            case: deployment.case.clone(),
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
        let told = told(request).await?;
        let number = told.attempt.delivery;
        self.actor.ledger.write(&Event::Received {
            delivery: number,
            work: told.attempt.work,
        });
        self.actor.ledger.write(&Event::Begun(told.attempt));
        let answered = self.act(&told).await;
        self.pass(HandlerPoint::BeforeAnswer);
        // A run whose answer is cut stays in hand: the gate cannot know how it ended.
        let (status, body) = answered?;
        self.actor
            .ledger
            .write(&Event::Answered { delivery: number });
        let mut answer = Response::new(Full::new(body));
        *answer.status_mut() = status.try_into()?;
        Ok(answer)
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
        sleep(lasts / 2).await;
        let (lease, attempt) = (&told.lease, told.attempt);
        let said = match self.deployment.case.mode {
            Mode::Transaction => {
                let outcome = self.actor.in_a_transaction(lease, attempt).await;
                outcome.map(|outcome| outcome.body_bytes())
            }
            Mode::Downstream => self.actor.charge(lease.key, attempt).await.map(Bytes::from),
            Mode::Park | Mode::Retry => {
                Ok(self.actor.take_effect(attempt, EffectPart::Work).into())
            }
        };
        self.pass(HandlerPoint::AfterEffect);
        sleep(lasts / 2).await;
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

    /// The dice are thrown by seed, work and attempt.
    fn behaviour(&self, attempt: Attempt) -> HandlerBehaviour {
        let mut hasher = DefaultHasher::new();
        (self.deployment.seed, attempt.work, attempt.attempt).hash(&mut hasher);
        let dice = hasher.finish();
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

    fn pass(&self, point: HandlerPoint) {
        self.actor.fault_points.pass(None, point.name());
    }
}

async fn told(request: Request<Incoming>) -> anyhow::Result<RunHeaders> {
    let (head, body) = request.into_parts();
    let header = |name: &str| {
        let value = head.headers.get(name).and_then(|it| it.to_str().ok());
        value.with_context(|| format!("the gate sends {name}"))
    };
    let key: Key = header("semel-key")?.parse()?;
    let fence: u64 = header("semel-fence")?.parse()?;
    let attempt: u32 = header("semel-attempt")?.parse()?;
    let steps = header("semel-steps")?;
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
