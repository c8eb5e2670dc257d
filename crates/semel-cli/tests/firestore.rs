//! A gate with the Firestore store, and a handler that completes in the commit that makes its own writes.

use crate::support::gate::{Gate, GateFile};
use crate::support::said::{Said, Says, command};
use crate::support::sender::deliver;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use prost_types::Timestamp;
use semel::Outcome;
use semel_firestore::proto::batch_get_documents_response::Result as Got;
use semel_firestore::proto::firestore_client::FirestoreClient;
use semel_firestore::proto::precondition::ConditionType;
use semel_firestore::proto::value::ValueType;
use semel_firestore::proto::write::Operation;
use semel_firestore::proto::{
    BatchGetDocumentsRequest, CommitRequest, Document, DocumentMask, Precondition, Value, Write,
};
use semel_rig::http::Request;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use testbed::{Certificates, Google, Validity};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};

const ROUTE: &str = "[[route]]\nname = \"orders\"\npath = \"/*\"\nsource = \"api\"\ncaller = \"shared\"\n\
                     completes = \"handler\"\nfinal = [409]\nretention = \"1h\"\nhorizon = \"1h\"\n";

/// The pieces that are there before anything happens.
const PIECES: i64 = 2;

/// A shop whose stock and records are in one database.
struct Shop {
    client: FirestoreClient<Channel>,
    database: String,
    runs: AtomicU32,
}

/// What was read.
type Seen = HashMap<String, Document>;

// === impl Shop ===

impl Shop {
    async fn open(emulator: &str, project: &str) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{emulator}")).unwrap();
        let shop = Self {
            client: FirestoreClient::new(endpoint.connect().await.unwrap()),
            database: format!("projects/{project}/databases/(default)"),
            runs: AtomicU32::new(0),
        };
        shop.commit(vec![shop.stock(PIECES, None)]).await.unwrap();
        shop
    }

    fn name(&self, path: &str) -> String {
        format!("{}/documents/{path}", self.database)
    }

    fn stock(&self, pieces: i64, version: Option<Timestamp>) -> Write {
        let fields = HashMap::from([("pieces".into(), value(ValueType::IntegerValue(pieces)))]);
        update(self.name("stock/hammer"), fields, version)
    }

    async fn read(&self, paths: &[String]) -> (Seen, Timestamp) {
        let mut request = tonic::Request::new(BatchGetDocumentsRequest {
            database: self.database.clone(),
            documents: paths.iter().map(|path| self.name(path)).collect(),
            mask: None,
        });
        let owner = MetadataValue::from_static("Bearer owner");
        request.metadata_mut().insert("authorization", owner);
        let got = self.client.clone().batch_get_documents(request).await;
        let mut got = got.unwrap().into_inner();
        let (mut seen, mut now) = (Seen::new(), None);
        while let Some(one) = got.message().await.unwrap() {
            now = one.read_time.or(now);
            if let Some(Got::Found(document)) = one.result {
                let path = document.name.rsplit("/documents/").next().unwrap();
                seen.insert(path.to_owned(), document);
            }
        }
        (seen, now.unwrap())
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<(), tonic::Status> {
        let mut request = tonic::Request::new(CommitRequest {
            database: self.database.clone(),
            writes,
        });
        let owner = MetadataValue::from_static("Bearer owner");
        request.metadata_mut().insert("authorization", owner);
        self.client.clone().commit(request).await.map(drop)
    }

    async fn pieces(&self) -> i64 {
        let (seen, _) = self.read(&["stock/hammer".into()]).await;
        int(&seen["stock/hammer"], "pieces")
    }
}

