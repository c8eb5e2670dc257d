//! What labels cost and leave behind in the tables.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use semel::protocol::{Acted, Claim};
use semel::store::StoreExt;
use semel_postgres::{PostgresSettings, migrate};
use support::{Bed, RETENTION, age, claim};

fn labelled() -> Claim {
    Claim {
        label: "{\"order\": 7}".into(),
        ..claim()
    }
}

async fn labels(bed: &Bed) -> i64 {
    bed.ask("SELECT count(*) FROM semel.label").await
}

#[tokio::test]
async fn only_claims_with_a_label_leave_a_row_and_it_goes_with_the_record() {
    let bed = Bed::new("labels_rows").await;
    bed.grant(&claim()).await;
    assert_eq!(labels(&bed).await, 0);

    let [forgotten, expired] = [labelled(), labelled()];
    for claim in [&forgotten, &expired] {
        let lease = bed.grant(claim).await;
        bed.complete(&lease).await;
    }
    assert_eq!(labels(&bed).await, 2);
    let acted = bed.store.forget(&forgotten.key).await;
    assert_eq!(acted, Ok(Acted::Applied));
    assert_eq!(labels(&bed).await, 1);

    // The label of the incarnation before is left to the sweep.
    age(&bed.sql, 2 * RETENTION).await;
    let again = Claim {
        label: "another".into(),
        ..expired
    };
    bed.grant(&again).await;
    bed.sweep().await;
    assert_eq!(labels(&bed).await, 1);
    let record = bed.store.look(&again.key).await.unwrap().unwrap();
    assert_eq!(record.label, again.label);
    age(&bed.sql, 3 * RETENTION).await;
    bed.sweep().await;
    assert_eq!(labels(&bed).await, 0);
}

#[tokio::test]
async fn whoever_migrates_labels_belong_to_the_owner_of_the_records() {
    let bed = Bed::new("labels_owner").await;
    let owner = format!("gate_{}", std::process::id());
    let earlier = format!(
        "CREATE ROLE {owner}; ALTER TABLE semel.rec OWNER TO {owner}; DROP TABLE semel.label;
         DELETE FROM semel.migration WHERE version >= 5"
    );
    bed.execute(&earlier).await;
    let migrated = migrate(&PostgresSettings::new(&bed.url)).await.unwrap();
    assert_eq!(migrated.from, 4);
    let found: String = bed
        .ask("SELECT tableowner::text FROM pg_tables WHERE schemaname = 'semel' AND tablename = 'label'")
        .await;
    assert_eq!(found, owner);
}
