use super::*;

const SCHEMA: &str = "projects/p/schemas/state";

const FIRST: &str =
    r#"{"type":"record","name":"State","fields":[{"name":"name","type":"string"}]}"#;
const SECOND: &str = r#"{"type":"record","name":"State","fields":[{"name":"name","type":"string"},{"name":"code","type":"int","default":0}]}"#;

const OF_FIRST: &str = r#"{"name":"Utah"}"#;
const OF_SECOND: &str = r#"{"name":"Utah","code":49}"#;
const OF_NEITHER: &str = r#"{"code":49}"#;

async fn create(broker: &Broker, kind: &str, definition: &str) -> ApiResult {
    let path = "/v1/projects/p/schemas?schemaId=state";
    let body = json!({ "type": kind, "definition": definition });
    broker.post(path, body).await
}

async fn publish(broker: &Broker, data: &str) -> ApiResult {
    let message = json!({ "data": base64(data) });
    let path = format!("/v1/{TOPIC}:publish");
    broker.post(&path, json!({ "messages": [message] })).await
}

async fn topic_of(broker: &Broker, settings: Value) {
    let topic = json!({ "schemaSettings": settings });
    ok(broker.put(&format!("/v1/{TOPIC}"), topic)).await;
}

fn id_of(schema: &Value) -> String {
    schema["revisionId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_is_published_is_checked_by_the_topics_schema() {
    let broker = Broker::start(&[]).await;
    let first = create(&broker, "AVRO", FIRST).await.unwrap();
    assert_eq!(first["name"], SCHEMA);
    assert_eq!(id_of(&first).len(), 8);
    topic_of(&broker, json!({ "schema": SCHEMA, "encoding": "JSON" })).await;
    let subscription = "/v1/projects/p/subscriptions/all";
    ok(broker.put(subscription, json!({ "topic": TOPIC }))).await;
    let refused = publish(&broker, OF_NEITHER).await.unwrap_err();
    assert_eq!(refused.status, "INVALID_ARGUMENT");
    assert!(
        refused.message.contains("Message failed schema validation"),
        "{refused:?}"
    );
    ok(publish(&broker, OF_FIRST)).await;
    let path = format!("{subscription}:pull");
    let pulled = broker
        .post(&path, json!({ "maxMessages": 10 }))
        .await
        .unwrap();
    assert_eq!(pulled["receivedMessages"].as_array().unwrap().len(), 1);
    let attributes = json!({
        "googclient_schemaname": SCHEMA,
        "googclient_schemarevisionid": first["revisionId"],
        "googclient_schemaencoding": "JSON",
    });
    assert_eq!(
        pulled["receivedMessages"][0]["message"]["attributes"],
        attributes
    );
    broker.stop().await;
}

#[tokio::test]
async fn a_topic_takes_the_revisions_it_says() {
    let broker = Broker::start(&[]).await;
    let first = id_of(&create(&broker, "AVRO", FIRST).await.unwrap());
    topic_of(&broker, json!({ "schema": SCHEMA, "encoding": "JSON" })).await;
    let commit = json!({ "schema": { "type": "AVRO", "definition": SECOND } });
    let committed = broker
        .post(&format!("/v1/{SCHEMA}:commit"), commit.clone())
        .await;
    let second = id_of(&committed.unwrap());
    for data in [OF_FIRST, OF_SECOND] {
        ok(publish(&broker, data)).await;
    }
    let update = |settings: Value| {
        let topic = json!({ "schemaSettings": settings });
        json!({ "topic": topic, "updateMask": "schemaSettings.firstRevisionId" })
    };
    let path = format!("/v1/{TOPIC}");
    ok(broker.patch(&path, update(json!({ "firstRevisionId": second })))).await;
    ok(publish(&broker, OF_SECOND)).await;
    assert!(publish(&broker, OF_FIRST).await.is_err());
    let unknown = broker
        .patch(&path, update(json!({ "firstRevisionId": "0" })))
        .await;
    assert_eq!(unknown.unwrap_err().status, "NOT_FOUND");

    let path = format!("/v1/{SCHEMA}:rollback");
    let third = broker
        .post(&path, json!({ "revisionId": first }))
        .await
        .unwrap();
    assert_eq!(third["definition"], FIRST);
    let list = broker
        .get(&format!("/v1/{SCHEMA}:listRevisions?view=FULL"))
        .await
        .unwrap();
    let ids: Vec<_> = list["schemas"]
        .as_array()
        .unwrap()
        .iter()
        .map(id_of)
        .collect();
    assert_eq!(ids, [id_of(&third), second, first.clone()]);
    let old = broker.get(&format!("/v1/{SCHEMA}@{first}")).await.unwrap();
    assert_eq!(old["definition"], FIRST);
    ok(broker.delete(&format!("/v1/{SCHEMA}@{first}:deleteRevision"))).await;
    let gone = broker.get(&format!("/v1/{SCHEMA}@{first}")).await;
    assert_eq!(gone.unwrap_err().status, "NOT_FOUND");
    broker.stop().await;
}

#[tokio::test]
async fn a_revision_fits_all_that_are_kept() {
    let broker = Broker::start(&[]).await;
    let first = id_of(&create(&broker, "AVRO", FIRST).await.unwrap());
    let path = format!("/v1/{SCHEMA}:commit");
    let commit = async |definition: &str| {
        let schema = json!({ "type": "AVRO", "definition": definition });
        broker.post(&path, json!({ "schema": schema })).await
    };
    let second = id_of(&ok(commit(SECOND)).await);
    let third = SECOND.replace(r#""code","type":"int""#, r#""code","type":"string""#);
    let third = third.replace(":0", r#":"x""#);
    let refused = commit(&third).await.unwrap_err();
    assert_eq!(refused.status, "INVALID_ARGUMENT");
    for words in [
        "Compatibility checking failed to commit a schema revision",
        &format!("incompatible with previous revision: {second}. Failed with error: "),
    ] {
        assert!(refused.message.contains(words), "{refused:?}");
    }
    // Not with the second, which is the latest no more.
    ok(broker.post(
        &format!("/v1/{SCHEMA}:rollback"),
        json!({ "revisionId": first }),
    ))
    .await;
    assert!(commit(&third).await.is_err());
    ok(broker.delete(&format!("/v1/{SCHEMA}@{second}:deleteRevision"))).await;
    ok(commit(&third)).await;
    broker.stop().await;
}

#[tokio::test]
async fn editions_of_protocol_buffers_are_not_served() {
    let broker = Broker::start(&[]).await;
    let definition = "// a\n/* b */ edition = \"2023\"; message State { string name = 1; }";
    let refused = create(&broker, "PROTOCOL_BUFFER", definition).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.status, "UNIMPLEMENTED");
    assert!(
        refused.message.contains("is not served here"),
        "{refused:?}"
    );
    let remembered = ok(broker.get("/_semel/refusals")).await;
    let name = &remembered["refusals"][0]["name"];
    assert_eq!(name, "google.pubsub.v1.Schema.definition");
    broker.stop().await;
}

#[tokio::test]
async fn a_deleted_schema_stops_its_topics() {
    let broker = Broker::start(&[]).await;
    let proto = "syntax = 'proto3'; message State { string name = 1; }";
    ok(create(&broker, "PROTOCOL_BUFFER", proto)).await;
    let again = create(&broker, "PROTOCOL_BUFFER", proto).await.unwrap_err();
    assert_eq!(again.status, "ALREADY_EXISTS");
    topic_of(&broker, json!({ "schema": SCHEMA, "encoding": "BINARY" })).await;
    ok(publish(&broker, "\n\u{4}Utah")).await;
    assert!(publish(&broker, "Utah").await.is_err());
    let shown = broker.get("/_semel/schemas").await.unwrap();
    assert_eq!(shown["schemas"][0]["topics"], json!([TOPIC]));
    assert_eq!(shown["schemas"][0]["revisions"][0]["definition"], proto);
    ok(broker.delete(&format!("/v1/{SCHEMA}"))).await;
    let topic = broker.get(&format!("/v1/{TOPIC}")).await.unwrap();
    assert_eq!(topic["schemaSettings"]["schema"], "_deleted-schema_");
    let refused = publish(&broker, "\n\u{4}Utah").await.unwrap_err();
    assert_eq!(refused.status, "NOT_FOUND");
    let labels = json!({ "topic": { "labels": { "a": "b" } }, "updateMask": "labels" });
    ok(broker.patch(&format!("/v1/{TOPIC}"), labels)).await;
    let mask = json!({ "topic": {}, "updateMask": "schemaSettings" });
    ok(broker.patch(&format!("/v1/{TOPIC}"), mask)).await;
    ok(publish(&broker, "anything")).await;
    broker.stop().await;
}

#[tokio::test]
async fn schemas_and_messages_can_be_validated_without_being_kept() {
    let broker = Broker::start(&[]).await;
    let schema = |definition: &str| json!({ "type": "AVRO", "definition": definition });
    let path = "/v1/projects/p/schemas:validate";
    ok(broker.post(path, json!({ "schema": schema(FIRST) }))).await;
    let bad = broker.post(path, json!({ "schema": schema("{}") })).await;
    assert_eq!(bad.unwrap_err().status, "INVALID_ARGUMENT");
    ok(create(&broker, "AVRO", FIRST)).await;
    let validate = async |spec: Value, data: &str| {
        let mut body = spec;
        body["message"] = json!(base64(data));
        body["encoding"] = json!("JSON");
        broker
            .post("/v1/projects/p/schemas:validateMessage", body)
            .await
    };
    ok(validate(json!({ "name": SCHEMA }), OF_FIRST)).await;
    let refused = validate(json!({ "name": SCHEMA }), OF_NEITHER).await;
    assert_eq!(refused.unwrap_err().status, "INVALID_ARGUMENT");
    ok(validate(json!({ "schema": schema(SECOND) }), OF_SECOND)).await;
    let missing = validate(json!({ "name": "projects/p/schemas/none" }), OF_FIRST).await;
    assert_eq!(missing.unwrap_err().status, "NOT_FOUND");
    let list = broker.get("/v1/projects/p/schemas").await.unwrap();
    assert_eq!(list["schemas"][0]["name"], SCHEMA);
    assert!(list["schemas"][0]["definition"].is_null());
    broker.stop().await;
}

#[tokio::test]
async fn schemas_are_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::in_directory(dir.path()).await;
    let first = create(&broker, "AVRO", FIRST).await.unwrap();
    topic_of(&broker, json!({ "schema": SCHEMA, "encoding": "JSON" })).await;
    broker.stop().await;
    let broker = Broker::in_directory(dir.path()).await;
    assert_eq!(broker.get(&format!("/v1/{SCHEMA}")).await.unwrap(), first);
    assert!(publish(&broker, OF_NEITHER).await.is_err());
    ok(publish(&broker, OF_FIRST)).await;
    broker.stop().await;
}

/// `State` with so many fields more.
fn revision(more: usize) -> (String, String) {
    let fields = (0..more).map(|n| format!(r#",{{"name":"f{n}","type":"int","default":0}}"#));
    let values = (0..more).map(|n| format!(r#","f{n}":1"#));
    let definition = FIRST.replace("]}", &format!("{}]}}", fields.collect::<String>()));
    let data = OF_FIRST.replace('}', &format!("{}}}", values.collect::<String>()));
    (definition, data)
}

#[tokio::test]
async fn a_neighbour_counts_instead_of_a_bound_that_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::in_directory(dir.path()).await;
    // The more fields, the fewer messages: of each revision there is one that fits no later one.
    let mut ids = vec![id_of(&create(&broker, "AVRO", FIRST).await.unwrap())];
    let commit = format!("/v1/{SCHEMA}:commit");
    for more in 1..5 {
        let schema = json!({ "type": "AVRO", "definition": revision(more).0 });
        ids.push(id_of(
            &ok(broker.post(&commit, json!({ "schema": schema }))).await,
        ));
    }
    let bounds = |first: &str, last: &str| json!({ "schema": SCHEMA, "encoding": "JSON", "firstRevisionId": first, "lastRevisionId": last });
    topic_of(&broker, bounds(&ids[1], &ids[3])).await;
    for gone in [&ids[1], &ids[3]] {
        ok(broker.delete(&format!("/v1/{SCHEMA}@{gone}:deleteRevision"))).await;
    }
    broker.stop().await;
    let broker = Broker::in_directory(dir.path()).await;
    let path = format!("/v1/{TOPIC}");
    let deleted = "_deleted-schema-revision_";
    let shown = ok(broker.get(&path)).await["schemaSettings"].clone();
    assert_eq!(shown, bounds(deleted, deleted));
    // The second and the fourth are gone: the third is left, and a message of the fifth is one of the third, too.
    let takes_only_the_third = async || {
        for (more, taken) in [(0, false), (1, false), (2, true)] {
            let published = publish(&broker, &revision(more).1).await;
            assert_eq!(published.is_ok(), taken, "{more}: {published:?}");
        }
    };
    takes_only_the_third().await;
    let labels = json!({ "topic": { "labels": { "a": "b" } }, "updateMask": "labels" });
    ok(broker.patch(&path, labels)).await;
    let again = json!({ "topic": { "schemaSettings": shown }, "updateMask": "schemaSettings" });
    let updated = ok(broker.patch(&path, again)).await;
    assert_eq!(updated["schemaSettings"], bounds(deleted, deleted));
    takes_only_the_third().await;
    let update = async |settings: Value| {
        let topic = json!({ "schemaSettings": settings });
        let body = json!({ "topic": topic, "updateMask": "schemaSettings" });
        broker.patch(&path, body).await
    };
    ok(update(bounds(deleted, ""))).await;
    assert!(publish(&broker, OF_FIRST).await.is_err());
    for id in [deleted, &ids[3]] {
        let unknown = update(bounds(deleted, id)).await.unwrap_err();
        assert_eq!(unknown.status, "NOT_FOUND");
    }
    broker.stop().await;
}

#[tokio::test]
async fn with_no_revision_left_between_its_bounds_a_topic_says_so() {
    let broker = Broker::start(&[]).await;
    ok(create(&broker, "AVRO", FIRST)).await;
    let schema = json!({ "type": "AVRO", "definition": SECOND });
    let commit = format!("/v1/{SCHEMA}:commit");
    let only = ok(broker.post(&commit, json!({ "schema": schema }))).await;
    let only = id_of(&only);
    let bounds = json!({ "schema": SCHEMA, "encoding": "JSON", "firstRevisionId": only, "lastRevisionId": only });
    topic_of(&broker, bounds).await;
    ok(publish(&broker, OF_SECOND)).await;
    ok(broker.delete(&format!("/v1/{SCHEMA}@{only}:deleteRevision"))).await;
    let refused = publish(&broker, OF_SECOND).await.unwrap_err();
    assert_eq!(refused.status, "INVALID_ARGUMENT");
    let why = "no revision of the schema is left between the topic's first and last one";
    assert!(refused.message.contains(why), "{refused:?}");
    broker.stop().await;
}

#[tokio::test]
async fn a_schema_is_made_under_its_id_only_and_no_topic_with_one_that_is_gone() {
    let broker = Broker::start(&[]).await;
    let schema = |name: &str| json!({ "name": name, "type": "AVRO", "definition": FIRST });
    for name in ["projects/elsewhere/schemas/state", SCHEMA, ""] {
        let made = broker.post("/v1/projects/p/schemas", schema(name)).await;
        assert_eq!(made.unwrap_err().status, "INVALID_ARGUMENT", "{name}");
    }
    let path = "/v1/projects/p/schemas?schemaId=state";
    let made = ok(broker.post(path, schema("projects/elsewhere/schemas/state"))).await;
    assert_eq!(made["name"], SCHEMA);
    let gone = json!({ "schemaSettings": { "schema": "_deleted-schema_", "encoding": "JSON" } });
    let refused = broker.put(&format!("/v1/{TOPIC}"), gone).await;
    assert_eq!(refused.unwrap_err().status, "INVALID_ARGUMENT");
    broker.stop().await;
}

#[tokio::test]
async fn pages_of_revisions_go_on_where_they_ended() {
    let broker = Broker::start(&[]).await;
    let first = id_of(&create(&broker, "AVRO", FIRST).await.unwrap());
    let commit = json!({ "schema": { "type": "AVRO", "definition": SECOND } });
    let path = format!("/v1/{SCHEMA}:commit");
    let second = id_of(&ok(broker.post(&path, commit.clone())).await);
    let list = format!("/v1/{SCHEMA}:listRevisions?pageSize=1");
    let page = broker.get(&list).await.unwrap();
    assert_eq!(id_of(&page["schemas"][0]), second);
    ok(broker.post(&path, commit)).await;
    let token = page["nextPageToken"].as_str().unwrap();
    let page = broker.get(&format!("{list}&pageToken={token}")).await;
    assert_eq!(id_of(&page.unwrap()["schemas"][0]), first);
    broker.stop().await;
}
