use super::*;
use proptest::prelude::*;
use std::time::Duration;

fn limits() -> Limits {
    Limits {
        paused: false,
        per_second: 10.0,
        burst: 10.0,
        concurrent: 100,
    }
}

fn at(millis: i64) -> Time {
    Time(1_000_000_000 + millis * 1000)
}

/// A schedule and how fast it may go.
struct TestSchedule {
    schedule: Schedule,
    rate_limiter: RateLimiter,
}

impl TestSchedule {
    /// With these tasks, which were never tried, each due at its moment; they are numbered as they come.
    fn new(due: &[i64]) -> Self {
        let mut test = Self {
            schedule: Schedule::default(),
            rate_limiter: RateLimiter::new(),
        };
        for (number, millis) in (1..).zip(due) {
            test.add(number, *millis);
        }
        test
    }

    fn add(&mut self, number: u64, millis: i64) {
        let id = TaskId::Number(number);
        self.schedule.add(&id, number, at(millis), Stage::Fresh);
    }

    fn next(&mut self, limits: &Limits, millis: i64) -> NextStep {
        self.schedule
            .next(limits, &mut self.rate_limiter, at(millis))
    }

    /// The task that sets out at this moment, if one does.
    fn go(&mut self, millis: i64) -> Option<DueTask> {
        match self.next(&limits(), millis) {
            NextStep::Dispatch(due_task) => Some(due_task),
            NextStep::At(_) | NextStep::Wait => None,
        }
    }

    /// Sends the next task out, which lets others go first.
    fn yields(&mut self, millis: i64, until: i64) -> TaskId {
        let id = self.go(millis).unwrap().id;
        self.schedule.end_dispatch(&id);
        self.schedule.yield_until(&id, at(until));
        id
    }
}

fn retry(min: u64, max: u64, doublings: u32) -> Retry {
    Retry {
        attempts: Some(100),
        span: None,
        backoff_min: Duration::from_secs(min),
        backoff_max: Duration::from_secs(max),
        doublings,
    }
}

fn backoffs(retry: &Retry, count: u32) -> Vec<u64> {
    let secs = |failures| retry.backoff(failures).as_secs();
    (1..=count).map(secs).collect()
}

#[test]
fn backoff_doubles_then_grows_evenly_then_stays() {
    let documented = backoffs(&retry(10, 300, 3), 8);
    assert_eq!(documented, [10, 20, 40, 80, 160, 240, 300, 300]);
    assert_eq!(backoffs(&retry(1, 7, 1), 6), [1, 2, 4, 6, 7, 7]);
}

#[test]
fn endless_doublings_end_at_the_longest_backoff() {
    let retry = retry(1, 3600, u32::MAX);
    assert_eq!(retry.backoff(u32::MAX), Duration::from_secs(3600));
    assert_eq!(retry.backoff(200), Duration::from_secs(3600));
}

#[test]
fn with_both_limits_both_must_pass() {
    // Attempts, seconds allowed, seconds between: how many attempts production made.
    for (attempts, span, between, made) in [
        (Some(2), Some(3), 2, 3),
        (Some(4), Some(1), 1, 4),
        (None, Some(3), 2, 3),
        (Some(3), None, 1, 3),
    ] {
        let retry = Retry {
            attempts,
            span: span.map(Duration::from_secs),
            ..retry(1, 1, 0)
        };
        let over = |n: &u32| {
            let now = at(i64::from(n - 1) * between * 1000);
            retry.gives_up(*n, at(0), at(0), now)
        };
        assert_eq!((1..100).find(over), Some(made), "{retry:?}");
    }
}

#[test]
fn without_limits_only_old_age_ends_a_task() {
    let retry = Retry {
        attempts: None,
        ..retry(1, 1, 0)
    };
    let days = |days: i64| at(days * 24 * 3600 * 1000);
    assert!(!retry.gives_up(1_000_000, at(0), at(0), days(30)));
    assert!(retry.gives_up(1, days(30), at(0), days(31)));
}

