//! Where an operator asks: a gate at its admin address, or a store directly. Both answer with the
//! same JSON.

mod gate;

use crate::admin_client::{AdminClient, Call, Unreachable};
use crate::args::operate::{AdminArgs, Reason};
use crate::config::{self, AdminAddress, StoreOptions};
use crate::log;
use crate::open_store::{self, Schema};
use crate::store_url::StoreUrl;
use anyhow::bail;
use http::{Method, StatusCode, Uri};
use semel::store::Cursor;
use semel::{Error, Semel, Settings};
use semel_gate::audit::{Via, Who};
use semel_gate::operate::{Operator, PAGE_ITEMS_MAX, Refused};
use semel_gate::settings::Secret;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Who is asked.
#[derive(Debug)]
pub(crate) enum AdminTarget {
    Gate(Box<AdminClient>),
    Store(Operator),
}

/// What is answered by a store.
pub(crate) type Answered = Result<Value, Refused>;

/// How long a gate may take to answer, where no handler runs.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

// === impl AdminTarget ===

impl AdminTarget {
    pub(crate) async fn open(args: &AdminArgs) -> anyhow::Result<Self> {
        let Some(url) = &args.store else {
            let (base, token) = gate_of(args)?;
            let client = AdminClient::new(&gate::GATE, base, token.as_ref())?;
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
        let store = opened?.store;
        // How long gates answer from memory is their own setting; this is the default.
        let settings = Settings::default();
        let semel = Semel::with_settings(Arc::clone(&store) as _, settings);
        Ok(Self::Store(Operator::new(
            semel,
            store,
            settings.shared_cache,
            Who::new("semel --store", Via::Store),
        )))
    }

    /// Asks a gate by a call, or a store directly, and tells the answer.
    pub(crate) async fn ask(
        &self,
        call: Call,
        directly: impl AsyncFnOnce(&Operator) -> Answered,
    ) -> anyhow::Result<Value> {
        match self {
            Self::Gate(client) => gate::send(client, call, Some(ANSWER_WITHIN)).await,
            Self::Store(operator) => Ok(directly(operator).await?),
        }
    }

    /// Asks a gate to run a handler, for as long as that takes.
    pub(crate) async fn redrive(&self, call: Call) -> anyhow::Result<Value> {
        match self {
            Self::Gate(client) => gate::send(client, call, None).await,
            Self::Store(_) => Err(Refused::conflict(
                "a redrive runs the handler, and only a gate does that",
                "leave --store out and name a running gate with --admin; nothing was done",
            )
            .into()),
        }
    }

    /// All items of a list up to `limit`, page by page. `query` chooses among them.
    pub(crate) async fn list(
        &self,
        name: &str,
        query: &str,
        limit: u32,
        page: impl AsyncFn(&Operator, Option<&Cursor>, u32) -> Answered,
    ) -> anyhow::Result<Value> {
        let (mut items, mut left, mut after) = (Vec::new(), limit, None::<String>);
        loop {
            let count = left.min(PAGE_ITEMS_MAX);
            let next = after.as_ref().map(|after| format!("&after={after}"));
            let next = next.unwrap_or_default();
            let call = get(format!("/{name}?limit={count}{query}{next}"));
            let bytes = after.and_then(|after| hex::decode(after).ok());
            let cursor = bytes.map(|bytes| Cursor(bytes.into()));
            let directly = async |operator: &Operator| page(operator, cursor.as_ref(), count).await;
            let mut answer = self.ask(call, directly).await?;
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

/// Which gate is asked, and what it is shown. The token of a file is for the gate of that file, and for no other.
fn gate_of(args: &AdminArgs) -> anyhow::Result<(Uri, Option<Secret>)> {
    if let Some(admin) = &args.admin {
        return Ok((admin.clone(), args.token.clone()));
    }
    let AdminAddress { address, token } = config::admin_address(args.config.as_deref())?;
    let base = format!("http://{address}").parse()?;
    Ok((base, args.token.clone().or(token)))
}

/// A question.
pub(crate) const fn get(path: String) -> Call {
    (Method::GET, path, None)
}

/// An act, with its reason if there is one.
pub(crate) fn act(path: String, reason: &Reason) -> Call {
    if reason.why.is_empty() {
        return (Method::POST, path, None);
    }
    let sign = if path.contains('?') { '&' } else { '?' };
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let why = query.append_pair("why", &reason.why).finish();
    (Method::POST, format!("{path}{sign}{why}"), None)
}

/// Whether nobody was there to ask: no gate, or no store.
pub(crate) fn is_unreachable(error: &anyhow::Error) -> bool {
    let refused = error.downcast_ref::<Refused>();
    error.is::<Unreachable>()
        || refused.is_some_and(|refused| refused.status == StatusCode::SERVICE_UNAVAILABLE)
}

/// Whether a store could not be asked: opening it again later may help.
pub(crate) fn is_unavailable(error: &anyhow::Error) -> bool {
    store_says(error).is_some_and(|error| matches!(error, Error::Unavailable(_)))
}

/// Whether a store was reached, or not even that, and refuses what it was told: user, password, database, address.
pub(crate) fn is_misnamed(error: &anyhow::Error) -> bool {
    store_says(error).is_some_and(|error| matches!(error, Error::Invalid(_)))
}

fn store_says(error: &anyhow::Error) -> Option<&Error> {
    error.chain().find_map(|cause| cause.downcast_ref())
}
