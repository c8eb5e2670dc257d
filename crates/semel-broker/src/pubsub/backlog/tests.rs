use super::*;
use AckOutcome::{Acknowledging, Done};

mod acknowledge;
mod storm;

const SECOND: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(10);
const ALL: Capacity = Capacity {
    messages: 1000,
    bytes: usize::MAX,
};

/// One message at a time.
const ONE: Capacity = Capacity { messages: 1, ..ALL };

fn ordered() -> DeliveryPolicy {
    DeliveryPolicy {
        ordered: true,
        ..policy()
    }
}

pub(super) fn policy() -> DeliveryPolicy {
    DeliveryPolicy {
        ordered: false,
        exactly_once: false,
        retain_acked: false,
        ack_deadline: DEADLINE,
        retention: SECOND * 3600,
        retry: None,
        attempts_max: None,
    }
}

pub(super) fn at(seconds: u32) -> Time {
    Time(0).plus(SECOND * seconds)
}

pub(super) fn new_message(sequence: Sequence, key: &str, published: Time) -> NewMessage {
    NewMessage {
        sequence,
        bytes: 100,
        published,
        key: key.into(),
        attempts: 0,
        acknowledged: false,
    }
}

fn backlog(policy: DeliveryPolicy, keys: &[&str]) -> Backlog {
    let mut backlog = Backlog::new(policy, 0);
    for (sequence, key) in (1..).zip(keys) {
        backlog.add(new_message(sequence, key, at(0)), at(0));
    }
    backlog
}

pub(super) fn take(
    backlog: &mut Backlog,
    now: Time,
    consumer: Consumer,
    capacity: Capacity,
) -> Vec<Lease> {
    backlog
        .take(now, consumer, DEADLINE, capacity, &mut |_, _| {
            Plan::default()
        })
        .leased
}

fn sequences(leased: &[Lease]) -> Vec<Sequence> {
    leased.iter().map(|it| it.sequence).collect()
}

/// Takes everything; answers the sequences.
fn all(backlog: &mut Backlog, now: Time, consumer: Consumer) -> Vec<Sequence> {
    sequences(&take(backlog, now, consumer, ALL))
}

#[test]
fn a_message_is_given_out_once_until_its_deadline() {
    let mut backlog = backlog(policy(), &["", ""]);
    assert_eq!(all(&mut backlog, at(0), Consumer::Pull(1)), [1, 2]);
    assert!(all(&mut backlog, at(5), Consumer::Pull(2)).is_empty());
    assert_eq!(backlog.next_moment(at(0)), Some(at(10)));
    assert_eq!(backlog.expire(at(9)), []);
    assert_eq!(backlog.expire(at(10)).len(), 2);
    assert_eq!(all(&mut backlog, at(10), Consumer::Pull(2)), [1, 2]);
}

#[test]
fn an_extension_moves_the_deadline_and_a_refusal_ends_it() {
    let mut backlog = backlog(policy(), &[""]);
    let first = &take(&mut backlog, at(0), Consumer::Pull(1), ALL)[0];
    assert_eq!(backlog.extend(1, first.delivery, SECOND * 60, at(1)), Done);
    assert_eq!(backlog.expire(at(30)), []);
    let (outcome, ended) = backlog.refuse(1, first.delivery, at(30));
    assert_eq!((outcome, ended.len()), (Done, 1));
    let again = &take(&mut backlog, at(30), Consumer::Pull(1), ALL)[0];
    assert_eq!((again.sequence, again.attempt), (1, 2));
}

#[test]
fn pauses_grow_with_the_attempts() {
    let policy = DeliveryPolicy {
        retry: Some((SECOND * 10, SECOND * 35)),
        ..policy()
    };
    let mut backlog = backlog(policy, &[""]);
    let mut now = at(0);
    let mut pauses = Vec::new();
    for _ in 0..4 {
        let delivery = take(&mut backlog, now, Consumer::Pull(1), ALL)[0].delivery;
        backlog.refuse(1, delivery, now);
        let next = backlog.next_moment(now).unwrap();
        pauses.push(next.since(now).as_secs());
        now = next;
    }
    assert_eq!(pauses, [10, 20, 35, 35]);
}