#[test]
fn the_earliest_goes_first_and_of_those_the_oldest() {
    let mut test = TestSchedule::new(&[5, 1, 1]);
    let order: Vec<_> = std::iter::from_fn(|| Some(test.go(6)?.id)).collect();
    assert_eq!(order, [2, 3, 1].map(TaskId::Number));
}

#[test]
fn a_queue_waits_for_the_next_moment() {
    let mut test = TestSchedule::new(&[]);
    assert_eq!(test.next(&limits(), 0), NextStep::Wait);
    test.add(1, 5);
    assert_eq!(test.next(&limits(), 0), NextStep::At(at(5)));
    let paused = Limits {
        paused: true,
        ..limits()
    };
    assert_eq!(test.next(&paused, 9), NextStep::Wait);
}

#[test]
fn no_more_are_on_the_way_than_allowed() {
    let mut test = TestSchedule::new(&[0, 0, 0]);
    let two = Limits {
        concurrent: 2,
        ..limits()
    };
    for _ in 0..2 {
        assert!(matches!(test.next(&two, 1), NextStep::Dispatch(_)));
    }
    assert_eq!(test.next(&two, 1), NextStep::Wait);
    test.schedule.end_dispatch(&TaskId::Number(1));
    assert!(matches!(test.next(&two, 1), NextStep::Dispatch(_)));
}

#[test]
fn a_burst_goes_at_once_and_then_the_rate_holds() {
    let mut rate_limiter = RateLimiter::new();
    let burst = (0..100).take_while(|_| rate_limiter.take(&limits(), at(0)).is_ok());
    assert_eq!(burst.count(), 10);
    assert_eq!(rate_limiter.take(&limits(), at(0)), Err(at(100)));
    assert_eq!(rate_limiter.take(&limits(), at(100)), Ok(()));
    assert!(rate_limiter.take(&limits(), at(100)).is_err());
}

#[test]
fn overload_slows_the_rate_and_success_restores_it() {
    let mut rate_limiter = RateLimiter::new();
    while rate_limiter.take(&limits(), at(0)).is_ok() {}
    rate_limiter.adapt(HandlerLoad::Overloaded);
    assert_eq!(rate_limiter.take(&limits(), at(0)), Err(at(200)));
    for _ in 0..100 {
        rate_limiter.adapt(HandlerLoad::Overloaded);
    }
    assert_eq!(rate_limiter.take(&limits(), at(0)), Err(at(1600)));
    for _ in 0..13 {
        rate_limiter.adapt(HandlerLoad::Succeeded);
    }
    assert_eq!(rate_limiter.take(&limits(), at(0)), Err(at(100)));
}

#[test]
fn overload_does_not_take_permits_away() {
    let mut rate_limiter = RateLimiter::new();
    rate_limiter.take(&limits(), at(0)).unwrap();
    rate_limiter.adapt(HandlerLoad::Overloaded);
    assert_eq!(rate_limiter.take(&limits(), at(0)), Ok(()));
}

#[test]
fn who_is_waited_for_goes_first_and_then_who_waited() {
    let mut test = TestSchedule::new(&[0, 0, 0]);
    let [a, b, c] = [1, 2, 3].map(TaskId::Number);
    assert_eq!(test.yields(1, 1001), a);
    let second = test.go(1).unwrap();
    assert_eq!((second.id, second.stage), (b, Stage::PutBack));
    let rest = [(); 2].map(|()| test.go(1).unwrap());
    assert_eq!(rest.clone().map(|it| it.id), [c, a]);
    assert_eq!(rest[1].stage, Stage::PutBack);
}

#[test]
fn who_lets_others_first_goes_anyway_when_nobody_comes() {
    let mut test = TestSchedule::new(&[0]);
    let first = test.yields(1, 1001);
    assert_eq!(test.go(1000), None);
    assert_eq!(test.go(1001).unwrap().id, first);
}

#[test]
fn a_forced_task_does_not_also_wait() {
    let mut test = TestSchedule::new(&[]);
    let id = TaskId::Number(1);
    test.schedule.add(&id, 1, at(0), Stage::Retry);
    assert_eq!(test.schedule.dispatch_now(&id).unwrap().others, 0);
    assert_eq!(test.schedule.dispatch_now(&id).unwrap().others, 1);
    assert_eq!(test.go(1), None);
    assert_eq!(test.schedule.dispatch_now(&TaskId::Number(2)), None);
    assert_eq!(test.schedule.in_flight_of(&id), 2);
}