/// Takes a piece and completes, both in one commit. What `semel.firestore.complete` does in Python.
async fn take(
    State(shop): State<Arc<Shop>>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, String) {
    shop.runs.fetch_add(1, Ordering::SeqCst);
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let record_path = format!("semel_records/{}", header("semel-key"));
    let (seen, now) = shop
        .read(&["stock/hammer".into(), record_path.clone()])
        .await;
    let (stock, record) = (&seen["stock/hammer"], &seen[&record_path]);
    assert_eq!(int(record, "fence").to_string(), header("semel-fence"));
    let left = int(stock, "pieces") - 1;
    if left < 0 {
        return (StatusCode::CONFLICT, "too little".into());
    }
    let answer = format!("{left} left");
    let now = now.seconds * 1_000_000 + i64::from(now.nanos) / 1_000;
    let done = Outcome::new(200, answer.clone()).encode();
    let fields = HashMap::from([
        ("state".into(), value(ValueType::IntegerValue(2))),
        ("lease_until".into(), value(ValueType::IntegerValue(now))),
        ("result".into(), value(ValueType::BytesValue(done))),
    ]);
    let mask = fields.keys().cloned().collect();
    let mut completion = update(shop.name(&record_path), fields, record.update_time);
    completion.update_mask = Some(DocumentMask { field_paths: mask });
    let stock = shop.stock(left, stock.update_time);
    shop.commit(vec![stock, completion]).await.unwrap();
    match body.as_str() {
        // The gate hears another word than the one that was committed.
        "lies" => (StatusCode::INTERNAL_SERVER_ERROR, "never mind".into()),
        _ => (StatusCode::OK, answer),
    }
}

fn update(name: String, fields: HashMap<String, Value>, version: Option<Timestamp>) -> Write {
    Write {
        operation: Some(Operation::Update(Document {
            name,
            fields,
            create_time: None,
            update_time: None,
        })),
        update_mask: None,
        current_document: version.map(|version| Precondition {
            condition_type: Some(ConditionType::UpdateTime(version)),
        }),
    }
}

fn value(value: ValueType) -> Value {
    Value {
        value_type: Some(value),
    }
}

fn int(document: &Document, name: &str) -> i64 {
    match document.fields[name].value_type {
        Some(ValueType::IntegerValue(number)) => number,
        ref other => panic!("{name}: {other:?}"),
    }
}

fn order(id: &str, body: &str) -> Request {
    Request::post("/take", Bytes::copy_from_slice(body.as_bytes())).header("Idempotency-Key", id)
}

#[test]
fn handler_completes_in_its_own_commit_and_the_gate_tells_what_was_committed() {
    let Some(emulator) = testbed::firestore_host().unwrap() else {
        return;
    };
    let project = format!("gate-{}", std::process::id());
    let runtime = Runtime::new().unwrap();
    let shop = Arc::new(runtime.block_on(Shop::open(&emulator, &project)));
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().fallback(take).with_state(Arc::clone(&shop));
    runtime.spawn(async move { axum::serve(listener, router).await });
    let file = GateFile::write(&format!("firestore://{project}"), port, ROUTE);
    let mut command = file.command();
    let gate = Gate::start_by(command.env("FIRESTORE_EMULATOR_HOST", &emulator), file);
    // The emulator keeps everything in memory.
    gate.log().lacks("proved: exactly-once");

    for (id, body, status, says, replayed) in [
        ("one", "", 200, "1 left", None),
        ("one", "", 200, "1 left", Some("true")),
        // Whatever the handler answers, its commit is the truth.
        ("two", "lies", 200, "0 left", None),
        ("two", "lies", 200, "0 left", Some("true")),
        // A refusal is final: it is replayed.
        ("three", "", 409, "too little", None),
        ("three", "", 409, "too little", Some("true")),
    ] {
        let heard = deliver(gate.port, &order(id, body));
        assert_eq!((heard.status, &*heard.body), (status, says), "{id}");
        assert_eq!(heard.header("idempotent-replayed"), replayed, "{id}");
    }
    assert_eq!(runtime.block_on(shop.pieces()), 0);
    // It stays so after a restock.
    let restock = shop.commit(vec![shop.stock(PIECES, None)]);
    runtime.block_on(restock).unwrap();
    let heard = deliver(gate.port, &order("three", ""));
    assert_eq!((heard.status, &*heard.body), (409, "too little"));
    assert_eq!(runtime.block_on(shop.pieces()), PIECES);
    assert_eq!(shop.runs.load(Ordering::SeqCst), 3);
}

/// The store behind TLS, which hears what Google says where the emulator has nothing to say.
fn google() -> (Certificates, Google, String) {
    let ca = Certificates::new().unwrap();
    let certificate = ca.issue("google", "DNS:localhost", Validity::Now).unwrap();
    let google = Google::start(&certificate, None).unwrap();
    let (endpoint, root) = (google.endpoint("localhost"), ca.root());
    let root = root.display();
    let url = format!("firestore://shop-prod?endpoint={endpoint}&ssl_ca_certs={root}");
    (ca, google, url)
}