#[test]
fn a_key_is_with_one_taker_and_in_order() {
    let mut backlog = backlog(ordered(), &["a", "a", "b", "a", ""]);
    let stream = Consumer::Stream(1);
    let first = take(&mut backlog, at(0), stream, ONE);
    assert_eq!(sequences(&first), [1]);
    assert_eq!(all(&mut backlog, at(0), Consumer::Stream(2)), [3, 5]);
    // The same stream gets the following ones.
    let more = take(&mut backlog, at(1), stream, ONE);
    assert_eq!(sequences(&more), [2]);
    // The first comes back, and with it the one after.
    let (_, ended) = backlog.refuse(1, first[0].delivery, at(2));
    assert_eq!(ended.len(), 2);
    assert_eq!(all(&mut backlog, at(2), Consumer::Pull(9)), [1, 2, 4]);
}

#[test]
fn a_push_gets_one_of_a_key_at_a_time() {
    let policy = DeliveryPolicy {
        ordered: true,
        retry: Some((SECOND * 10, SECOND * 10)),
        ..policy()
    };
    let mut backlog = backlog(policy, &["a", "a", "b"]);
    let first = take(&mut backlog, at(0), Consumer::Push, ALL);
    assert_eq!(sequences(&first), [1, 3]);
    // A pause of the first is a pause of its key.
    backlog.refuse(1, first[0].delivery, at(0));
    assert!(all(&mut backlog, at(9), Consumer::Push).is_empty());
    let again = take(&mut backlog, at(10), Consumer::Push, ALL);
    assert_eq!(sequences(&again), [1]);
    backlog.acknowledge(1, again[0].delivery, at(10));
    assert!(all(&mut backlog, at(10), Consumer::Push).is_empty());
    backlog.acknowledged(1);
    assert_eq!(all(&mut backlog, at(10), Consumer::Push), [2]);
    // Its calls end by themselves.
    assert_eq!(backlog.next_moment(at(10)), None);
}

#[test]
fn a_taker_has_no_more_than_its_room() {
    let mut backlog = backlog(policy(), &["", "", "", ""]);
    let capacity = Capacity {
        messages: 10,
        bytes: 250,
    };
    let leased = take(&mut backlog, at(0), Consumer::Stream(1), capacity);
    assert_eq!(sequences(&leased), [1, 2]);
    let load = backlog.load(Consumer::Stream(1));
    assert_eq!((load.messages, load.bytes), (2, 200));
    assert_eq!(backlog.waiting(), 2);
}

#[test]
fn what_is_too_old_is_dropped() {
    let policy = DeliveryPolicy {
        retention: SECOND * 600,
        ..policy()
    };
    let mut backlog = backlog(policy, &["", ""]);
    backlog.add(new_message(3, "", at(300)), at(300));
    let mut plan = |_, _| Plan::default();
    let take = backlog.take(at(600), Consumer::Pull(1), DEADLINE, ALL, &mut plan);
    assert_eq!(take.dropped, [1, 2]);
    assert_eq!(sequences(&take.leased), [3]);
    assert_eq!(backlog.unfinished(), 1);
}

#[test]
fn a_seek_brings_back_what_was_retained_and_skips_what_is_older() {
    let policy = DeliveryPolicy {
        retain_acked: true,
        ..policy()
    };
    let mut backlog = Backlog::new(policy, 0);
    for sequence in 1..=3 {
        let moment = at(u32::try_from(sequence).unwrap());
        backlog.add(new_message(sequence, "", moment), moment);
    }
    let leased = take(&mut backlog, at(5), Consumer::Pull(1), ALL);
    for it in &leased {
        assert_eq!(
            backlog.acknowledge(it.sequence, it.delivery, at(5)).0,
            Acknowledging
        );
        backlog.acknowledged(it.sequence);
    }
    assert_eq!(backlog.unfinished(), 0);
    let back = backlog.seek(at(2));
    assert_eq!(back.restart, [2, 3]);
    assert!(back.acknowledge.is_empty());
    backlog.apply_seek(&back, at(6));
    let again = take(&mut backlog, at(6), Consumer::Pull(1), ALL);
    assert_eq!(sequences(&again), [2, 3]);
    // Its attempts are counted anew, as they are in storage.
    assert_eq!(again[0].attempt, 1);
    let forth = backlog.seek(at(100));
    assert_eq!(forth.acknowledge, [2, 3]);
    backlog.apply_seek(&forth, at(7));
    assert_eq!(backlog.unfinished(), 0);
    // What is retained is thrown away one day.
    assert_eq!(backlog.next_moment(at(7)), Some(at(3601)));
}