#[derive(Clone, Debug)]
enum Move {
    Add(u64, i64),
    NextStep(i64),
    Land(u64),
    Again(u64, i64),
    Yield(u64, i64),
    Force(u64),
    Remove(u64),
    Clear,
}

fn moves() -> impl Strategy<Value = Move> {
    let id = 0..6_u64;
    prop_oneof![
        (id.clone(), 0..50_i64).prop_map(|(id, at)| Move::Add(id, at)),
        (0..50_i64).prop_map(Move::NextStep),
        id.clone().prop_map(Move::Land),
        (id.clone(), 0..50_i64).prop_map(|(id, at)| Move::Again(id, at)),
        (id.clone(), 0..50_i64).prop_map(|(id, at)| Move::Yield(id, at)),
        id.clone().prop_map(Move::Force),
        id.prop_map(Move::Remove),
        Just(Move::Clear),
    ]
}

proptest! {
    #[test]
    fn the_books_always_agree(moves in prop::collection::vec(moves(), 0..60)) {
        let mut schedule = Schedule::default();
        let mut rate_limiter = RateLimiter::new();
        for (sequence, it) in (0..).zip(moves) {
            match it {
                Move::Add(id, time) if !schedule.holds(&TaskId::Number(id)) => {
                    schedule.add(&TaskId::Number(id), sequence, at(time), Stage::Fresh);
                }
                Move::Add(..) => {}
                Move::NextStep(time) => drop(schedule.next(&limits(), &mut rate_limiter, at(time))),
                Move::Land(id) => schedule.end_dispatch(&TaskId::Number(id)),
                Move::Again(id, time) => schedule.wait_until(&TaskId::Number(id), at(time), Stage::Retry),
                Move::Yield(id, time) => schedule.yield_until(&TaskId::Number(id), at(time)),
                Move::Force(id) => drop(schedule.dispatch_now(&TaskId::Number(id))),
                Move::Remove(id) => drop(schedule.remove(&TaskId::Number(id))),
                Move::Clear => schedule.clear(),
            }
            let waiting = schedule.entries.values().filter(|it| it.waits).count();
            prop_assert_eq!(waiting, schedule.waiting.len());
            for (slot, id) in &schedule.waiting {
                prop_assert_eq!(schedule.entries[id].slot, *slot);
            }
            let tried = schedule.entries.values().filter(|it| it.waits && it.stage != Stage::Fresh);
            prop_assert_eq!(tried.count(), schedule.retries);
            prop_assert_eq!(schedule.in_flight_by_task.values().sum::<u32>(), schedule.in_flight);
        }
    }

    #[test]
    fn backoff_never_shrinks_and_never_passes_its_end(
        min in 0..100_u64, more in 0..1000_u64, doublings in 0..40_u32, failures in 1..200_u32,
    ) {
        let retry = retry(min, min + more, doublings);
        prop_assert!(retry.backoff(failures) <= retry.backoff(failures + 1));
        prop_assert!(retry.backoff(failures) >= retry.backoff_min);
        prop_assert!(retry.backoff(failures) <= retry.backoff_max);
    }
}

#[test]
fn a_rate_next_to_nothing_makes_a_queue_wait() {
    let slow = Limits {
        per_second: f64::MIN_POSITIVE,
        burst: 1.0,
        ..limits()
    };
    let mut rate_limiter = RateLimiter::new();
    assert_eq!(rate_limiter.take(&slow, at(0)), Ok(()));
    assert_eq!(rate_limiter.take(&slow, at(0)), Err(Time(i64::MAX)));
}

#[test]
fn a_task_that_lets_others_first_and_is_sent_out_by_hand_goes_once() {
    let mut test = TestSchedule::new(&[0]);
    let first = test.yields(0, 1000);
    assert!(test.schedule.dispatch_now(&first).is_some());
    test.add(2, 0);
    assert_eq!(test.go(10).unwrap().id, TaskId::Number(2));
    assert_eq!(test.go(2000), None);
}
