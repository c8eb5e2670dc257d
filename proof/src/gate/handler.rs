//! The handler: what the gates protect. Every effect is written to the ledger, or is a row or a charge outside.

use super::ear::delivery;
use super::program::{here, stopped};
use super::scene::Scene;
use super::snare::{HandlerPoint, Set};
use crate::bed::{self, Place};
use crate::crash::{
    Attempt, Charge, INSERT, Ledger, Line, Mode, Part, WorkId, charge, is_hopeless, nonce,
};
use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use semel::clock::{Clock, SystemClock};
use semel::protocol::{Fence, Lease, Owner};
use semel::{Key, Outcome};
use semel_postgres::complete_in;
use serde::Deserialize;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// What the handler answers to work that fails for good.
pub(super) const HOPELESS: u16 = 422;

/// How long most effects take.
const EFFECT_MS: u64 = 20;

/// All that a request needs.
#[derive(Debug)]
struct Handler {
    scene: Scene,
    ledger: Ledger,
    set: Arc<Set>,
    clock: SystemClock,
}

/// What the gate says about the run that a request is for.
#[derive(Clone, Debug)]
struct Told {
    lease: Lease,
    attempt: Attempt,
}

#[derive(Deserialize)]
struct Payload {
    work: u32,
}

/// What the dice say about one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Acts(Duration),
    /// Says that it did not happen.
    Fails,
    /// Takes effect, and hangs up without a word.
    Cuts,
}

/// Serves until the process is told to stop.
pub(super) async fn serve(scene: &Scene, ledger: Ledger, set: Arc<Set>) -> anyhow::Result<()> {
    let handler = Arc::new(Handler {
        scene: scene.clone(),
        ledger,
        set,
        clock: SystemClock::new(),
    });
    let listener = TcpListener::bind(here(scene.handler)).await?;
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
        self.ledger.write(&Line::Received {
            delivery: number,
            work: told.attempt.work,
        });
        self.ledger.write(&Line::Begun(told.attempt));
        let answered = self.act(&told).await;
        self.set.pass(HandlerPoint::BeforeAnswer.word());
        // A run whose answer is cut stays in hand: the gate cannot know how it ended.
        let (status, body) = answered?;
        self.ledger.write(&Line::Answered { delivery: number });
        let mut answer = Response::new(Full::from(body));
        *answer.status_mut() = status.try_into()?;
        Ok(answer)
    }

    async fn act(&self, told: &Told) -> anyhow::Result<(u16, String)> {
        self.set.pass(HandlerPoint::BeforeEffect.word());
        if is_hopeless(told.attempt.work) {
            return Ok((HOPELESS, "this will never do".into()));
        }
        let manner = self.manner(told.attempt);
        let lasts = match manner {
            Manner::Acts(lasts) => lasts,
            Manner::Cuts => Duration::ZERO,
            Manner::Fails => return Ok((503, "the handler said no".into())),
        };
        sleep(lasts / 2).await;
        let said = match self.scene.case.mode {
            Mode::Transaction => self.in_a_transaction(told).await,
            Mode::Downstream => self.downstream(told.attempt, &told.lease.key).await,
            Mode::Park | Mode::Retry => Ok(self.plainly(told.attempt)),
        };
        self.set.pass(HandlerPoint::AfterEffect.word());
        sleep(lasts / 2).await;
        if manner == Manner::Cuts {
            self.ledger.write(&Line::Cut {
                delivery: told.attempt.delivery,
            });
            anyhow::bail!("hung up");
        }
        match said {
            Ok(nonce) => Ok((200, nonce)),
            Err(error) => Ok((503, format!("{error:#}"))),
        }
    }

    /// The dice are thrown by seed, work and attempt.
    fn manner(&self, attempt: Attempt) -> Manner {
        let mut hasher = DefaultHasher::new();
        (self.scene.seed, attempt.work, attempt.attempt).hash(&mut hasher);
        let dice = hasher.finish();
        let lease = self.scene.case.lease;
        let long = match attempt.attempt {
            0 | 1 => self.scene.long.first,
            _ => self.scene.long.later,
        };
        match dice % 100 {
            0..5 => Manner::Fails,
            5..8 => Manner::Cuts,
            percent if percent < 8 + long => Manner::Acts(lease + lease / 2),
            _ => Manner::Acts(Duration::from_millis(dice / 100 % EFFECT_MS)),
        }
    }

    /// The effect is a line of the ledger.
    fn plainly(&self, attempt: Attempt) -> String {
        let nonce = nonce();
        self.ledger.write(&Line::Effect {
            attempt,
            part: Part::Work,
            nonce: nonce.clone(),
            at: self.clock.wall().0,
        });
        nonce
    }

    /// The effect is a charge at the downstream, under the run's key.
    async fn downstream(&self, attempt: Attempt, key: &Key) -> anyhow::Result<String> {
        let asked = Charge {
            key: key.to_string(),
            work: attempt.work,
            nonce: nonce(),
        };
        charge(self.scene.case.downstream, &asked).await
    }

    /// The effect is a row, committed together with the completion.
    async fn in_a_transaction(&self, told: &Told) -> anyhow::Result<String> {
        let Place::Postgres { url, .. } = &self.scene.case.place else {
            anyhow::bail!("there is no database");
        };
        let mut client = bed::connect(url).await?;
        let transaction = client.transaction().await?;
        let nonce = nonce();
        let (work, fence) = (
            i64::from(told.attempt.work.0),
            told.attempt.fence.cast_signed(),
        );
        transaction
            .execute(INSERT, &[&work, &fence, &nonce])
            .await?;
        complete_in(&transaction, &told.lease, &Outcome::ok(nonce.clone())).await?;
        transaction.commit().await?;
        Ok(nonce)
    }
}

async fn told(request: Request<Incoming>) -> anyhow::Result<Told> {
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
    };
    Ok(Told { lease, attempt })
}
