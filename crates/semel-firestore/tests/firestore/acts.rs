//! What operators, keepers of letters and steps do, while the answer to their commit is lost, or their request, or it is late.

use crate::proxy::{Fate, Proxy};
use crate::raw::Raw;
use crate::support::settings;
use bytes::Bytes;
use semel::letter::{Letter, LetterId, Mark, Marked, Put, Reason};
use semel::protocol::{
    Acted, Claim, Claimed, Fail, FailKind, Fence, Finding, Held, InDoubt, Lease, Resolution, State,
    StepBegun,
};
use semel::store::{Letters, StoreExt};
use semel::{Error, Fingerprint, Key};
use semel_firestore::FirestoreStore;
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

const FAULTS: [Fate; 3] = [Fate::AnswerLost, Fate::RequestLost, Fate::Late];

/// A store behind a proxy, and one that is not.
struct Bed {
    store: FirestoreStore,
    other: FirestoreStore,
    proxy: Arc<Proxy>,
    raw: Raw,
}

impl Bed {
    async fn open() -> Option<Self> {
        let direct = settings()?;
        let mut behind = direct.clone();
        let proxy = Proxy::start(&mut behind).await;
        let other = FirestoreStore::connect(direct.clone()).await.unwrap();
        behind.timeout = Duration::from_secs(6);
        Some(Self {
            store: FirestoreStore::connect(behind).await.unwrap(),
            other,
            proxy,
            raw: Raw::open(&direct).await,
        })
    }

    async fn grant(&self, n: u8) -> Lease {
        let claim = Claim {
            lease: HOUR,
            retention: HOUR,
            ..Claim::new(Key::from_bytes([n; 32]), Fingerprint::of(&[n]))
        };
        let Claimed::Granted(lease) = self.other.claim(&claim).await.unwrap() else {
            panic!("not granted");
        };
        lease
    }

    async fn fail(&self, lease: &Lease, kind: FailKind) {
        let how = Fail {
            kind,
            in_doubt: InDoubt::Park,
            max_attempts: None,
            max_in_doubt: None,
            park_after: None,
            retention: HOUR,
            result: "failed".into(),
        };
        assert!(matches!(
            self.other.fail(lease, &how).await,
            Ok(Held::Applied(_))
        ));
    }

