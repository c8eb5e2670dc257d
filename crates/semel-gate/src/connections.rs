//! Connections: each is served to its end, which is its own, the gate's, or that of our patience.

use crate::activity::{Activity, CutReason};
use crate::metrics::connections::ConnectionMetrics;
use crate::settings::Limits;
use crate::upstream::BoxError;
use hyper_util::server::graceful::GracefulConnection;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// How long an idle client may take to hear that its connection ends.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// The connections of a listener, so that they can be told to finish.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    closing: watch::Sender<bool>,
    open: TaskTracker,
}

/// A connection at work.
#[derive(Debug)]
pub(crate) struct WatchedConnection {
    pub(crate) listener: &'static str,
    pub(crate) activity: Activity,
    pub(crate) limits: Arc<Limits>,
    pub(crate) closing: watch::Receiver<bool>,
    pub(crate) counts: ConnectionMetrics,
}

// === impl Connections ===

impl Connections {
    pub(crate) fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        self.open.spawn(connection);
    }

    /// Turns true when connections are to finish.
    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Tells all connections to finish what they have in hand, and waits for their end.
    pub(crate) async fn shutdown(&self) {
        self.closing.send_replace(true);
        self.open.close();
        self.open.wait().await;
    }
}

// === impl WatchedConnection ===

impl WatchedConnection {
    /// What comes of something that is of no more use once connections are to finish.
    pub(crate) async fn unless_closing<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut closing = self.closing.clone();
        tokio::select! {
            biased;
            () = told_to_close(&mut closing) => None,
            done = future => Some(done),
        }
    }

    /// Serves a connection to its end: its own, the gate's, or that of our patience.
    pub(crate) async fn serve_to_end<C>(mut self, connection: C)
    where
        C: GracefulConnection<Error = BoxError>,
    {
        let (mut connection, mut told) = (pin!(connection), false);
        loop {
            tokio::select! {
                // What has arrived is looked at before the clock: a process that was held up cuts nobody for it.
                biased;
                ended = connection.as_mut() => {
                    return self.ended(ended);
                }
                () = told_to_close(&mut self.closing), if !told => {
                    connection.as_mut().graceful_shutdown();
                    told = true;
                }
                why = self.activity.overdue(&self.limits) => break self.cut(connection, why).await,
            }
        }
    }

    fn ended(&self, ended: Result<(), BoxError>) {
        let Err(error) = ended else {
            return;
        };
        tracing::debug!(listener = self.listener, %error, "a connection ended early");
        // hyper has clocks of its own, for heads and pings.
        let by_clock = error.downcast_ref().is_some_and(hyper::Error::is_timeout);
        if by_clock {
            self.counts.cut(self.listener, self.activity.timed_out());
        }
    }

    async fn cut<C: GracefulConnection>(&self, mut connection: Pin<&mut C>, why: CutReason) {
        let (listener, why_word) = (self.listener, why.word());
        tracing::debug!(listener, why = why_word, "a connection was cut");
        self.counts.cut(listener, why);
        match why {
            // An HTTP/2 client that is told does not send its next request here.
            CutReason::Idle => {
                connection.as_mut().graceful_shutdown();
                drop(timeout(CLOSE_WITHIN, connection).await);
            }
            CutReason::NoRequest | CutReason::Unread | CutReason::Vanished => {}
        }
    }
}

/// Nobody left to tell it is as good as being told.
async fn told_to_close(closing: &mut watch::Receiver<bool>) {
    drop(closing.wait_for(|closing| *closing).await);
}
