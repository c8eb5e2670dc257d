//! The sender of a delivery, while it waits for the reply.

use crate::upstream::Reply;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A sender that waits for its reply. The delivery goes on when it has heard one.
#[derive(Debug)]
pub(crate) struct WaitingSender {
    /// When its request began to arrive.
    pub(crate) since: Instant,
    reply: Option<oneshot::Sender<Reply>>,
}

// === impl WaitingSender ===

impl WaitingSender {
    /// A sender that waits since then; what it hears comes out of the receiver.
    pub(crate) fn new(since: Instant) -> (Self, oneshot::Receiver<Reply>) {
        let (reply, heard) = oneshot::channel();
        let sender = Self {
            since,
            reply: Some(reply),
        };
        (sender, heard)
    }

    /// Tells it; one that hung up is not told.
    pub(crate) fn hears(&mut self, reply: Reply) {
        if let Some(sender) = self.reply.take() {
            drop(sender.send(reply));
        }
    }

    pub(crate) const fn has_heard(&self) -> bool {
        self.reply.is_none()
    }
}