/// How the gate and an operator's command end.
fn ended(store: &str, variables: &[(&str, &str)]) -> [Said; 2] {
    let file = GateFile::write(store, 9, ROUTE);
    let mut gate = file.command();
    let mut list = command("records list --store");
    [gate.arg("--fail-fast"), list.arg(store)]
        .map(|it| it.envs(variables.iter().copied()).output().unwrap().into())
}

#[test]
fn what_google_refuses_ends_the_gate_and_commands_with_what_to_do() {
    for (status, said, says) in [
        (
            9,
            "The Cloud Firestore API is not available for Firestore in Datastore Mode database \
             projects/shop-prod/databases/(default).",
            "name a database in Native mode",
        ),
        (
            5,
            "The database (default) does not exist for project shop-prod",
            "gcloud firestore databases create",
        ),
        (
            7,
            "Missing or insufficient permissions.",
            "give it the role roles/datastore.user",
        ),
        (
            7,
            "Permission denied on resource project shop-prod.",
            "there is no project with the id shop-prod",
        ),
    ] {
        let (_ca, google, url) = google();
        google.refuse("", status, said);
        for heard in ended(&url, &[("GCE_METADATA_HOST", &google.metadata_host())]) {
            heard.ends(64, says);
            heard.stderr.has("nothing was written, a retry is safe");
            assert_eq!(heard.stderr.matches(said).count(), 1, "{heard:?}");
        }
    }
}

#[test]
fn certificate_that_does_not_hold_ends_the_gate_and_commands() {
    let (_ca, google, url) = google();
    let by_address = url.replace("localhost", "127.0.0.1");
    for heard in ended(
        &by_address,
        &[("GCE_METADATA_HOST", &google.metadata_host())],
    ) {
        heard.ends(64, "is for another host (localhost)");
    }
}

#[test]
fn emulator_that_is_not_there_and_alias_of_a_project_are_named() {
    let nobody = format!("127.0.0.1:{}", testbed::free_port().unwrap());
    for heard in ended(
        "firestore://shop-prod",
        &[("FIRESTORE_EMULATOR_HOST", &nobody)],
    ) {
        heard.ends(69, &format!("(emulator at {nobody}) is not there"));
        heard
            .stderr
            .has("start it, or unset FIRESTORE_EMULATOR_HOST; a retry is safe");
    }
    for heard in ended("firestore://prod", &[]) {
        heard.ends(64, "an alias of .firebaserc");
    }
}

#[test]
fn credentials_are_found_where_googles_clients_find_them() {
    let home = tempfile::tempdir().unwrap();
    let write = |path: &str| {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, r#"{"type":"external_account"}"#).unwrap();
        path.display().to_string()
    };
    let given = write("given.json");
    let of_gcloud = write(".config/gcloud/application_default_credentials.json");
    let elsewhere = write("elsewhere/application_default_credentials.json");
    let directory = home.path().join("elsewhere").display().to_string();
    let home = home.path().display().to_string();
    let in_home = ("HOME", &*home);
    let in_directory = ("CLOUDSDK_CONFIG", &*directory);
    for (variables, found) in [
        (&[in_home][..], of_gcloud),
        (&[in_home, in_directory], elsewhere),
        (
            &[
                in_home,
                in_directory,
                ("GOOGLE_APPLICATION_CREDENTIALS", &given),
            ],
            given.clone(),
        ),
    ] {
        for heard in ended("firestore://shop-prod", variables) {
            heard.ends(64, &format!("the credentials file {found} is of type"));
        }
    }
}

#[test]
fn without_credentials_it_is_said_how_to_name_them() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().display().to_string();
    let nobody = format!("127.0.0.1:{}", testbed::free_port().unwrap());
    let variables = [("HOME", &*home), ("GCE_METADATA_HOST", &*nobody)];
    for heard in ended("firestore://shop-prod", &variables) {
        heard.ends(
            69,
            "elsewhere set GOOGLE_APPLICATION_CREDENTIALS to a credentials file",
        );
    }
}
