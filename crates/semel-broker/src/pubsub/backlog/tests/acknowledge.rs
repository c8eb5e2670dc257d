//! How messages leave, and which ack ids count.

use super::*;
use AckOutcome::{Acknowledging, Done, Invalid};

fn exactly_once() -> DeliveryPolicy {
    DeliveryPolicy {
        exactly_once: true,
        ..policy()
    }
}

#[test]
fn an_old_ack_id_still_acknowledges() {
    let mut backlog = backlog(policy(), &[""]);
    let first = take(&mut backlog, at(0), Consumer::Pull(1), ALL)[0].delivery;
    backlog.expire(at(10));
    take(&mut backlog, at(10), Consumer::Pull(2), ALL);
    assert_eq!(backlog.acknowledge(1, first, at(11)).0, Acknowledging);
    // Nobody gets it while that is being written down.
    assert!(all(&mut backlog, at(60), Consumer::Pull(3)).is_empty());
    backlog.acknowledged(1);
    assert_eq!(backlog.unfinished(), 0);
    assert_eq!(backlog.load(Consumer::Pull(2)), Load::default());
    assert_eq!(backlog.acknowledge(1, first, at(12)).0, Done);
}

#[test]
fn with_exactly_once_only_the_current_ack_id_counts() {
    let mut backlog = backlog(exactly_once(), &[""]);
    let first = take(&mut backlog, at(0), Consumer::Pull(1), ALL)[0].delivery;
    backlog.expire(at(10));
    assert_eq!(backlog.acknowledge(1, first, at(10)).0, Invalid);
    assert_eq!(backlog.extend(1, first, SECOND, at(10)), Invalid);
    let second = take(&mut backlog, at(10), Consumer::Pull(1), ALL)[0].delivery;
    assert_eq!(backlog.acknowledge(1, first, at(11)).0, Invalid);
    assert_eq!(backlog.refuse(1, first, at(11)).0, Invalid);
    assert_eq!(backlog.acknowledge(1, second, at(11)).0, Acknowledging);
    backlog.acknowledged(1);
    assert_eq!(backlog.acknowledge(1, second, at(11)).0, Invalid);
}

#[test]
fn after_enough_attempts_a_message_dies() {
    let policy = DeliveryPolicy {
        attempts_max: Some(2),
        ..policy()
    };
    let mut backlog = backlog(policy, &[""]);
    for _ in 0..2 {
        assert!(backlog.dead_lettering().is_empty());
        let delivery = take(&mut backlog, at(0), Consumer::Pull(1), ALL)[0].delivery;
        backlog.refuse(1, delivery, at(0));
    }
    assert_eq!(backlog.dead_lettering(), [1]);
    assert!(all(&mut backlog, at(0), Consumer::Pull(1)).is_empty());
    backlog.keep(1, at(0));
    assert_eq!(all(&mut backlog, at(0), Consumer::Pull(1)), [1]);
}

#[test]
fn who_acknowledges_again_waits_for_storage_too() {
    let mut backlog = backlog(policy(), &[""]);
    let first = take(&mut backlog, at(0), Consumer::Pull(1), ALL)[0].delivery;
    assert_eq!(backlog.acknowledge(1, first, at(1)).0, Acknowledging);
    assert_eq!(backlog.acknowledge(1, first, at(1)).0, Acknowledging);
    backlog.acknowledged(1);
    backlog.acknowledged(1);
    assert_eq!(backlog.unfinished(), 0);
}

#[test]
fn with_exactly_once_an_end_that_is_being_written_down_is_the_current_deliverys() {
    let policy = DeliveryPolicy {
        exactly_once: true,
        attempts_max: Some(2),
        ..policy()
    };
    let mut backlog = backlog(policy, &["", ""]);
    let first = take(&mut backlog, at(0), Consumer::Pull(1), ALL);
    backlog.expire(at(10));
    let second = take(&mut backlog, at(10), Consumer::Pull(1), ALL);
    let mut acknowledge = |it: &Lease| backlog.acknowledge(it.sequence, it.delivery, at(11)).0;
    assert_eq!(acknowledge(&second[0]), Acknowledging);
    assert_eq!(acknowledge(&first[0]), Invalid);
    assert_eq!(acknowledge(&second[0]), Acknowledging);
    // It is refused for the last time: that is not an acknowledgement.
    backlog.refuse(2, second[1].delivery, at(11));
    assert_eq!(
        backlog.acknowledge(2, second[1].delivery, at(11)).0,
        Invalid
    );
    assert_eq!(backlog.dead_lettering(), [2]);
}

#[test]
fn an_old_ack_id_does_not_count_behind_one_that_was_refused() {
    let mut backlog = backlog(ordered(), &["a", "a"]);
    let old = take(&mut backlog, at(0), Consumer::Stream(1), ALL);
    backlog.refuse(1, old[0].delivery, at(1));
    assert_eq!(backlog.acknowledge(2, old[1].delivery, at(1)).0, Done);
    // Nor does it when both are out again.
    assert_eq!(all(&mut backlog, at(1), Consumer::Stream(1)), [1, 2]);
    assert_eq!(backlog.acknowledge(2, old[1].delivery, at(1)).0, Done);
    assert_eq!(backlog.unfinished(), 2);
}

#[test]
fn one_that_stays_comes_before_what_was_given_out_after_it() {
    let policy = DeliveryPolicy {
        ordered: true,
        attempts_max: Some(1),
        ..policy()
    };
    let mut backlog = backlog(policy, &["a", "a"]);
    let first = take(&mut backlog, at(0), Consumer::Stream(1), ONE);
    backlog.refuse(1, first[0].delivery, at(0));
    assert_eq!(all(&mut backlog, at(0), Consumer::Stream(1)), [2]);
    // There is no dead-letter topic.
    backlog.keep(1, at(1));
    assert_eq!(all(&mut backlog, at(1), Consumer::Stream(1)), [1, 2]);
}
