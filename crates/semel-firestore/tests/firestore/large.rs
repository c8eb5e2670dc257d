//! Results, steps and letters that no document can hold.

use crate::support::{Aged, settings};
use bytes::Bytes;
use semel::conformance::Subject;
use semel::letter::{Letter, LetterId, Mark, Marked, Put, Reason};
use semel::protocol::{Acted, Claim, Claimed, Fence, Held, State, StepBegun};
use semel::store::{Letters, RESULT_BYTES_MAX, StoreExt};
use semel::{Fingerprint, Key};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

fn claim(n: u8) -> Claim {
    Claim::new(Key::from_bytes([n; 32]), Fingerprint::of(&[n]))
}

fn bytes(n: usize) -> Bytes {
    (0..n)
        .map(|i| i.to_le_bytes()[0] ^ i.to_le_bytes()[1])
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_result_is_replayed_whole() {
    let Some(settings) = settings() else { return };
    let Aged(store) = Aged::connect(settings).await;
    for (n, size) in [(1, 900_000), (2, 900_001), (3, RESULT_BYTES_MAX)] {
        let result = bytes(size);
        let Claimed::Granted(lease) = store.claim(&claim(n)).await.unwrap() else {
            panic!("not granted");
        };
        let done = store.complete(&lease, &result, HOUR).await;
        assert_eq!(done, Ok(Held::Applied(State::Succeeded)));
        let again = store.complete(&lease, &result, HOUR).await;
        assert_eq!(again, Ok(Held::Already(State::Succeeded)));
        let Claimed::Replayed(settled) = store.claim(&claim(n)).await.unwrap() else {
            panic!("not replayed");
        };
        assert!(settled.result == result, "{size} bytes");
    }
    // What is forgotten is gone at once.
    let key = claim(3).key;
    assert_eq!(store.forget(&key).await, Ok(Acted::Applied));
    assert_eq!(store.look(&key).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_steps_and_letters_are_kept_whole() {
    let Some(settings) = settings() else { return };
    let subject = Aged::connect(settings).await;
    let store = &subject.0;
    let Claimed::Granted(lease) = store.claim(&claim(1)).await.unwrap() else {
        panic!("not granted");
    };
    let whole = bytes(2_000_000);
    assert_eq!(store.step_begin(&lease, "charge").await, Ok(StepBegun::Run));
    let done = store.step_complete(&lease, "charge", &whole).await;
    assert_eq!(done, Ok(Held::Applied(State::Running)));
    let memo = StepBegun::Memo {
        fence: lease.fence,
        result: whole.clone(),
    };
    assert!(store.step_begin(&lease, "charge").await == Ok(memo));

    let letter = Letter {
        id: LetterId::of_delivery(Reason::Invalid, "message 1", &Fingerprint::of(b"x")),
        key: None,
        route: "orders".into(),
        reason: Reason::Invalid,
        fence: Fence(0),
        retention: Duration::from_secs(60),
        redriven: false,
        alarmed: false,
        delivery: whole,
    };
    assert_eq!(store.put(&letter).await, Ok(Put::Applied));
    assert_eq!(
        store.mark(&letter.id, Mark::Redriven).await,
        Ok(Marked::Applied)
    );
    let kept = store.get(&letter.id).await.unwrap().unwrap();
    assert!(
        kept == Letter {
            redriven: true,
            ..letter.clone()
        }
    );
    let heads = Letters::list(&**store, None, 10).await.unwrap();
    assert_eq!(heads.items[0].bytes, 2_000_000);
    assert_eq!(
        store.mark(&letter.id, Mark::Closed).await,
        Ok(Marked::Applied)
    );
    assert_eq!(store.get(&letter.id).await, Ok(None));
    subject.advance(HOUR).await;
    assert_eq!(
        store.put(&letter).await,
        Ok(Put::Applied),
        "its tombstone has expired"
    );
}