    /// How the record stands, and how many of its attempts were superseded.
    async fn stands(&self, key: &Key) -> (State, usize) {
        let record = self.other.look(key).await.unwrap().unwrap();
        (record.state, record.history.len())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn act_whose_answer_is_lost_is_done_once_and_answered_as_done() {
    let Some(bed) = Bed::open().await else { return };
    let delay = Duration::ZERO;
    for (n, fault) in (0..).step_by(8).zip(FAULTS) {
        let commits = || bed.proxy.next("/Commit", [fault.clone()]);

        let lease = bed.grant(n).await;
        bed.fail(&lease, FailKind::Final).await;
        commits();
        let acted = bed.store.redrive(&lease.key, "me").await;
        assert_eq!(acted, Ok(Acted::Applied), "redrive, {fault:?}");
        assert_eq!(bed.stands(&lease.key).await, (State::Waiting, 1));

        let lease = bed.grant(n + 1).await;
        bed.fail(&lease, FailKind::InDoubt { delay }).await;
        commits();
        let how = Resolution::new(Finding::Retry);
        let acted = bed.store.resolve(&lease.key, &how, "me").await;
        assert_eq!(acted, Ok(Acted::Applied), "resolve, {fault:?}");
        assert_eq!(bed.stands(&lease.key).await, (State::Waiting, 1));

        let lease = bed.grant(n + 2).await;
        bed.fail(&lease, FailKind::Retryable { delay }).await;
        commits();
        let acted = bed.store.retain(&lease.key, HOUR * 2).await;
        assert_eq!(acted, Ok(Acted::Applied), "retain, {fault:?}");
        assert_eq!(bed.stands(&lease.key).await, (State::Waiting, 0));

        let lease = bed.grant(n + 3).await;
        commits();
        let acted = bed.store.release_by_operator(&lease.key, "me").await;
        assert_eq!(acted, Ok(Acted::Applied), "release, {fault:?}");
        assert_eq!(bed.stands(&lease.key).await, (State::Waiting, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn act_that_somebody_else_came_after_is_not_done_to_what_came() {
    let Some(bed) = Bed::open().await else { return };
    let lease = bed.grant(1).await;
    bed.proxy.next("/Commit", [Fate::Unheard]);
    let releasing = bed.store.release_by_operator(&lease.key, "me");
    let meanwhile = async {
        // Once it is released, another gate begins.
        while bed.stands(&lease.key).await.0 == State::Running {
            tokio::task::yield_now().await;
        }
        bed.grant(1).await
    };
    let (released, next) = tokio::join!(releasing, meanwhile);
    let error = released.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    assert!(
        error.to_string().contains("whether it was made is unknown"),
        "{error}"
    );
    let renewed = bed.other.renew(&next, HOUR, HOUR).await;
    assert_eq!(renewed, Ok(Held::Applied(State::Running)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_forgotten_is_gone_with_its_steps_and_their_parts() {
    let Some(mut bed) = Bed::open().await else {
        return;
    };
    let large = Bytes::from(vec![7; 2_000_000]);
    // The record's commit, then that of the steps.
    let at_the_steps = [Fate::Carried, Fate::AnswerLost];
    let faults = FAULTS.map(|fault| [fault, Fate::Carried]);
    for (n, faults) in (0..).zip(faults.into_iter().chain([at_the_steps])) {
        let lease = bed.grant(n).await;
        for name in ["charge", "mail"] {
            let begun = bed.other.step_begin(&lease, name).await;
            assert_eq!(begun, Ok(StepBegun::Run));
            let done = bed.other.step_complete(&lease, name, &large).await;
            assert_eq!(done, Ok(Held::Applied(State::Running)));
        }
        let done = bed.other.complete(&lease, &large, HOUR).await;
        assert_eq!(done, Ok(Held::Applied(State::Succeeded)));
        assert_eq!(bed.raw.count("semel_parts").await, 9);
        let ids = vec![Bytes::from_static(b"task 1")];
        bed.other.index(&lease.key, ids, HOUR).await.unwrap();

        bed.proxy.next("/Commit", faults.clone());
        let acted = bed.store.forget(&lease.key).await;
        assert_eq!(acted, Ok(Acted::Applied), "{faults:?}");
        for collection in ["semel_parts", "semel_steps", "semel_index"] {
            assert_eq!(bed.raw.count(collection).await, 0, "{collection}");
        }
        assert_eq!(bed.other.look(&lease.key).await, Ok(None));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letter_whose_answer_is_lost_is_kept_once_and_closed_with_its_parts() {
    let Some(mut bed) = Bed::open().await else {
        return;
    };
    for (n, fault) in (0..).zip(FAULTS) {
        let commits = || bed.proxy.next("/Commit", [fault.clone()]);
        let mut letter = Letter {
            id: LetterId::of_delivery(Reason::Invalid, &format!("{n}"), &Fingerprint::of(b"x")),
            key: None,
            route: "orders".into(),
            reason: Reason::Invalid,
            fence: Fence(0),
            retention: HOUR,
            redriven: false,
            alarmed: false,
            delivery: "small".into(),
        };
        commits();
        assert_eq!(bed.store.put(&letter).await, Ok(Put::Applied), "{fault:?}");
        commits();
        for mark in [Mark::Redriven, Mark::Alarmed] {
            let marked = bed.store.mark(&letter.id, mark).await;
            assert_eq!(marked, Ok(Marked::Applied), "{mark:?}, {fault:?}");
            commits();
        }
        let marked = bed.store.mark(&letter.id, Mark::Closed).await;
        assert_eq!(marked, Ok(Marked::Applied), "{fault:?}");
        assert_eq!(bed.store.get(&letter.id).await, Ok(None));

        // A large one, under a higher fence; what it was kept in goes when it is closed.
        letter.fence = Fence(1);
        letter.delivery = vec![7; 1_000_000].into();
        commits();
        assert_eq!(bed.store.put(&letter).await, Ok(Put::Applied), "{fault:?}");
        assert_eq!(bed.raw.count("semel_parts").await, 2);
        commits();
        let marked = bed.store.mark(&letter.id, Mark::Closed).await;
        assert_eq!(marked, Ok(Marked::Applied), "{fault:?}");
        assert_eq!(bed.raw.count("semel_parts").await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn step_whose_answer_is_lost_is_begun_and_done_once() {
    let Some(bed) = Bed::open().await else { return };
    for (n, fault) in (0..).zip(FAULTS) {
        let lease = bed.grant(n).await;
        let commits = || bed.proxy.next("/Commit", [fault.clone()]);
        commits();
        let begun = bed.store.step_begin(&lease, "charge").await;
        assert_eq!(begun, Ok(StepBegun::Run), "{fault:?}");
        commits();
        let result = Bytes::from_static(b"paid");
        let done = bed.store.step_complete(&lease, "charge", &result).await;
        assert!(
            matches!(done, Ok(Held::Applied(_) | Held::Already(_))),
            "{fault:?}: {done:?}"
        );
        let memo = StepBegun::Memo {
            fence: lease.fence,
            result,
        };
        assert_eq!(bed.other.step_begin(&lease, "charge").await, Ok(memo));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lease_that_its_commit_left_far_behind_is_renewed_before_it_is_answered() {
    let Some(bed) = Bed::open().await else { return };
    let lease_for = Duration::from_secs(3);
    let slow = || Fate::SlowThere(Duration::from_millis(1_100));
    let claim = Claim {
        lease: lease_for,
        retention: HOUR,
        ..Claim::new(Key::from_bytes([1; 32]), Fingerprint::of(b"x"))
    };
    // The renewal is as late; the one after it is not.
    bed.proxy.next("/Commit", [slow(), slow()]);
    let granted = bed.store.claim(&claim).await;
    assert!(matches!(granted, Ok(Claimed::Granted(_))), "{granted:?}");
    assert_eq!(bed.proxy.made("/Commit"), 3);
    let record = bed.other.look(&claim.key).await.unwrap().unwrap();
    // The fence is the time of the grant.
    let renewed_at = record.lease_until.0 - 3_000_000;
    assert!(renewed_at >= record.fence.0 + 2_000_000, "{record:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusal_of_what_goes_with_a_write_does_not_say_that_nothing_was_written() {
    let Some(mut bed) = Bed::open().await else {
        return;
    };
    let refused = || Fate::Refused(7, "Missing or insufficient permissions.");
    let late = Fate::SlowThere(Duration::from_millis(1_100));
    let claim = Claim {
        lease: Duration::from_secs(3),
        retention: HOUR,
        ..Claim::new(Key::from_bytes([1; 32]), Fingerprint::of(b"x"))
    };
    // A grant is late, and its renewal is refused.
    bed.proxy.next("/Commit", [late, refused()]);
    let claimed = bed.store.claim(&claim).await.map(drop);

    // A record is forgotten, and the deletion of its steps is refused.
    let lease = bed.grant(2).await;
    let begun = bed.other.step_begin(&lease, "charge").await;
    assert_eq!(begun, Ok(StepBegun::Run));
    assert!(bed.other.release(&lease).await.is_ok());
    bed.proxy.next("/Commit", [Fate::Carried, refused()]);
    let forgotten = bed.store.forget(&lease.key).await.map(drop);
    for heard in [claimed, forgotten] {
        let error = heard.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("roles/datastore.user"), "{text}");
        assert!(!text.contains("nothing was written"), "{text}");
    }
    // Forgetting again removes what is left.
    assert_eq!(bed.raw.count("semel_steps").await, 1);
    assert_eq!(bed.store.forget(&lease.key).await, Ok(Acted::Gone(None)));
    assert_eq!(bed.raw.count("semel_steps").await, 0);
}
