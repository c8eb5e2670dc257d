//! The connections: as many as were set, made when needed, and a bound on every wait.

use crate::dialler::Dialler;
use crate::errors::QueryError;
use crate::settings::{PostgresSettings, Target};
use crate::statement::Statement;
use deadpool_postgres::{
    Client, Connect, Manager, ManagerConfig, Pool, QueueMode, RecyclingMethod, Runtime,
};
use semel::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Config, Row};

/// The pause after the first failure to connect; it doubles with each further one.
const RECONNECT_PAUSE_MIN: Duration = Duration::from_millis(50);

/// The longest pause between two attempts to connect.
const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(1);

/// A parameter of a statement.
pub(crate) type Param<'a> = &'a (dyn ToSql + Sync);

/// The connections of a store.
#[derive(Clone)]
pub(crate) struct Connections {
    pool: Pool,
    place: Arc<str>,
    pooler: bool,
    connect_timeout: Duration,
    answer_timeout: Duration,
    /// Whether a write found no room on the server's disk, and nobody has found any since.
    full: Arc<AtomicBool>,
}

/// A connection for a while. Its statements may be under way at the same time.
pub(crate) struct Lent<'a> {
    client: Option<Client>,
    connections: &'a Connections,
}

/// Dials, and after a failure not at once again.
struct PacedDialler {
    dialler: Dialler,
    pace: Arc<Mutex<Pace>>,
}

#[derive(Default)]
struct Pace {
    pause: Duration,
    not_before: Option<Instant>,
}

// === impl Connections ===

impl Connections {
    /// Makes the pool; nothing is dialled yet.
    pub(crate) fn new(settings: &PostgresSettings, target: &Target) -> Result<Self, Error> {
        let hosts = target.dialler.hosts_count();
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let dialler = PacedDialler {
            dialler: target.dialler.clone(),
            pace: Arc::default(),
        };
        // The dialler has the settings of each host; those of the pool are not asked for.
        let manager = Manager::from_connect(Config::new(), dialler, recycling);
        let pool = Pool::builder(manager)
            .max_size(settings.pool_size)
            .runtime(Runtime::Tokio1)
            // The connection used last has its plans and pages at hand.
            .queue_mode(QueueMode::Lifo)
            .create_timeout(Some(RECONNECT_PAUSE_MAX + settings.connect_timeout * hosts))
            .wait_timeout(Some(settings.answer_timeout))
            .build()
            .map_err(|error| Error::bug(format!("PostgreSQL store: no pool: {error}")))?;
        Ok(Self {
            pool,
            place: target.place.as_str().into(),
            pooler: settings.pooler,
            connect_timeout: settings.connect_timeout,
            answer_timeout: settings.answer_timeout,
            full: Arc::default(),
        })
    }

    pub(crate) fn found_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    pub(crate) fn found_room(&self) {
        self.full.store(false, Ordering::Relaxed);
    }

    /// Borrows a connection.
    pub(crate) async fn lend(&self) -> Result<Lent<'_>, QueryError> {
        let client = self.pool.get().await.map_err(|error| {
            QueryError::of_pool(
                error,
                &self.place,
                self.connect_timeout,
                self.answer_timeout,
            )
        })?;
        Ok(Lent {
            client: Some(client),
            connections: self,
        })
    }

    /// Runs a statement on a connection of its own; one that got in another's way, again.
    pub(crate) async fn query(
        &self,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, QueryError> {
        self.lend().await?.query_again(statement, params).await
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("place", &self.place)
            .field("pool", &self.pool.status())
            .finish_non_exhaustive()
    }
}

// === impl Lent ===

impl Lent<'_> {
    /// Runs a statement in its own transaction: one round trip.
    pub(crate) async fn query(
        &self,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, QueryError> {
        let limit = self.connections.answer_timeout;
        let place = &self.connections.place;
        match timeout(limit, self.send(statement, params)).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => {
                if error.code() == Some(&SqlState::DISK_FULL) {
                    self.connections.full.store(true, Ordering::Relaxed);
                }
                Err(QueryError::of(error, place))
            }
            Err(_) => Err(QueryError::no_answer(place, limit)),
        }
    }

    /// The same, and once more when it got in another's way.
    pub(crate) async fn query_again(
        mut self,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, QueryError> {
        let answer = match self.query(statement, params).await {
            Err(QueryError::Again) => self.query(statement, params).await,
            answer => answer,
        };
        if let Err(QueryError::Broken(_)) = answer {
            self.discard();
        }
        answer
    }

    /// Takes the connection out of use: what is still under way on it is unknown.
    pub(crate) fn discard(&mut self) {
        if let Some(client) = self.client.take() {
            drop(Client::take(client));
        }
    }

    async fn send(
        &self,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let client = self
            .client
            .as_ref()
            .expect("a connection is discarded last");
        if self.connections.pooler {
            let typed: Vec<(Param<'_>, Type)> = params
                .iter()
                .copied()
                .zip(statement.types.iter().cloned())
                .collect();
            return client.query_typed(&statement.text, &typed).await;
        }
        let prepared = client.prepare_cached(&statement.text).await?;
        client.query(&prepared, params).await
    }
}

// === impl PacedDialler ===

impl Connect for PacedDialler {
    fn connect(&self, _: &Config) -> Pin<Box<dyn Future<Output = Connected> + Send + '_>> {
        let (dialler, pace) = (self.dialler.clone(), Arc::clone(&self.pace));
        Box::pin(async move {
            let not_before = pace
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .not_before;
            if let Some(moment) = not_before {
                sleep_until(moment).await;
            }
            let dialled = dialler.dial().await;
            pace.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .note(dialled.is_ok());
            dialled.map(|dialled| (dialled.client, dialled.task))
        })
    }
}

type Connected = Result<(tokio_postgres::Client, JoinHandle<()>), tokio_postgres::Error>;

// === impl Pace ===

impl Pace {
    #[allow(
        clippy::disallowed_methods,
        reason = "jitter: nothing that is stored depends on it"
    )]
    fn note(&mut self, connected: bool) {
        if connected {
            *self = Self::default();
            return;
        }
        self.pause = (self.pause * 2).clamp(RECONNECT_PAUSE_MIN, RECONNECT_PAUSE_MAX);
        // Jitter: gates that lost the same server do not come back in step.
        let share = rand::random_range(0.5..1.0);
        self.not_before = Some(Instant::now() + self.pause.mul_f64(share));
    }
}
