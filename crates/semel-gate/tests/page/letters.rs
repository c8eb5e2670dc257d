//! Letters: grouped, tried out, redriven and discarded, one, some or all.

use super::bed::PageBed;
use crate::support::prelude::*;

/// The id of the group whose cause says this.
fn group(page: &str, cause: &str) -> String {
    let links = page.split("letters?group=").skip(1);
    let mut meant = links.filter(|link| link.split('<').next().unwrap().contains(cause));
    let link = meant
        .next()
        .unwrap_or_else(|| panic!("no {cause} in {page}"));
    link.split('"').next().unwrap().to_owned()
}

/// Tries groups out; the page of the dry run.
async fn tried(bed: &PageBed, fields: &[(&str, &str)]) -> String {
    let path = bed.acts("/ui/letters/try", fields).await;
    bed.sees(&path, ">done<").await;
    path
}

/// Does this to what was tried out, and waits for the end.
async fn does(bed: &PageBed, tried: &str, verb: &str, fields: &[(&str, &str)]) -> String {
    let path = bed.acts(&format!("{tried}/{verb}"), fields).await;
    bed.sees(&path, ">done<").await
}

#[tokio::test]
async fn a_group_says_what_each_letter_is_about() {
    let bed = PageBed::new().await;
    bed.task_heard("t1", "C-1", 422).await.is(200);
    bed.deliver("t2", "{}").await.is(200);
    let groups = bed.sees("/ui/letters", "invalid").await;
    let pages = groups.split(r#"href="letters?group="#).skip(1);
    let mut seen = String::new();
    for link in pages {
        let id = link.split('"').next().unwrap();
        seen += &bed.look(&format!("/ui/letters?group={id}")).await;
    }
    for told in [
        "order_id C-1",
        "cloud-tasks · orders · t1",
        "it has no key",
        "· t2",
    ] {
        assert!(seen.contains(told), "no {told} in {seen}");
    }
}

#[tokio::test]
async fn trying_out_nothing_is_said_where_one_can_choose() {
    let bed = PageBed::new().await;
    bed.task_heard("t1", "C-1", 422).await.is(200);
    bed.sees("/ui/letters", "failed").await;
    for (of, leads) in [
        ("", "/ui/letters?none=1"),
        ("g1", "/ui/letters?group=g1&none=1"),
    ] {
        assert_eq!(bed.acts("/ui/letters/try", &[("of", of)]).await, leads);
    }
    let page = bed.look("/ui/letters?none=1").await;
    assert!(
        page.contains(r#"role="alert""#) && page.contains("Nothing was chosen"),
        "{page}"
    );
    assert!(page.contains(r#"name="group""#), "{page}");
    assert!(!bed.look("/ui/letters").await.contains("Nothing was chosen"));
}

/// Another attempt of a task whose sender makes three.
fn attempt(number: u32) -> Ask {
    let before = (number - 1).to_string();
    Sender::Task
        .sends("t1", r#"{"order_id":"A-1"}"#)
        .header("Content-Type", "application/json")
        .header("X-CloudTasks-TaskRetryCount", &before)
}

#[tokio::test]
async fn letters_that_need_an_operator_are_counted_apart() {
    let bed = PageBed::with(|settings| {
        let route = &mut settings.routes[0];
        route.max_attempts = 0;
        terms_of(route, |terms| terms.sender_attempts.most = Some(3));
    })
    .await;
    bed.handler.says(500).says(500);
    attempt(1).send(bed.gate).await.is(500);
    let page = bed.sees("/ui/", "1 unfinished").await;
    assert!(page.contains("Nothing waits for a person"), "{page}");
    let id = bed.letters().await[0].id;
    let letter = format!("/ui/letters/{id}");
    let groups = bed.look("/ui/letters").await;
    assert!(groups.contains(">unfinished<") && !groups.contains("needs an operator"));
    let group = format!("/ui/letters?group={}", group(&groups, "kept after a run"));
    assert!(!bed.look(&group).await.contains("needs an operator"));
    let may_end = "no: its sender may deliver it again";
    assert!(bed.look(&letter).await.contains(may_end));
    for path in [&letter, &group] {
        let page = bed.look(path).await;
        assert!(page.contains("run 1 ended with status 500"), "{page}");
    }

    attempt(3).send(bed.gate).await.is(200);
    let page = bed.sees("/ui/", "1 letter needs an operator").await;
    assert!(page.contains("1 needs an operator, 1 unfinished"), "{page}");
    for path in ["/ui/letters", &group] {
        bed.sees(path, "needs an operator").await;
    }
    assert!(!bed.look(&letter).await.contains(may_end));
}

#[tokio::test]
async fn letters_are_grouped_by_route_reason_and_cause() {
    let bed = PageBed::new().await;
    for number in 0..3 {
        bed.deliver(&format!("bad-{number}"), "{}").await.is(200);
    }
    for order in ["A-1", "A-2"] {
        bed.task_heard(&format!("t-{order}"), order, 422)
            .await
            .is(200);
    }
    bed.task_heard("t3", "A-3", 500).await.is(200);
    let page = bed.sees("/ui/letters", "<strong>6</strong>").await;
    for told in [
        ">invalid<",
        ">failed<",
        ">parked<",
        "key part /order_id is missing",
    ] {
        assert!(page.contains(told), "no {told} in {page}");
    }
    let id = group(&page, "key part /order_id is missing");
    let letters = bed.look(&format!("/ui/letters?group={id}")).await;
    assert_eq!(letters.matches(r#"name="letter""#).count(), 3, "{letters}");
}

/// Each letter stands below what would become of it, with what it is about.
fn names_each_letter(page: &str) {
    for (found, order) in [
        ("would run.", "order_id A-3"),
        ("would only be closed", "order_id A-1"),
        ("would be refused without", "order_id A-2"),
    ] {
        let (_, below) = page.split_once(found).unwrap();
        let (letters, _) = below.split_once("</ul>").unwrap();
        assert!(letters.contains(order), "{found}: no {order} in {letters}");
        assert_eq!(letters.matches("<li>").count(), 1, "{letters}");
    }
}

#[tokio::test]
async fn a_group_is_tried_out_then_redriven_with_progress() {
    let bed = PageBed::new().await;
    for order in ["A-1", "A-2", "A-3"] {
        bed.task_heard(order, order, 422).await.is(200);
    }
    // One was settled by somebody since, and one lost its record.
    let mut keys = Vec::new();
    for order in ["A-1", "A-2"] {
        keys.push(bed.search(order).await.unwrap().replace("records/", ""));
    }
    let forget = format!("/records/{}/forget", keys[1]);
    Ask::post(&forget).send(bed.admin).await.is(200);
    bed.acts(
        &format!("/ui/records/{}/forget", keys[0]),
        &[("reason", "it is paid by hand")],
    )
    .await;
    bed.handler.says(200);
    bed.task("A-1-again", "A-1").await.is(200);
    let runs = bed.handler.count();

    let page = bed.sees("/ui/letters", "<strong>3</strong>").await;
    let id = group(&page, "422");
    let tried = tried(&bed, &[("group", &id)]).await;
    let page = bed.look(&tried).await;
    for told in [
        "<b>1</b> would run.",
        "<b>1</b> would only be closed",
        "<b>1</b> would be refused without",
        "a second time",
        "Dry run of work · failed: the handler's answer was 422",
    ] {
        assert!(page.contains(told), "no {told} in {page}");
    }
    assert_eq!((bed.handler.count(), bed.letters().await.len()), (runs, 3));
    names_each_letter(&page);

    let act = format!("{tried}/redrive");
    let none = bed.post(&act, &[("reason", " ")]).await;
    assert_eq!(none.status, 400);
    none.tells("an act needs a reason");

    let fields = [("reason", "the bank is back"), ("per_second", "100")];
    let page = does(&bed, &tried, "redrive", &fields).await;
    for told in [
        "<b>1</b> ran and succeeded.",
        "<b>1</b> were only closed",
        "<b>1</b> were refused and stay",
        "whether this work took effect is unknown",
    ] {
        assert!(page.contains(told), "no {told} in {page}");
    }
    assert_eq!(
        (bed.handler.count(), bed.letters().await.len()),
        (runs + 1, 1)
    );

    let fields = [
        ("reason", "it did not, we asked"),
        ("per_second", "100"),
        ("run_again", "yes"),
    ];
    does(&bed, &tried, "redrive", &fields).await;
    assert_eq!(
        (bed.handler.count(), bed.letters().await.len()),
        (runs + 2, 0)
    );

    let audit = bed.look("/ui/audit").await;
    for told in [
        "the bank is back",
        "it did not, we asked",
        "run again",
        "act from 127.0.0.1",
    ] {
        assert!(audit.contains(told), "no {told} in {audit}");
    }
}

#[tokio::test]
async fn some_letters_of_a_group_are_discarded() {
    let bed = PageBed::new().await;
    for number in 0..4 {
        bed.deliver(&format!("bad-{number}"), "{}").await.is(200);
    }
    let ids: Vec<_> = bed
        .letters()
        .await
        .iter()
        .map(|it| it.id.to_string())
        .collect();
    let tried = tried(&bed, &[("letter", &ids[0]), ("letter", &ids[2])]).await;
    assert!(bed.look(&tried).await.contains("<b>2</b> would run."));
    let page = does(
        &bed,
        &tried,
        "discard",
        &[("reason", "test orders"), ("per_second", "100")],
    )
    .await;
    assert!(page.contains("<b>2</b> were discarded."), "{page}");
    let left: Vec<_> = bed
        .letters()
        .await
        .iter()
        .map(|it| it.id.to_string())
        .collect();
    assert_eq!(left, [ids[1].clone(), ids[3].clone()]);
    bed.sees("/ui/letters", "<strong>2</strong>").await;
    let again = [("reason", "it has ended")];
    let again = bed.post(&format!("{tried}/stop"), &again).await;
    assert_eq!(again.status, 303);
    let odd = bed.post("/ui/letters/try", &[("letter", "x")]).await;
    assert_eq!(odd.status, 400);
}

#[tokio::test]
async fn an_act_on_many_is_throttled_and_can_be_stopped() {
    let bed = PageBed::new().await;
    for number in 0..5 {
        bed.deliver(&format!("bad-{number}"), "{}").await.is(200);
    }
    let page = bed.sees("/ui/letters", "<strong>5</strong>").await;
    let id = group(&page, "key part");
    let tried = tried(&bed, &[("group", &id)]).await;
    let begun = Instant::now();
    let fields = [("reason", "slowly"), ("per_second", "1")];
    let path = bed.acts(&format!("{tried}/discard"), &fields).await;
    bed.sees(&path, ">going on<").await;
    until("two are done", async || bed.letters().await.len() <= 3).await;
    assert!(
        begun.elapsed() >= Duration::from_millis(900),
        "one per second"
    );
    let early = bed
        .post(&format!("{path}/redrive"), &[("reason", "x")])
        .await;
    assert_eq!(early.status, 409);
    let stop = format!("{path}/stop");
    let unseen = [("reason", "\u{200b}")];
    assert_eq!(
        bed.post(&stop, &unseen).await.status,
        400,
        "it needs a reason"
    );
    bed.acts(&stop, &[("reason", "wrong ones")]).await;
    let page = bed.sees(&path, ">stopped<").await;
    assert!(page.contains("of <strong>5</strong> letters"), "{page}");
    assert!(bed.letters().await.len() >= 2);
    let audit = bed.look("/ui/audit").await;
    for told in [
        "begun",
        "stopped after",
        "wrong ones",
        "discard of 5 letters",
    ] {
        assert!(audit.contains(told), "no {told} in {audit}");
    }
}

#[tokio::test]
async fn one_letter_is_redriven_from_its_own_page() {
    let bed = PageBed::new().await;
    bed.task_heard("t1", "A-1", 422).await.is(200);
    let id = bed.letters().await[0].id.to_string();
    let page = bed.look(&format!("/ui/letters/{id}")).await;
    for told in [
        "POST /work",
        "x-cloudtasks-taskname: t1",
        "would run",
        "&quot;A-1&quot;",
    ] {
        assert!(page.contains(told), "no {told} in {page}");
    }
    let path = format!("/ui/letters/{id}/redrive");
    bed.handler.says(422);
    let said = bed.post(&path, &[("reason", "fixed")]).await;
    assert_eq!(said.status, 409, "it fails for good again");
    bed.acts(&path, &[("reason", "fixed")]).await;
    assert!(bed.letters().await.is_empty());
    let key = bed.key().await;
    let record = bed.look(&format!("/ui/records/{key}")).await;
    assert!(record.contains("fixed"), "{record}");
}

#[tokio::test]
async fn what_runs_is_neither_discarded_nor_an_end_of_the_job() {
    let bed = PageBed::new().await;
    for order in ["A-1", "A-2"] {
        bed.task_heard(order, order, 422).await.is(200);
    }
    let page = bed.sees("/ui/letters", "<strong>2</strong>").await;
    let id = group(&page, "422");
    let all = tried(&bed, &[("group", &id)]).await;
    let held = bed.letters().await[0].id.to_string();
    let first = tried(&bed, &[("letter", &held), ("letter", &held)]).await;
    let page = bed.look(&first).await;
    assert!(page.contains("<b>1</b> would run"), "named twice: {page}");
    bed.handler.will(Act::Hold(Say::new(200, "done")));
    let fields = [("reason", "fixed"), ("per_second", "100")];
    let first = bed.acts(&format!("{first}/redrive"), &fields).await;
    let key = bed.letters().await[0].key.unwrap();
    let running = async || bed.state(&key).await == Some(State::Running);
    until("it is running", running).await;

    let discard = format!("/ui/letters/{held}/discard");
    let said = bed.post(&discard, &[("reason", "too late")]).await;
    assert_eq!(said.status, 409);
    said.tells("its work is running");
    let page = does(&bed, &all, "redrive", &fields).await;
    assert!(page.contains("<b>1</b> are running: they stay"), "{page}");
    assert!(page.contains("<b>1</b> ran and succeeded"), "{page}");
    bed.handler.go();
    let page = bed.sees(&first, ">done<").await;
    assert!(page.contains("<b>1</b> ran and succeeded"), "{page}");
    assert!(bed.letters().await.is_empty());
}

/// Two letters of one work: it was parked, resolved as failed, and delivered again. Both are tried out.
async fn twice_kept() -> (PageBed, String) {
    let bed = PageBed::with(|settings| settings.routes[0].in_doubt = InDoubt::Park).await;
    bed.task_heard("t1", "A-1", 500).await.is(200);
    let resolve = format!("/records/{}/resolve", bed.key().await);
    let failed = Ask::post(&resolve).body(r#"{"as":"failed"}"#);
    failed.send(bed.admin).await.is(200);
    assert_eq!(bed.task("t1", "A-1").await.status, 200);
    let letters = bed.letters().await;
    let [one, other] = [0, 1].map(|nth: usize| letters[nth].id.to_string());
    let tried = tried(&bed, &[("letter", &one), ("letter", &other)]).await;
    let page = bed.look(&tried).await;
    for told in ["<b>1</b> would run.", "<b>1</b> would not run themselves"] {
        assert!(page.contains(told), "no {told} in {page}");
    }
    (bed, tried)
}

#[tokio::test]
async fn two_letters_of_one_work_run_it_once() {
    let (bed, tried) = twice_kept().await;
    let runs = bed.handler.count();
    bed.handler.says(500);
    let fields = [("reason", "fixed"), ("per_second", "1000")];
    let page = does(&bed, &tried, "redrive", &fields).await;
    for told in [
        "<b>1</b> ran and did not succeed",
        "<b>1</b> were left: the same work ran",
    ] {
        assert!(page.contains(told), "no {told} in {page}");
    }
    assert_eq!(bed.handler.count(), runs + 1);
    let key = bed.key().await;
    assert_eq!(bed.state(&key).await, Some(State::Parked));
    assert_eq!(bed.letters().await.len(), 2);
}

#[tokio::test]
async fn what_ran_for_one_letter_closes_the_others() {
    let (bed, tried) = twice_kept().await;
    let runs = bed.handler.count();
    let fields = [("reason", "fixed"), ("per_second", "1000")];
    let page = does(&bed, &tried, "redrive", &fields).await;
    for told in ["<b>1</b> ran and succeeded", "<b>1</b> were only closed"] {
        assert!(page.contains(told), "no {told} in {page}");
    }
    assert_eq!(bed.handler.count(), runs + 1);
    assert!(bed.letters().await.is_empty());
}

#[tokio::test]
async fn a_dry_run_names_the_first_letters_and_counts_the_rest() {
    let bed = PageBed::new().await;
    for number in 0..53 {
        let name = format!("bad-{number}");
        bed.deliver(&name, "{}").await.is(200);
    }
    let page = bed.sees("/ui/letters", "<strong>53</strong>").await;
    let id = group(&page, "key part /order_id is missing");
    let page = bed.look(&tried(&bed, &[("group", &id)]).await).await;
    assert!(page.contains("<b>53</b> would run."), "{page}");
    assert!(page.contains("<li>and 3 more</li>"), "{page}");
    let (_, named) = page.split_once("<b>53</b> would run.").unwrap();
    let (named, _) = named.split_once("</ul>").unwrap();
    assert_eq!(named.matches("<a href").count(), 50, "{named}");
}
