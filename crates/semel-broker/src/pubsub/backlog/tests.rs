use super::*;

mod ends;
mod storm;

const SECOND: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(10);
const ALL: Room = Room {
    messages: 1000,
    bytes: usize::MAX,
};

pub(super) fn rules() -> Rules {
    Rules {
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

pub(super) fn arrival(place: Place, key: &str, published: Time) -> Arrival {
    Arrival {
        place,
        bytes: 100,
        published,
        key: key.into(),
        attempts: 0,
        acknowledged: false,
    }
}

fn backlog(rules: Rules, keys: &[&str]) -> Backlog {
    let mut backlog = Backlog::new(rules, 0);
    for (place, key) in (1..).zip(keys) {
        backlog.add(arrival(place, key, at(0)), at(0));
    }
    backlog
}

pub(super) fn take(backlog: &mut Backlog, now: Time, taker: Taker, room: Room) -> Vec<Taken> {
    backlog
        .take(now, taker, DEADLINE, room, &mut |_, _| Plan::default())
        .taken
}

fn places(taken: &[Taken]) -> Vec<Place> {
    taken.iter().map(|it| it.place).collect()
}

/// Takes everything; answers the places.
fn all(backlog: &mut Backlog, now: Time, taker: Taker) -> Vec<Place> {
    places(&take(backlog, now, taker, ALL))
}

#[test]
fn a_message_is_given_out_once_until_its_deadline() {
    let mut backlog = backlog(rules(), &["", ""]);
    assert_eq!(all(&mut backlog, at(0), Taker::Pull(1)), [1, 2]);
    assert!(all(&mut backlog, at(5), Taker::Pull(2)).is_empty());
    assert_eq!(backlog.next_moment(at(0)), Some(at(10)));
    assert_eq!(backlog.expire(at(9)), []);
    assert_eq!(backlog.expire(at(10)).len(), 2);
    assert_eq!(all(&mut backlog, at(10), Taker::Pull(2)), [1, 2]);
}

#[test]
fn an_extension_moves_the_deadline_and_a_refusal_ends_it() {
    let mut backlog = backlog(rules(), &[""]);
    let first = &take(&mut backlog, at(0), Taker::Pull(1), ALL)[0];
    assert_eq!(
        backlog.extend(1, first.delivery, SECOND * 60, at(1)),
        Fate::Done
    );
    assert_eq!(backlog.expire(at(30)), []);
    let (fate, ended) = backlog.refuse(1, first.delivery, at(30));
    assert_eq!((fate, ended.len()), (Fate::Done, 1));
    let again = &take(&mut backlog, at(30), Taker::Pull(1), ALL)[0];
    assert_eq!((again.place, again.attempt), (1, 2));
}

#[test]
fn pauses_grow_with_the_attempts() {
    let rules = Rules {
        retry: Some((SECOND * 10, SECOND * 35)),
        ..rules()
    };
    let mut backlog = backlog(rules, &[""]);
    let mut now = at(0);
    let mut pauses = Vec::new();
    for _ in 0..4 {
        let delivery = take(&mut backlog, now, Taker::Pull(1), ALL)[0].delivery;
        backlog.refuse(1, delivery, now);
        let next = backlog.next_moment(now).unwrap();
        pauses.push(next.since(now).as_secs());
        now = next;
    }
    assert_eq!(pauses, [10, 20, 35, 35]);
}

#[test]
fn a_key_is_with_one_taker_and_in_order() {
    let rules = Rules {
        ordered: true,
        ..rules()
    };
    let mut backlog = backlog(rules, &["a", "a", "b", "a", ""]);
    let one = Room {
        messages: 1,
        bytes: usize::MAX,
    };
    let stream = Taker::Stream(1);
    let first = take(&mut backlog, at(0), stream, one);
    assert_eq!(places(&first), [1]);
    assert_eq!(all(&mut backlog, at(0), Taker::Stream(2)), [3, 5]);
    // The same stream gets the following ones.
    let more = take(&mut backlog, at(1), stream, one);
    assert_eq!(places(&more), [2]);
    // The first comes back, and with it the one after.
    let (_, ended) = backlog.refuse(1, first[0].delivery, at(2));
    assert_eq!(ended.len(), 2);
    assert_eq!(all(&mut backlog, at(2), Taker::Pull(9)), [1, 2, 4]);
}

#[test]
fn a_push_gets_one_of_a_key_at_a_time() {
    let rules = Rules {
        ordered: true,
        retry: Some((SECOND * 10, SECOND * 10)),
        ..rules()
    };
    let mut backlog = backlog(rules, &["a", "a", "b"]);
    let first = take(&mut backlog, at(0), Taker::Push, ALL);
    assert_eq!(places(&first), [1, 3]);
    // A pause of the first is a pause of its key.
    backlog.refuse(1, first[0].delivery, at(0));
    assert!(all(&mut backlog, at(9), Taker::Push).is_empty());
    let again = take(&mut backlog, at(10), Taker::Push, ALL);
    assert_eq!(places(&again), [1]);
    backlog.acknowledge(1, again[0].delivery, at(10));
    assert!(all(&mut backlog, at(10), Taker::Push).is_empty());
    backlog.left(1);
    assert_eq!(all(&mut backlog, at(10), Taker::Push), [2]);
    // Its calls end by themselves.
    assert_eq!(backlog.next_moment(at(10)), None);
}

#[test]
fn a_taker_has_no_more_than_its_room() {
    let mut backlog = backlog(rules(), &["", "", "", ""]);
    let room = Room {
        messages: 10,
        bytes: 250,
    };
    assert_eq!(
        places(&take(&mut backlog, at(0), Taker::Stream(1), room)),
        [1, 2]
    );
    let load = backlog.load(Taker::Stream(1));
    assert_eq!((load.messages, load.bytes), (2, 200));
    assert_eq!(backlog.waiting(), 2);
}

#[test]
fn what_is_too_old_is_dropped() {
    let rules = Rules {
        retention: SECOND * 600,
        ..rules()
    };
    let mut backlog = backlog(rules, &["", ""]);
    backlog.add(arrival(3, "", at(300)), at(300));
    let take = backlog.take(at(600), Taker::Pull(1), DEADLINE, ALL, &mut |_, _| {
        Plan::default()
    });
    assert_eq!(take.dropped, [1, 2]);
    assert_eq!(places(&take.taken), [3]);
    assert_eq!(backlog.unfinished(), 1);
}

#[test]
fn a_seek_brings_back_what_was_retained_and_skips_what_is_older() {
    let rules = Rules {
        retain_acked: true,
        ..rules()
    };
    let mut backlog = Backlog::new(rules, 0);
    for place in 1..=3 {
        let moment = at(u32::try_from(place).unwrap());
        backlog.add(arrival(place, "", moment), moment);
    }
    let taken = take(&mut backlog, at(5), Taker::Pull(1), ALL);
    for it in &taken {
        assert_eq!(
            backlog.acknowledge(it.place, it.delivery, at(5)).0,
            Fate::Leaves
        );
        backlog.left(it.place);
    }
    assert_eq!(backlog.unfinished(), 0);
    let back = backlog.seek(at(2));
    assert_eq!(back.revive, [2, 3]);
    assert!(back.acknowledge.is_empty());
    backlog.sought(&back, at(6));
    let again = take(&mut backlog, at(6), Taker::Pull(1), ALL);
    assert_eq!(places(&again), [2, 3]);
    // Its attempts are counted anew, as they are in storage.
    assert_eq!(again[0].attempt, 1);
    let forth = backlog.seek(at(100));
    assert_eq!(forth.acknowledge, [2, 3]);
    backlog.sought(&forth, at(7));
    assert_eq!(backlog.unfinished(), 0);
    // What is retained is thrown away one day.
    assert_eq!(backlog.next_moment(at(7)), Some(at(3601)));
}

#[test]
fn faults_hold_back_overtake_double_and_ignore() {
    let mut backlog = backlog(rules(), &["", "", ""]);
    let mut plan = |place, attempt| Plan {
        reorder: place == 1 && attempt == 1,
        delay: (place == 3 && attempt == 1).then_some(SECOND * 2),
        duplicate_at_once: place == 2 && attempt == 1,
        lose_answer: place == 1 && attempt == 1,
        duplicate: place == 2,
        ..Plan::default()
    };
    let take = backlog.take(at(0), Taker::Pull(1), DEADLINE, ALL, &mut plan);
    assert_eq!(places(&take.taken), [2, 1]);
    let (two, one) = (&take.taken[0], &take.taken[1]);
    assert_eq!(two.twin, Some(two.delivery + 1));
    assert_eq!(backlog.acknowledge(1, one.delivery, at(1)).0, Fate::Done);
    assert_eq!(
        backlog.acknowledge(2, two.twin.unwrap(), at(1)).0,
        Fate::Done
    );
    // The second is delivered once more, and then no more; the third was late, and the first is unheard of.
    let take = backlog.take(at(2), Taker::Pull(2), DEADLINE, ALL, &mut plan);
    assert_eq!(places(&take.taken), [2, 3]);
    let again = take.taken[0].delivery;
    assert_eq!(backlog.acknowledge(2, again, at(2)).0, Fate::Leaves);
    backlog.left(2);
    assert_eq!(backlog.expire(at(10)).len(), 1);
    assert_eq!(
        places(
            &backlog
                .take(at(10), Taker::Pull(3), DEADLINE, ALL, &mut plan)
                .taken
        ),
        [1]
    );
}

#[test]
fn an_overtaken_message_waits_a_second_at_most_and_an_overlap_is_not_extended() {
    let mut backlog = backlog(rules(), &[""]);
    let mut plan = |_, attempt| Plan {
        reorder: attempt == 1,
        overlap: Some(SECOND * 3),
        ..Plan::default()
    };
    let mut take = |backlog: &mut Backlog, now| {
        backlog
            .take(now, Taker::Pull(1), DEADLINE, ALL, &mut plan)
            .taken
    };
    assert!(take(&mut backlog, at(0)).is_empty());
    assert_eq!(backlog.next_moment(at(0)), Some(at(1)));
    let taken = take(&mut backlog, at(1));
    assert_eq!(
        backlog.extend(1, taken[0].delivery, SECOND * 600, at(1)),
        Fate::Done
    );
    assert_eq!(backlog.expire(at(4)).len(), 1);
    assert_eq!(take(&mut backlog, at(4)).len(), 1);
}
