//! What the broker has to deliver: from the first call to the last answer of the handler.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use async_trait::async_trait;
use tokio::time::{Instant, sleep};

use super::AT_ONCE;
use super::calls::Client;
use crate::load;
use crate::rounds::{Contender, Pace};
use crate::running::Running;
use crate::upstream::Upstream;

/// Calls the broker so many times, and waits until the handler has seen what came of every call.
pub(crate) struct Deliveries<Call> {
    pub(crate) client: Client,
    pub(crate) handler: Arc<Upstream>,
    pub(crate) count: u64,
    /// One call; it is told its number.
    pub(crate) call: Call,
    pub(crate) _server: Running,
}

/// How long the handler is waited for.
const BOUND: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(2);

// === impl Deliveries ===

#[async_trait]
impl<Call, Called> Contender for Deliveries<Call>
where
    Call: Fn(Client, u64) -> Called + Clone + Send + Sync + 'static,
    Called: Future<Output = anyhow::Result<()>> + Send,
{
    async fn turn(&mut self, _: Pace) -> anyhow::Result<f64> {
        let expected = self.handler.count().await? + self.count;
        let (client, call) = (self.client.clone(), self.call.clone());
        let began = Instant::now();
        let calls = move |number| call(client.clone(), number);
        load::times(self.count, AT_ONCE, calls).await?;
        wait_for(&self.handler, expected).await?;
        Ok(self.count as f64 / began.elapsed().as_secs_f64())
    }
}

/// Waits until the handler has answered so many in all.
async fn wait_for(handler: &Upstream, expected: u64) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let seen = handler.count().await?;
        if seen == expected {
            return Ok(());
        }
        if seen > expected {
            bail!("the handler saw {seen} requests instead of {expected}: something came twice");
        }
        if began.elapsed() > BOUND {
            bail!("the handler saw {seen} of {expected} requests after {BOUND:?}");
        }
        sleep(PAUSE).await;
    }
}
