//! Where an operator asks: a gate at its admin address, or a store directly. Both answer with the
//! same JSON.

mod gate;

use crate::admin_client::AdminClient;
use crate::args::operate::AdminArgs;
use crate::config::StoreOptions;
use crate::log;
use crate::open_store::{self, Schema};
use crate::store_url::StoreUrl;
use anyhow::bail;
use http::StatusCode;
use semel::protocol::{Fence, State};
use semel::store::Cursor;
use semel::{Key, Semel, Settings};
use semel_gate::operate::{Operator, PAGE_ITEMS_MAX, Refused, Verdict};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// Who is asked.
#[derive(Debug)]
pub(crate) enum AdminTarget {
    Gate(Box<AdminClient>),
    Store(Operator),
}

/// A question or an act.
#[derive(Clone, Debug)]
pub(crate) enum AdminRequest {
    Records {
        state: Option<State>,
        after: Option<String>,
        limit: u32,
    },
    Record {
        key: Key,
        body: bool,
    },
    Release(Key),
    Forget(Key),
    Resolve(Key, Verdict, Option<Fence>),
    Letters {
        after: Option<String>,
        limit: u32,
    },
    Letter(String),
    Redrive {
        id: String,
        run_again: bool,
    },
    Discard(String),
}

/// Nobody was there to ask. A retry is safe.
#[derive(Debug)]
pub(crate) struct Unreachable(pub(crate) String);

// === impl AdminTarget ===

impl AdminTarget {
    pub(crate) async fn open(args: &AdminArgs) -> anyhow::Result<Self> {
        let Some(url) = &args.store else {
            let client = AdminClient::new(args.admin.clone(), args.token.as_deref())?;
            return Ok(Self::Gate(Box::new(client)));
        };
        if let StoreUrl::Embedded(path) = url
            && !path.join("guard").is_file()
        {
            bail!(
                "there is no store in {}: name the directory that the gate's `store` names",
                path.display()
            );
        }
        // Without a gate, this process is the one that writes down who did what.
        log::begin_audit();
        let opened = open_store::open(url, StoreOptions::default(), Schema::AsItIs).await;
        let store = opened
            .map_err(|error| Unreachable(format!("{error:#}")))?
            .store;
        // How long gates answer from memory is their own setting; this is the default.
        let settings = Settings::default();
        let semel = Semel::with_settings(Arc::clone(&store) as _, settings);
        Ok(Self::Store(Operator::new(
            semel,
            store,
            settings.shared_cache,
            "semel --store",
        )))
    }

    /// Asks, and tells the answer.
    pub(crate) async fn ask(&self, request: AdminRequest) -> anyhow::Result<Value> {
        match self {
            Self::Gate(client) => gate::send(client, &request).await,
            Self::Store(operator) => Ok(directly(operator, request).await?),
        }
    }

    /// All items of a list up to `limit`, page by page.
    pub(crate) async fn list(
        &self,
        name: &str,
        limit: u32,
        page: impl Fn(Option<String>, u32) -> AdminRequest,
    ) -> anyhow::Result<Value> {
        let (mut items, mut left, mut after) = (Vec::new(), limit, None);
        loop {
            let mut answer = self.ask(page(after, left.min(PAGE_ITEMS_MAX))).await?;
            if let Some(Value::Array(found)) = answer.get_mut(name).map(Value::take) {
                left = left.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
                items.extend(found);
            }
            after = answer
                .get("next")
                .and_then(Value::as_str)
                .map(str::to_owned);
            if after.is_none() || left == 0 {
                return Ok(json!({ name: items, "next": after }));
            }
        }
    }
}

async fn directly(operator: &Operator, request: AdminRequest) -> Result<Value, Refused> {
    let cursor = |text: Option<String>| {
        let bytes = text.and_then(|text| hex::decode(text).ok());
        bytes.map(|bytes| Cursor(bytes.into()))
    };
    match request {
        AdminRequest::Records {
            state,
            after,
            limit,
        } => operator.records(state, cursor(after).as_ref(), limit).await,
        AdminRequest::Record { key, body } => operator.record(&key, body).await,
        AdminRequest::Release(key) => operator.release(&key).await,
        AdminRequest::Forget(key) => operator.forget(&key).await,
        AdminRequest::Resolve(key, verdict, fence) => operator.resolve(&key, verdict, fence).await,
        AdminRequest::Letters { after, limit } => {
            operator.letters(cursor(after).as_ref(), limit).await
        }
        AdminRequest::Letter(id) => operator.letter(&id).await,
        AdminRequest::Discard(id) => operator.discard(&id).await,
        AdminRequest::Redrive { .. } => Err(Refused::conflict(
            "a redrive runs the handler, and only a gate does that",
            "leave --store out and name a running gate with --admin; nothing was done",
        )),
    }
}

/// Whether nobody was there to ask: no gate, or no store.
pub(crate) fn is_unreachable(error: &anyhow::Error) -> bool {
    let refused = error.downcast_ref::<Refused>();
    error.is::<Unreachable>()
        || refused.is_some_and(|refused| refused.status == StatusCode::SERVICE_UNAVAILABLE)
}

// === impl Unreachable ===

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreachable {}
