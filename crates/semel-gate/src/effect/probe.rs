//! Asking the handler what became of a run in doubt, once that run can no longer act and before anything is repeated.

use super::{HandlerCall, outcome};
use crate::forwarded_request::RunContext;
use crate::reply::meaning::{failed, unreachable};
use crate::settings::Probe;
use crate::upstream::{AnswerBody, Connection, SendError, full, read};
use bytes::Bytes;
use http::{Request, Uri};
use semel::Outcome;
use semel::outcome::Body;
use semel::protocol::Lease;
use semel::work::{Failure, FailureKind};
use std::time::Duration;
use tokio::time::timeout;

/// What the handler says about the run in doubt.
pub(super) enum Probed {
    /// It took effect: this is what is recorded.
    Happened(Outcome),
    /// It did not, and never will under a lower fence.
    DidNotHappen,
}

/// How long a handler may take to say so.
const PROBE_WITHIN: Duration = Duration::from_secs(10);

/// The pause before it is asked again, where the route has none of its own.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(5);

// === impl HandlerCall ===

impl HandlerCall {
    /// Asks whether the run before this one took effect.
    ///
    /// # Errors
    /// When nobody can say so now, which is tried again, or when the answer has no meaning, which parks the work.
    pub(super) async fn probe(&self, lease: &Lease, probe: &Probe) -> Result<Probed, Failure> {
        let limit = self.route.settings.terms(self.source).timeout;
        let asked = timeout(PROBE_WITHIN.min(limit), self.ask(lease, probe)).await;
        let (probed, word) = match asked {
            Ok(Ok(answered)) => self.understood(answered),
            Ok(Err(
                SendError::NotSent(why) | SendError::NotProcessed(why) | SendError::Cut(why),
            )) => (Err(self.unanswered(&why)), "unanswered"),
            Err(_) => (
                Err(self.unanswered("it did not answer in time")),
                "unanswered",
            ),
        };
        let route = &self.route.settings.name;
        self.gate.metrics.long_runs.probed(route, word);
        tracing::info!(
            target: "probe", route, key = %lease.key, fence = lease.fence.0, answer = word,
            "the handler was asked what became of a run in doubt"
        );
        probed
    }

    async fn ask(&self, lease: &Lease, probe: &Probe) -> Result<Outcome, SendError> {
        let route = &self.route.settings;
        let mut asks = Request::new(Bytes::new());
        *asks.method_mut() = probe.method.clone();
        *asks.uri_mut() = probe
            .path_for(lease)
            .parse::<Uri>()
            .map_err(|error| SendError::NotSent(error.to_string()))?;
        let request = self
            .forwarded(RunContext::Leased(lease), PROBE_WITHIN)
            .request(&asks, full(Bytes::new()));
        let sent = self
            .gate
            .client
            .send(&route.upstream, Connection::Fresh, request);
        let (parts, body) = sent.await?.into_parts();
        let body = match read(body, route.answer_bytes_max).await? {
            AnswerBody::Whole(bytes) => Body::Kept(bytes),
            AnswerBody::Beyond(..) => Body::NotKept,
        };
        Ok(outcome(&parts, body))
    }

    /// What the handler's answer means, and the word for it.
    fn understood(&self, answered: Outcome) -> (Result<Probed, Failure>, &'static str) {
        let status = answered.status;
        match status {
            200 => (Ok(Probed::Happened(answered)), "happened"),
            404 => (Ok(Probed::DidNotHappen), "did_not_happen"),
            429 | 502..=504 => (
                Err(self.unanswered(&format!("it answered {status}"))),
                "unanswered",
            ),
            _ => {
                let says = format!(
                    "the handler answered {status} when it was asked what became of a run in doubt, which says neither \
                     that it took effect (200) nor that it did not (404)"
                );
                (
                    Err(failed(FailureKind::Park, unreachable(says).outcome())),
                    "unclear",
                )
            }
        }
    }

    /// Nothing was begun, and it is as much in doubt as before.
    fn unanswered(&self, why: &str) -> Failure {
        let says = format!(
            "whether the run before took effect could not be asked ({why}); nothing was run"
        );
        let paced = self.route.settings.backoff.first > Duration::ZERO;
        Failure {
            after: (!paced).then_some(ASK_AGAIN_AFTER),
            ..failed(FailureKind::StillInDoubt, unreachable(says).outcome())
        }
    }
}
