use super::*;
use async_trait::async_trait;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put, Reason};
use semel::memory::MemoryStore;
use semel::protocol::{Answer, Claim, Fence, Operation, Record};
use semel::store::StoreExt;
use semel::store::{Cursor, Page, Sharing, Swept};
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
    assert_eq!(store.put(&letter()).await.unwrap(), Put::Applied);
    census.letters_changed();
    let letters = census.look_first().await.letters.unwrap();
    assert_eq!(letters.total, 1, "the pause is cut short");
}

#[tokio::test(start_paused = true)]
async fn nobody_walks_when_nobody_looks() {
    let census = Census::new(filled(1).await);
    assert!(census.look().records.is_none(), "a look does not wait");
    tokio::time::sleep(LOOKED_WITHIN + 2 * PAUSE_MIN).await;
    assert!(
        !census.shared.watched().records.walks,
        "the last look is long ago"
    );
    assert!(census.look().records.is_some());
    assert!(census.shared.watched().records.walks);
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

fn letter() -> Letter {
    Letter {
        id: LetterId([7; 32]),
        key: None,
        route: "charge".to_owned(),
        reason: Reason::Invalid,
        fence: Fence(0),
        retention: Duration::from_secs(60),
        redriven: false,
        alarmed: false,
        delivery: "x".into(),
    }
}

/// A store with more records than anybody counts to the end.
#[derive(Debug, Default)]
struct Endless(MemoryStore);

#[async_trait]
impl Store for Endless {
    fn sharing(&self) -> Sharing {
        self.0.sharing()
    }

    async fn apply(&self, operation: &Operation) -> Result<Answer, Error> {
        self.0.apply(operation).await
    }

    async fn list(
        &self,
        _: Option<State>,
        _: Option<&Cursor>,
        _: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        std::future::pending().await
    }

    async fn sweep(&self, after: Option<&Cursor>) -> Result<Swept, Error> {
        self.0.sweep(after).await
    }
}

#[async_trait]
impl Letters for Endless {
    async fn put(&self, letter: &Letter) -> Result<Put, Error> {
        self.0.put(letter).await
    }

    async fn list(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LetterHead>, Error> {
        Letters::list(&self.0, after, limit).await
    }

    async fn get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        self.0.get(id).await
    }

    async fn mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        self.0.mark(id, mark).await
    }
}

#[tokio::test]
async fn letters_are_counted_anew_while_the_records_are_still_being_counted() {
    let store = Arc::new(Endless::default());
    assert_eq!(store.put(&letter()).await.unwrap(), Put::Applied);
    let census = Census::new(Arc::clone(&store) as Arc<dyn Letters>);
    let known = census.look_first().await;
    assert_eq!(known.letters.unwrap().total, 1);
    assert!(known.records.is_none(), "the walk goes on");
    let closed = store.mark(&letter().id, Mark::Closed).await.unwrap();
    assert_eq!(closed, Marked::Applied);
    census.letters_changed();
    let letters = census.look_first().await.letters.unwrap();
    assert_eq!(letters.total, 0, "the closed letter is not listed any more");
}
