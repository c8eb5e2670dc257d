//! An address that answers a JSON object of counts by id.

use super::ProbeKind;
use crate::scenario::endpoint::{path_and_query, resolve};
use crate::world::command::with_timeout;
use crate::world::connections::Rows;
use http_body_util::Full;
use semel_rig::http;
use std::collections::BTreeMap;
use url::Url;

pub(super) const HTTP: ProbeKind = ProbeKind {
    name: "http",
    given: |effect| effect.http.as_ref(),
    on: None,
    check: |url, _| {
        let plain = url.starts_with("http://");
        plain
            .then_some(())
            .ok_or_else(|| format!("`{url}` is not an http:// address"))
    },
    rows: |world, asked| {
        let url = world.variables.expand(asked.text);
        Box::pin(async move { ask(&url).await })
    },
};

async fn ask(url: &str) -> Result<Rows, String> {
    let answer = with_timeout(answer(url)).await;
    answer.map_err(|why| format!("{url}: {why}"))?
}

async fn answer(url: &str) -> Result<Rows, String> {
    let url = Url::parse(url).map_err(|why| format!("`{url}`: {why}"))?;
    let address = resolve(&url).await;
    let address = address.ok_or_else(|| {
        let host = url.host_str().unwrap_or_default();
        format!("{host} is not known")
    })?;
    let request = ::http::Request::get(path_and_query(&url))
        .header("host", address.to_string())
        .body(Full::default());
    let request = request.map_err(|why| why.to_string())?;
    let no_answer = |why| format!("{url} did not answer: {why}");
    let head = http::send(address, request).await.map_err(no_answer)?;
    if head.status != 200 {
        return Err(format!("{url} answered {}", head.status));
    }
    let body = head.body().await.map_err(no_answer)?;
    let counts: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&body)
        .map_err(|_| format!("{url} did not answer with a JSON object of counts by id"))?;
    let rows = counts.into_iter();
    Ok(rows
        .map(|(id, count)| vec![id, count.to_string()])
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn probe_that_never_answers_is_given_up() {
        let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/counts", deaf.local_addr().unwrap());
        let why = ask(&url).await.unwrap_err();
        assert!(why.contains("no answer within"), "{why}");
    }
}
