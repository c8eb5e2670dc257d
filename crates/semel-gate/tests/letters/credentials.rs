//! A letter keeps no credentials, and a redrive that fails for want of them says so.

use crate::{Aging, redrive, task, the_letter};

#[tokio::test]
async fn a_handler_that_asks_for_them_is_explained() {
    for (answer, explained) in [(401, true), (403, true), (500, false)] {
        let aging = Aging::new();
        let bed = aging.gate(|_| {}).await;
        bed.handler.says(500);
        let delivery = task().header("Authorization", "Bearer secret");
        bed.ask(delivery).await.is(200);
        let first = bed.handler.arrived().await;
        bed.handler.says(answer);
        let (status, said) = redrive(&bed, &the_letter(&bed).await, "").await;
        assert_eq!((status, &said["status"]), (409, &answer.into()), "{said}");
        let what_to_do = said["what_to_do"].as_str().unwrap();
        assert_eq!(what_to_do.contains("Authorization"), explained, "{said}");
        let second = bed.handler.arrived().await;
        let has = |headers: &[(String, String)]| {
            let mut names = headers.iter().map(|(name, _)| name);
            names.any(|name| name.eq_ignore_ascii_case("authorization"))
        };
        assert_eq!((has(&first.headers), has(&second.headers)), (true, false));
    }
}
