use super::*;
use semel::letter::{Letter, LetterId, Put, Reason};
use semel::memory::MemoryStore;
use semel::protocol::{Claim, Fence};
use semel::store::StoreExt;
use semel::{Fingerprint, Key};

async fn filled(count: u8) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    for number in 0..count {
        let key = Key::from_bytes([number; 32]);
        let claim = Claim::new(key, Fingerprint::of(b"x"));
        drop(store.claim(&claim).await.unwrap());
    }
    store
}

#[tokio::test]
async fn the_first_look_at_a_small_store_has_its_counts() {
    let census = Census::new(filled(3).await);
    let known = census.look_first().await;
    let records = known.records.expect("three records are counted at once");
    assert_eq!((records.total(), records.of(State::Running)), (3, 3));
    assert_eq!(known.letters.expect("counted before the records").total, 0);
}

#[tokio::test]
async fn who_acted_on_letters_sees_them_counted_anew() {
    let store = filled(1).await;
    let census = Census::new(Arc::clone(&store) as Arc<dyn Letters>);
    drop(census.look_first().await);
    let letter = Letter {
        id: LetterId([7; 32]),
        key: None,
        route: "charge".to_owned(),
        reason: Reason::Invalid,
        fence: Fence(0),
        retention: Duration::from_secs(60),
        redriven: false,
        delivery: "x".into(),
    };
    assert_eq!(store.put(&letter).await.unwrap(), Put::Applied);
    census.letters_changed();
    let letters = census.look_first().await.letters.unwrap();
    assert_eq!(letters.total, 1, "the pause is cut short");
}

#[tokio::test(start_paused = true)]
async fn nobody_walks_when_nobody_looks() {
    let census = Census::new(filled(1).await);
    assert!(census.look().records.is_none(), "a look does not wait");
    tokio::time::sleep(LOOKED_WITHIN + 2 * PAUSE_MIN).await;
    assert!(!census.shared.watched().walks, "the last look is long ago");
    assert!(census.look().records.is_some());
    assert!(census.shared.watched().walks);
}

#[test]
fn the_pause_is_sixty_walks_and_two_seconds_at_least() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let now = Instant::now();
        assert_eq!(pause_after(Duration::ZERO) - now, PAUSE_MIN);
        let took = Duration::from_secs(3);
        assert_eq!(pause_after(took) - now, Duration::from_secs(180));
    });
}
