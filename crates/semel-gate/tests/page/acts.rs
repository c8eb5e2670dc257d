//! In doubt and parked: somebody decides, with a reason, and it is audited.

use super::bed::{PageBed, hidden};
use crate::support::prelude::*;

async fn parked(bed: &PageBed) -> String {
    bed.task_heard("t1", "A-1", 500).await.is(200);
    bed.handler.says(200);
    bed.sees("/ui/doubt", "order_id A-1").await;
    bed.key().await.to_string()
}

#[tokio::test]
async fn parked_work_is_listed_with_what_is_known() {
    let bed = PageBed::new().await;
    let key = parked(&bed).await;
    let page = bed.look("/ui/doubt").await;
    for told in [
        "1 record waits",
        "the last run answered 500",
        &format!("records/{key}"),
    ] {
        assert!(page.contains(told), "no {told} in {page}");
    }
    let record = bed.look(&format!("/ui/records/{key}")).await;
    for told in [
        "did not succeed",
        "It took effect.",
        "It did not take effect, and shall not.",
        "twice</strong>",
        "Reason, for the audit",
        "Letters",
    ] {
        assert!(record.contains(told), "no {told} in {record}");
    }
}

#[tokio::test]
async fn a_person_says_that_it_is_done() {
    let bed = PageBed::new().await;
    let key = parked(&bed).await;
    let path = format!("/ui/records/{key}/resolve");
    let none = bed
        .post(&path, &[("as", "succeeded"), ("reason", "")])
        .await;
    assert_eq!(none.status, 400);
    // Nor with one that nobody can see.
    let path_of = |act: &str| format!("/ui/records/{key}/{act}");
    for act in ["resolve", "release", "forget"] {
        let fields = [("as", "succeeded"), ("reason", "\u{200b}\u{202e} ")];
        let unseen = bed.post(&path_of(act), &fields).await;
        assert_eq!(unseen.status, 400, "{act}: {unseen:?}");
        assert!(unseen.text().contains("an act needs a reason"), "{act}");
    }
    assert_eq!(bed.state(&key.parse().unwrap()).await, Some(State::Parked));

    let why = "the bank has it: receipt 12";
    let leads = bed
        .acts(&path, &[("as", "succeeded"), ("reason", why)])
        .await;
    let page = bed.look(&leads).await;
    assert!(
        page.contains("parked → succeeded") && page.contains(why),
        "{page}"
    );
    // Its letter is closed by the act.
    assert!(!page.contains("../letters/"), "{page}");
    // The doubt was about this very run, and is over.
    assert!(!page.contains("for certain"), "{page}");
    bed.task("t1", "A-1").await.is_replay(200);
    assert_eq!(bed.handler.count(), 1);
    let page = bed.look("/ui/doubt").await;
    assert!(
        page.contains("Nothing is parked."),
        "a list shows what is true now: {page}"
    );
    let seen = [("seen", "succeeded with fence 2"), ("fence", "1")];
    let again = [("as", "failed"), ("reason", "x"), seen[0], seen[1]];
    assert_eq!(bed.post(&path, &again).await.status, 409);
    let audit = bed.look("/ui/audit").await;
    for told in [why, "resolve", "parked → succeeded", "by page"] {
        assert!(audit.contains(told), "no {told} in {audit}");
    }
}

#[tokio::test]
async fn a_person_says_that_it_is_not_done_or_lets_it_run_again() {
    for (verdict, state, runs) in [("failed", State::Failed, 1), ("retry", State::Waiting, 2)] {
        let bed = PageBed::new().await;
        let key = parked(&bed).await;
        let path = format!("/ui/records/{key}/resolve");
        bed.acts(&path, &[("as", verdict), ("reason", "asked")])
            .await;
        assert_eq!(bed.state(&key.parse().unwrap()).await, Some(state));
        bed.task("t1", "A-1").await;
        assert_eq!(bed.handler.count(), runs, "{verdict}");
    }
}

#[tokio::test]
async fn a_form_that_was_left_open_decides_nothing_about_a_later_run() {
    let bed = PageBed::new().await;
    bed.task_heard("t1", "A-1", 500).await.is(200);
    let key = bed.key().await;
    let record = format!("/ui/records/{key}");
    let page = bed.look(&record).await;
    let seen = ["seen", "fence"].map(|name| (name, hidden(&page, name).unwrap()));
    let decides = async |verb: &str, verdict: &str| {
        let fields = [("as", verdict), ("reason", "left open"), seen[0], seen[1]];
        bed.post(&format!("{record}/{verb}"), &fields).await
    };
    let parked = Some(State::Parked);
    // Somebody else lets it run again, and it fails again.
    let retry = [("as", "retry"), ("reason", "the first to decide")];
    bed.acts(&format!("{record}/resolve"), &retry).await;
    bed.task_heard("t1", "A-1", 500).await.is(200);
    assert_eq!((bed.state(&key).await, bed.handler.count()), (parked, 2));
    for (verb, verdict) in [("resolve", "succeeded"), ("release", ""), ("forget", "")] {
        let said = decides(verb, verdict).await;
        assert_eq!(said.status, 409, "{verb}: {said:?}");
        said.tells("nothing was done");
        assert_eq!(bed.state(&key).await, parked);
    }
}

#[tokio::test]
async fn acts_of_every_way_are_in_one_audit_with_their_reasons() {
    let bed = PageBed::new().await;
    bed.task("t1", "A-1").await;
    let key = bed.key().await;
    let json = format!("/records/{key}/forget?why=by%20hand");
    Ask::post(&json).send(bed.admin).await.is(200);
    bed.task("t1", "A-1").await;
    bed.acts(
        &format!("/ui/records/{key}/forget"),
        &[("reason", "by page")],
    )
    .await;
    let audit = bed.look("/ui/audit").await;
    for told in [
        "by hand",
        "by page",
        "by admin",
        "succeeded → absent",
        "promise void",
    ] {
        assert!(audit.contains(told), "no {told} in {audit}");
    }
    assert!(audit.contains("The log has all of them"));
    let page = bed.get(&format!("/ui/records/{key}")).await;
    page.tells("Its record is gone");
}

#[tokio::test]
async fn a_run_that_lost_its_lease_is_stuck_and_can_be_decided() {
    let bed = PageBed::with(|settings| {
        terms_of(&mut settings.routes[0], |terms| {
            terms.lease = Duration::from_secs(30)
        });
    })
    .await;
    bed.handler.will(Act::Hold(Say::new(200, "done")));
    let gate = bed.gate;
    let ask = Sender::Task.sends("t1", r#"{"order_id":"A-1"}"#);
    let held = tokio::spawn(ask.header("Content-Type", "application/json").send(gate));
    bed.handler.arrived().await;
    let page = bed.sees("/ui/running", "order_id A-1").await;
    assert!(
        page.contains(">running<") && page.contains("lease renewed"),
        "{page}"
    );
    let key = bed.key().await;
    let record = bed.look(&format!("/ui/records/{key}")).await;
    assert!(record.contains("The run loses its right."), "{record}");
    bed.acts(
        &format!("/ui/records/{key}/release"),
        &[("reason", "it hangs")],
    )
    .await;
    assert_eq!(bed.state(&key).await, Some(State::Waiting));
    let record = bed.look(&format!("/ui/records/{key}")).await;
    assert!(
        record.contains("release by act from 127.0.0.1 (page): it hangs"),
        "{record}"
    );
    bed.handler.go();
    assert_eq!(held.await.unwrap().status, 409, "its run is stale");
    bed.sees("/ui/running", "Nothing is running").await;
}
