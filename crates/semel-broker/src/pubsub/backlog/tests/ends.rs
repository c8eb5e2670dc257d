//! How messages leave, and which ack ids count.

use super::*;

#[test]
fn an_old_ack_id_still_acknowledges() {
    let mut backlog = backlog(rules(), &[""]);
    let first = take(&mut backlog, at(0), Taker::Pull(1), ALL)[0].delivery;
    backlog.expire(at(10));
    take(&mut backlog, at(10), Taker::Pull(2), ALL);
    assert_eq!(backlog.acknowledge(1, first, at(11)).0, Fate::Leaves);
    // Nobody gets it while that is being written down.
    assert!(all(&mut backlog, at(60), Taker::Pull(3)).is_empty());
    backlog.left(1);
    assert_eq!(backlog.unfinished(), 0);
    assert_eq!(backlog.load(Taker::Pull(2)), Load::default());
    assert_eq!(backlog.acknowledge(1, first, at(12)).0, Fate::Done);
}

#[test]
fn with_exactly_once_only_the_current_ack_id_counts() {
    let rules = Rules {
        exactly_once: true,
        ..rules()
    };
    let mut backlog = backlog(rules, &[""]);
    let first = take(&mut backlog, at(0), Taker::Pull(1), ALL)[0].delivery;
    backlog.expire(at(10));
    assert_eq!(backlog.acknowledge(1, first, at(10)).0, Fate::Invalid);
    assert_eq!(backlog.extend(1, first, SECOND, at(10)), Fate::Invalid);
    let second = take(&mut backlog, at(10), Taker::Pull(1), ALL)[0].delivery;
    assert_eq!(backlog.acknowledge(1, first, at(11)).0, Fate::Invalid);
    assert_eq!(backlog.refuse(1, first, at(11)).0, Fate::Invalid);
    assert_eq!(backlog.acknowledge(1, second, at(11)).0, Fate::Leaves);
    backlog.left(1);
    assert_eq!(backlog.acknowledge(1, second, at(11)).0, Fate::Invalid);
}

#[test]
fn after_enough_attempts_a_message_dies() {
    let rules = Rules {
        attempts_max: Some(2),
        ..rules()
    };
    let mut backlog = backlog(rules, &[""]);
    for _ in 0..2 {
        assert!(backlog.dying().is_empty());
        let delivery = take(&mut backlog, at(0), Taker::Pull(1), ALL)[0].delivery;
        backlog.refuse(1, delivery, at(0));
    }
    assert_eq!(backlog.dying(), [1]);
    assert!(all(&mut backlog, at(0), Taker::Pull(1)).is_empty());
    backlog.stays(1, at(0));
    assert_eq!(all(&mut backlog, at(0), Taker::Pull(1)), [1]);
}

#[test]
fn who_acknowledges_again_waits_for_the_shelf_too() {
    let mut backlog = backlog(rules(), &[""]);
    let first = take(&mut backlog, at(0), Taker::Pull(1), ALL)[0].delivery;
    assert_eq!(backlog.acknowledge(1, first, at(1)).0, Fate::Leaves);
    assert_eq!(backlog.acknowledge(1, first, at(1)).0, Fate::Leaves);
    backlog.left(1);
    backlog.left(1);
    assert_eq!(backlog.unfinished(), 0);
}

#[test]
fn with_exactly_once_an_end_that_is_being_written_down_is_the_current_deliverys() {
    let rules = Rules {
        exactly_once: true,
        attempts_max: Some(2),
        ..rules()
    };
    let mut backlog = backlog(rules, &["", ""]);
    let first = take(&mut backlog, at(0), Taker::Pull(1), ALL);
    backlog.expire(at(10));
    let second = take(&mut backlog, at(10), Taker::Pull(1), ALL);
    let mut acknowledge =
        |taken: &Taken| backlog.acknowledge(taken.place, taken.delivery, at(11)).0;
    assert_eq!(acknowledge(&second[0]), Fate::Leaves);
    assert_eq!(acknowledge(&first[0]), Fate::Invalid);
    assert_eq!(acknowledge(&second[0]), Fate::Leaves);
    // It is refused for the last time: that is not an acknowledgement.
    backlog.refuse(2, second[1].delivery, at(11));
    assert_eq!(
        backlog.acknowledge(2, second[1].delivery, at(11)).0,
        Fate::Invalid
    );
    assert_eq!(backlog.dying(), [2]);
}

#[test]
fn an_old_ack_id_does_not_count_behind_one_that_was_refused() {
    let rules = Rules {
        ordered: true,
        ..rules()
    };
    let mut backlog = backlog(rules, &["a", "a"]);
    let old = take(&mut backlog, at(0), Taker::Stream(1), ALL);
    backlog.refuse(1, old[0].delivery, at(1));
    assert_eq!(backlog.acknowledge(2, old[1].delivery, at(1)).0, Fate::Done);
    // Nor does it when both are out again.
    assert_eq!(all(&mut backlog, at(1), Taker::Stream(1)), [1, 2]);
    assert_eq!(backlog.acknowledge(2, old[1].delivery, at(1)).0, Fate::Done);
    assert_eq!(backlog.unfinished(), 2);
}

#[test]
fn one_that_stays_comes_before_what_was_given_out_after_it() {
    let rules = Rules {
        ordered: true,
        attempts_max: Some(1),
        ..rules()
    };
    let mut backlog = backlog(rules, &["a", "a"]);
    let one = Room {
        messages: 1,
        bytes: usize::MAX,
    };
    let first = take(&mut backlog, at(0), Taker::Stream(1), one);
    backlog.refuse(1, first[0].delivery, at(0));
    assert_eq!(all(&mut backlog, at(0), Taker::Stream(1)), [2]);
    // There is no dead-letter topic.
    backlog.stays(1, at(1));
    assert_eq!(all(&mut backlog, at(1), Taker::Stream(1)), [1, 2]);
}
