//! A cookie that came in pieces.

use crate::support::prelude::*;

#[tokio::test]
async fn pieces_of_a_cookie_are_joined_before_they_reach_the_handler() {
    let bed = Bed::with(|settings| pass(settings, &["/static/*"])).await;
    for ask in [Sender::Api.sends("k", "{}"), Ask::post("/static/x")] {
        let pieces = ask.header("cookie", "a=1").header("cookie", "b=2; c=3");
        let seen = bed.forwards(pieces.header("Cookie", "d=4").h2c()).await;
        seen.has("cookie", "a=1; b=2; c=3; d=4");
    }
}