#[test]
fn a_seek_in_time_releases_what_is_leased() {
    let policy = DeliveryPolicy {
        exactly_once: true,
        ..policy()
    };
    let mut backlog = backlog(policy, &["", "k", "k"]);
    let leased = take(&mut backlog, at(1), Consumer::Stream(7), ALL);
    assert_eq!(sequences(&leased), [1, 2, 3]);
    let back = backlog.seek(Time::default());
    assert_eq!(back.restart, [1, 2, 3]);
    assert_eq!(backlog.apply_seek(&back, at(2)).len(), 3);
    assert_eq!(backlog.load(Consumer::Stream(7)), Load::default());
    let again = take(&mut backlog, at(2), Consumer::Pull(1), ALL);
    assert_eq!(sequences(&again), [1, 2, 3]);
    // The first lease counts no more.
    let stale = backlog.acknowledge(1, leased[0].delivery, at(3)).0;
    assert_ne!(stale, Acknowledging);
}

#[test]
fn a_seek_in_time_voids_what_was_delivered_before_it() {
    let policy = DeliveryPolicy {
        retry: Some((SECOND * 60, SECOND * 600)),
        ..policy()
    };
    let mut backlog = backlog(policy, &["", ""]);
    let leased = take(&mut backlog, at(1), Consumer::Pull(1), ALL);
    backlog.refuse(2, leased[1].delivery, at(1));
    let back = backlog.seek(Time::default());
    backlog.apply_seek(&back, at(2));
    for it in &leased {
        let late = backlog.acknowledge(it.sequence, it.delivery, at(2));
        assert_eq!(late, (Done, None));
    }
    // Without a pause, and counted anew.
    let again = take(&mut backlog, at(2), Consumer::Pull(1), ALL);
    assert_eq!(sequences(&again), [1, 2]);
    assert!(again.iter().all(|it| it.attempt == 1));
    for (old, new) in leased.iter().zip(&again) {
        assert_eq!(
            backlog.acknowledge(old.sequence, old.delivery, at(3)).0,
            Done
        );
        let counts = backlog.acknowledge(new.sequence, new.delivery, at(3)).0;
        assert_eq!(counts, Acknowledging);
    }
}

#[test]
fn faults_hold_back_overtake_double_and_ignore() {
    let mut backlog = backlog(policy(), &["", "", ""]);
    let mut plan = |sequence, attempt| Plan {
        reorder: sequence == 1 && attempt == 1,
        delay: (sequence == 3 && attempt == 1).then_some(SECOND * 2),
        duplicate_at_once: sequence == 2 && attempt == 1,
        lose_answer: sequence == 1 && attempt == 1,
        duplicate: sequence == 2,
        ..Plan::default()
    };
    let take = backlog.take(at(0), Consumer::Pull(1), DEADLINE, ALL, &mut plan);
    assert_eq!(sequences(&take.leased), [2, 1]);
    let (two, one) = (&take.leased[0], &take.leased[1]);
    assert_eq!(two.duplicate_delivery, Some(two.delivery + 1));
    assert_eq!(backlog.acknowledge(1, one.delivery, at(1)).0, Done);
    let duplicate = two.duplicate_delivery.unwrap();
    assert_eq!(backlog.acknowledge(2, duplicate, at(1)).0, Done);
    // The second is delivered once more, and then no more; the third was late, and the first is unheard of.
    let take = backlog.take(at(2), Consumer::Pull(2), DEADLINE, ALL, &mut plan);
    assert_eq!(sequences(&take.leased), [2, 3]);
    let again = take.leased[0].delivery;
    assert_eq!(backlog.acknowledge(2, again, at(2)).0, Acknowledging);
    backlog.acknowledged(2);
    assert_eq!(backlog.expire(at(10)).len(), 1);
    let take = backlog.take(at(10), Consumer::Pull(3), DEADLINE, ALL, &mut plan);
    assert_eq!(sequences(&take.leased), [1]);
}

#[test]
fn an_overtaken_message_waits_a_second_at_most_and_an_overlap_is_not_extended() {
    let mut backlog = backlog(policy(), &[""]);
    let mut plan = |_, attempt| Plan {
        reorder: attempt == 1,
        overlap: Some(SECOND * 3),
        ..Plan::default()
    };
    let mut take = |backlog: &mut Backlog, now| {
        backlog
            .take(now, Consumer::Pull(1), DEADLINE, ALL, &mut plan)
            .leased
    };
    assert!(take(&mut backlog, at(0)).is_empty());
    assert_eq!(backlog.next_moment(at(0)), Some(at(1)));
    let leased = take(&mut backlog, at(1));
    assert_eq!(
        backlog.extend(1, leased[0].delivery, SECOND * 600, at(1)),
        Done
    );
    assert_eq!(backlog.expire(at(4)).len(), 1);
    assert_eq!(take(&mut backlog, at(4)).len(), 1);
}
