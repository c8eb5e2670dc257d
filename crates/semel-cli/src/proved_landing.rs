//! A table where rows land only once the settings of its server were read, and bear out what its routes promise.

use async_trait::async_trait;
use semel::Error;
use semel_landing::{Row, Sink, WriteError};
use semel_postgres::{DurabilitySettings, TableSink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// A table that refuses rows, retryably, while a demanded promise is not proved.
#[derive(Debug)]
pub(crate) struct ProvedSink {
    sink: TableSink,
    proof: Proof,
}

/// The proof of one table: the settings of its server, and the state of the demand.
#[derive(Clone, Debug)]
pub(crate) struct Proof(Arc<State>);

#[derive(Debug)]
struct State {
    settings: OnceLock<DurabilitySettings>,
    is_demanded: AtomicBool,
    is_proved: AtomicBool,
    /// Counts the servers that were read, for all landings of a gate.
    reads: watch::Sender<u64>,
}

// === impl ProvedSink ===

impl ProvedSink {
    /// Wraps a table whose server was not read yet; `reads` counts those that were.
    pub(crate) fn of(sink: TableSink, reads: &watch::Sender<u64>) -> (Self, Proof) {
        let proof = Proof(Arc::new(State {
            settings: OnceLock::new(),
            is_demanded: AtomicBool::new(false),
            is_proved: AtomicBool::new(false),
            reads: reads.clone(),
        }));
        let wrapped = Self {
            sink,
            proof: proof.clone(),
        };
        (wrapped, proof)
    }

    /// Connects, checks the table, and reads the settings of its server; says how durable it is.
    ///
    /// # Errors
    /// As [`TableSink::check`].
    pub(crate) async fn check(&mut self) -> Result<String, Error> {
        let says = self.sink.check().await?;
        self.read().await?;
        Ok(says)
    }

    async fn read(&mut self) -> Result<(), Error> {
        if self.proof.read().is_none() {
            let read = self.sink.durability_settings().await?;
            self.proof.0.settings.get_or_init(|| read);
            self.proof.0.reads.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    /// Refuses rows until what was demanded is proved.
    async fn proved(&mut self) -> Result<(), WriteError> {
        let read = self.read().await;
        read.map_err(|error| WriteError::Unavailable(error.to_string()))?;
        if self.proof.lets_land() {
            return Ok(());
        }
        let why = "the promise of its route is not proved yet";
        Err(WriteError::Unavailable(why.into()))
    }
}

#[async_trait]
impl Sink for ProvedSink {
    async fn write(&mut self, group: &[&Row]) -> Result<(), WriteError> {
        self.proved().await?;
        self.sink.write(group).await
    }

    async fn ready(&mut self) -> Result<(), WriteError> {
        self.proved().await?;
        self.sink.ready().await
    }

    async fn try_marker(&mut self, bytes: usize) -> Result<(), WriteError> {
        self.proved().await?;
        self.sink.try_marker(bytes).await
    }

    async fn close(&mut self) {
        self.sink.close().await;
    }
}

// === impl Proof ===

impl Proof {
    /// Demands that a promise is proved before rows land.
    pub(crate) fn demand(&self) {
        self.0.is_demanded.store(true, Ordering::Release);
    }

    /// Lets rows land.
    pub(crate) fn prove(&self) {
        self.0.is_proved.store(true, Ordering::Release);
    }

    fn lets_land(&self) -> bool {
        self.0.is_proved.load(Ordering::Acquire) || !self.0.is_demanded.load(Ordering::Acquire)
    }

    /// The settings of the server, once they were read.
    pub(crate) fn read(&self) -> Option<&DurabilitySettings> {
        self.0.settings.get()
    }
}
