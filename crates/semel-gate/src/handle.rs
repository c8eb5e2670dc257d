//! One delivery, from its arrival to its reply: delivery → key → claim → run → record → reply.

use crate::failpoint::{Point, pass};
use crate::flow::Flow;
use crate::gate::{Gate, RouteState};
use crate::invalid_streak;
use crate::letters::keep::keep_letter;
use crate::verify::{turned_away, verify_body};
use crate::waiting_sender::WaitingSender;
use bytes::Bytes;
use http::Request;
use std::sync::Arc;

/// Takes one delivery through the gate. It is never cancelled: a sender that hangs up, or was told that the run goes on,
/// leaves the run, its record and its log line as they would have been.
pub(crate) async fn handle(
    gate: Arc<Gate>,
    route: Arc<RouteState>,
    request: Request<Bytes>,
    mut sender: WaitingSender,
) {
    let request = Arc::new(request);
    if let Err(why) = verify_body(&gate, &route, &request).await {
        return sender.hears(turned_away(&gate, &route, why));
    }
    let mut flow = Flow::read(gate, route, request).await;
    invalid_streak::note(&flow);
    let disposition = match flow.identity.clone() {
        Ok(identity) => flow.run(identity, Some(&mut sender)).await,
        Err(error) => flow.unnamed(error).await,
    };
    let disposition = keep_letter(&mut flow, disposition).await;
    if sender.has_heard() {
        return flow.log_end(&disposition);
    }
    let reply = flow.reply(&disposition);
    pass(Point::BeforeReply);
    sender.hears(reply);
}
