//! A letter keeps no credentials, and a redrive that fails for want of them says so.

use super::{Aging, task};
use crate::support::prelude::*;

#[tokio::test]
async fn a_handler_that_asks_for_them_is_explained() {
    for (answer, explained) in [(401, true), (403, true), (500, false)] {
        let bed = Aging::new().await;
        bed.handler.says(500);
        let delivery = task().header("Authorization", "Bearer secret");
        let first = bed.forwards(delivery).await;
        bed.handler.says(answer);
        let said = bed.redrive(bed.letter().await).await;
        said.is(409, &json!({"status": answer}));
        let explains = said.word("what_to_do").contains("Authorization");
        assert_eq!(explains, explained, "{said:?}");
        let second = bed.handler.arrived().await;
        assert!(first.header("authorization").is_some());
        second.lacks("authorization");
    }
}
