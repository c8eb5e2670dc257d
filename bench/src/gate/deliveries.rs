//! Deliveries: how many a second wrk brings through, and single ones of our own.

use std::sync::Arc;

use anyhow::{Context, bail};
use async_trait::async_trait;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::wrk::{Load, Names, fresh_prefix};
use crate::load;
use crate::rounds::{Contender, Pace};
use crate::upstream::Upstream;

/// Deliveries a second.
pub(crate) struct Rate {
    load: Load,
    reach: Reach,
}

/// What the handler must see of a measurement for it to be valid.
pub(crate) enum Reach {
    /// Every delivery.
    Handler(Arc<Upstream>),
    /// None of them.
    Nobody(Arc<Upstream>),
    /// It has no handler behind it.
    NoHandler,
}

/// Sends deliveries on connections that are kept.
#[derive(Debug, Clone)]
pub(crate) struct Sender(Client<HttpConnector, Full<Bytes>>);

const BODY: &[u8] = include_bytes!("order.json");

/// How many connections wrk has, and how many deliveries are sent at once where it is not measured.
pub(crate) const CONNECTIONS: usize = 64;

// === impl Rate ===

impl Rate {
    /// What wrk brings through this port under these names.
    pub(crate) fn boxed(port: u16, names: Names, reach: Reach) -> Box<Self> {
        let load = Load {
            port,
            connections: CONNECTIONS,
            names,
            token: None,
        };
        Box::new(Self { load, reach })
    }

    /// The same, each with this token.
    pub(crate) fn with_token(port: u16, names: Names, reach: Reach, token: String) -> Box<Self> {
        let mut rate = Self::boxed(port, names, reach);
        rate.load.token = Some(token);
        rate
    }
}

#[async_trait]
impl Contender for Rate {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64> {
        self.load.run(pace.warm_up).await?;
        let before = self.reach.count().await?;
        let answered = self.load.run(pace.window).await?;
        let reached = self.reach.count().await? - before;
        self.reach.judge(answered.requests, reached)?;
        Ok(answered.per_second())
    }
}

// === impl Sender ===

impl Sender {
    pub(crate) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self(Client::builder(TokioExecutor::new()).build(connector))
    }
}

// === impl Reach ===

impl Reach {
    async fn count(&self) -> anyhow::Result<u64> {
        match self {
            Self::Handler(handler) | Self::Nobody(handler) => handler.count().await,
            Self::NoHandler => Ok(0),
        }
    }

    /// wrk hangs up at the end, so a few more deliveries may reach the handler than were answered.
    fn judge(&self, answered: u64, reached: u64) -> anyhow::Result<()> {
        match self {
            Self::Handler(_) if reached < answered => {
                bail!("{answered} deliveries were answered, but only {reached} reached the handler")
            }
            Self::Nobody(_) if reached > 0 => {
                bail!("{reached} of {answered} duplicates reached the handler")
            }
            Self::Handler(_) | Self::Nobody(_) | Self::NoHandler => Ok(()),
        }
    }
}

/// Delivers `count` names once each, and tells the names.
pub(crate) async fn settle(port: u16, count: u64) -> anyhow::Result<Names> {
    let prefix = fresh_prefix();
    let (sender, shared) = (Sender::new(), prefix.clone());
    let next = move |number| {
        let (sender, name) = (sender.clone(), format!("{shared}-{number}"));
        async move { deliver(&sender, port, &name).await }
    };
    load::times(count, CONNECTIONS, next).await?;
    Ok(Names::Few(prefix, count))
}

/// Sends one delivery and reads its answer, which must be a success.
pub(crate) async fn deliver(sender: &Sender, port: u16, name: &str) -> anyhow::Result<()> {
    let answer = sender.0.request(delivery(port, name)?);
    let answer = answer.await.context("a delivery was not answered")?;
    if !answer.status().is_success() {
        bail!("a delivery was answered with {}", answer.status());
    }
    answer.into_body().collect().await?;
    Ok(())
}

/// The same request as the script of wrk makes.
fn delivery(port: u16, name: &str) -> anyhow::Result<Request<Full<Bytes>>> {
    Request::post(format!("http://127.0.0.1:{port}/orders"))
        .header("content-type", "application/json")
        .header("x-cloudtasks-queuename", "orders")
        .header("x-cloudtasks-taskname", name)
        .header("x-cloudtasks-taskretrycount", "0")
        .header("x-cloudtasks-taskexecutioncount", "0")
        .body(Full::from(BODY))
        .context("cannot make a request")
}
