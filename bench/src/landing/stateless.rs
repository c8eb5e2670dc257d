//! Deliveries through a route without records, against one with records on the embedded store.

use std::sync::Arc;

use crate::gate::deliveries::{CONNECTIONS, Rate, Reach};
use crate::gate::semel::{self, Binary};
use crate::gate::wrk::Names;
use crate::report::{Group, Row, Target};
use crate::rounds::{Pace, rounds};
use crate::upstream::Upstream;

pub(crate) async fn measure(binary: &Binary, pace: Pace) -> anyhow::Result<Group> {
    let handler = Arc::new(Upstream::start().await?);
    let (none, _) = semel::start_watched(binary, &handler, "record = \"none\"\n", &[]).await?;
    let (recorded, _) = semel::start_watched(binary, &handler, "", &[]).await?;
    let fresh = |port| Rate::boxed(port, Names::Fresh, Reach::Handler(Arc::clone(&handler)));
    let [stateless, recorded] = rounds(
        [
            ("without records", fresh(none.port)),
            ("with records", fresh(recorded.port)),
        ],
        pace,
    )
    .await?;
    Ok(Group {
        title: "Routes without records",
        conditions: vec![format!(
            "POST of 1 KiB JSON as Cloud Tasks sends it, each under a new name, wrk with {CONNECTIONS} connections; records on \
             the embedded store."
        )],
        rows: vec![
            Row::rate("deliveries, record = \"none\"", &stateless)
                .beside("recorded", &recorded)
                .judged(Target::RatioAtLeast(1.0)),
        ],
    })
}
