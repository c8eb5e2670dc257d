//! Documents of a Firestore collection: each that names the id, or what one of its fields holds.

use super::{ProbeKind, Question};
use crate::scenario::endpoint::find;
use crate::world::World;
use crate::world::command::with_timeout;
use crate::world::connections::Rows;
use crate::world::protocol::Protocol;
use http_body_util::Full;
use semel_rig::http;
use serde_json::{Value, json};
use tokio::net::lookup_host;

/// Where Google's own clients look for the project.
const PROJECT: &str = "GOOGLE_CLOUD_PROJECT";

pub(super) const FIRESTORE: ProbeKind = ProbeKind {
    name: "firestore",
    given: |effect| effect.firestore.as_ref(),
    on: Some(Protocol::Firestore),
    check: |text, _| Query::read(text).map(drop),
    rows: |world, asked| Box::pin(rows(world, asked)),
};

/// What is counted, as it is written: `orders`, `taken in stock`, `100 - n in stock`.
#[derive(Debug, PartialEq)]
struct Query<'a> {
    /// Less what the field holds.
    from: Option<f64>,
    /// Unless given, a document that names the id counts as one.
    field: Option<&'a str>,
    /// From the root of the database, or from `projects/`.
    collection: &'a str,
}

async fn rows(world: &mut World<'_>, asked: Question<'_>) -> Result<Rows, String> {
    let query = Query::read(asked.text)?;
    let found = find(asked.on, Protocol::Firestore, &world.endpoints)?;
    let address = found.map_or_else(String::new, |(_, endpoint)| endpoint.url.clone());
    let path = query.path(world.environment.get(PROJECT))?;
    let documents = with_timeout(documents(&address, &path)).await;
    let documents = documents.map_err(|why| format!("{address}: {why}"))??;
    documents.iter().map(|it| query.row(it)).collect()
}

/// Everything in a collection, in the emulator's JSON.
async fn documents(address: &str, path: &str) -> Result<Vec<Value>, String> {
    let (parent, collection) = path.rsplit_once('/').unwrap_or_default();
    let query = json!({"structuredQuery": {"from": [{"collectionId": collection}]}});
    let to = lookup_host(address).await.ok().and_then(|mut it| it.next());
    let to = to.ok_or_else(|| format!("{address} is not known"))?;
    let request = ::http::Request::post(format!("/v1/{parent}:runQuery"))
        .header("host", address)
        .header("content-type", "application/json")
        // The emulator's word for somebody whom no security rules hold back.
        .header("authorization", "Bearer owner")
        .body(Full::from(query.to_string()));
    let request = request.map_err(|why| why.to_string())?;
    let no_answer = |why| format!("{address} did not answer: {why}");
    let head = http::send(to, request).await.map_err(no_answer)?;
    let status = head.status;
    let body = head.body().await.map_err(no_answer)?;
    if status != 200 {
        let said = String::from_utf8_lossy(&body);
        return Err(format!("the query was answered with {status}: {said}"));
    }
    let found: Vec<Value> = serde_json::from_slice(&body)
        .map_err(|_| format!("{address} did not answer with a list of documents"))?;
    // An empty collection is one entry with nothing but a time.
    Ok(found
        .into_iter()
        .filter_map(|mut it| Some(it.get_mut("document")?.take()))
        .collect())
}

/// What a field holds, if that is a number.
fn number(value: &Value) -> Option<f64> {
    if let Some(digits) = value.get("integerValue") {
        return digits.as_str()?.parse().ok();
    }
    value.get("doubleValue")?.as_f64()
}

// === impl Query ===

impl<'a> Query<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let wrong = || {
            format!(
                "`{text}` is not a query: write `COLLECTION`, `FIELD in COLLECTION` or `100 - FIELD in COLLECTION`"
            )
        };
        let (from, field, collection) = match words[..] {
            [collection] => (None, None, collection),
            [field, "in", collection] => (None, Some(field), collection),
            [from, "-", field, "in", collection] => (
                Some(from.parse().map_err(|_| wrong())?),
                Some(field),
                collection,
            ),
            _ => return Err(wrong()),
        };
        let below = collection
            .split_once("/documents/")
            .map_or(collection, |(_, it)| it);
        let is_document = below.split('/').count() % 2 == 0;
        if is_document || below.split('/').any(str::is_empty) {
            return Err(format!("`{collection}` is not the path of a collection"));
        }
        Ok(Self {
            from,
            field,
            collection,
        })
    }

    /// The collection's whole name.
    fn path(&self, project: Option<&String>) -> Result<String, String> {
        let collection = self.collection;
        if collection.starts_with("projects/") {
            return Ok(collection.to_owned());
        }
        let project = project.ok_or_else(|| {
            format!("{PROJECT} is not set: set it, or write projects/NAME/databases/(default)/documents/{collection}")
        })?;
        Ok(format!(
            "projects/{project}/databases/(default)/documents/{collection}"
        ))
    }

    /// The document, or its name, and how much of an effect it is.
    fn row(&self, document: &Value) -> Result<Vec<String>, String> {
        let Some(field) = self.field else {
            return Ok(vec![document.to_string(), "1".to_owned()]);
        };
        let name = document.get("name").and_then(Value::as_str);
        let name = name.unwrap_or_default();
        let value = document.get("fields").and_then(|it| it.get(field));
        let held = value.and_then(number);
        let held = held.ok_or_else(|| format!("{name} has no number in `{field}`"))?;
        let count = self.from.map_or(held, |from| from - held);
        Ok(vec![name.to_owned(), count.to_string()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_says_what_it_counts() {
        let query = |from, field, collection| Query {
            from,
            field,
            collection,
        };
        assert_eq!(Query::read("orders"), Ok(query(None, None, "orders")));
        let taken = Query::read("100 - n in stock");
        assert_eq!(taken, Ok(query(Some(100.0), Some("n"), "stock")));
        let whole = "projects/p/databases/d/documents/a/b/c";
        let text = format!("n in {whole}");
        assert_eq!(Query::read(&text), Ok(query(None, Some("n"), whole)));
        for wrong in ["", "n of stock", "many - n in stock", "stock/lamp", "a//b"] {
            assert!(Query::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn collection_is_found_in_the_project_that_clients_use() {
        let path = |text, project: Option<&str>| {
            let project = project.map(str::to_owned);
            Query::read(text).unwrap().path(project.as_ref())
        };
        let stock = "projects/shop/databases/(default)/documents/stock";
        assert_eq!(path("stock", Some("shop")).as_deref(), Ok(stock));
        assert_eq!(path(stock, None).as_deref(), Ok(stock));
        assert!(path("stock", None).unwrap_err().contains(PROJECT));
    }

    #[test]
    fn documents_count_by_their_field_or_as_one() {
        let document = json!({"name": "x/lamp-a1", "fields": {"n": {"integerValue": "97"}}});
        let row = |text| Query::read(text).unwrap().row(&document);
        assert_eq!(row("100 - n in stock").unwrap(), ["x/lamp-a1", "3"]);
        assert_eq!(row("n in stock").unwrap(), ["x/lamp-a1", "97"]);
        assert_eq!(row("stock").unwrap()[1], "1");
        assert!(row("m in stock").unwrap_err().contains("`m`"));
    }
}
