//! A table where rows land only once the settings of its server were read, and bear out what its routes promise.

use async_trait::async_trait;
use semel::Error;
use semel_landing::{Row, Sink, WriteError};
use semel_postgres::{DurabilitySettings, TableSink};
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
pub(crate) struct Proof {
    settings: Arc<OnceLock<DurabilitySettings>>,
    state: watch::Sender<State>,
}

/// Progress of a proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    demanded: bool,
    read: bool,
    proved: bool,
}

// === impl ProvedSink ===

impl ProvedSink {
    /// Wraps a table whose server was not read yet.
    pub(crate) fn of(sink: TableSink) -> (Self, Proof) {
        let proof = Proof {
            settings: Arc::default(),
            state: watch::Sender::default(),
        };
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
        if self.proof.settings.get().is_none() {
            let read = self.sink.durability_settings().await?;
            self.proof.settings.get_or_init(|| read);
            self.proof.state.send_modify(|state| state.read = true);
        }
        Ok(())
    }

    /// Refuses rows until what was demanded is proved.
    async fn proved(&mut self) -> Result<(), WriteError> {
        let read = self.read().await;
        read.map_err(|error| WriteError::Unavailable(error.to_string()))?;
        let state = *self.proof.state.borrow();
        if state.demanded && !state.proved {
            let why = "the promise of its route is not proved yet";
            return Err(WriteError::Unavailable(why.into()));
        }
        Ok(())
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
        self.state.send_modify(|state| state.demanded = true);
    }

    /// Lets rows land.
    pub(crate) fn prove(&self) {
        self.state.send_modify(|state| state.proved = true);
    }

    /// The settings of the server, once they were read.
    pub(crate) fn read(&self) -> Option<&DurabilitySettings> {
        self.settings.get()
    }

    /// Returns whether nothing remains to be read for a promise.
    pub(crate) fn is_read(&self) -> bool {
        let state = *self.state.borrow();
        state.read || !state.demanded
    }

    pub(crate) async fn until_read(&self) {
        let mut state = self.state.subscribe();
        let read = state.wait_for(|state| state.read || !state.demanded);
        read.await.map(drop).expect("this proof holds the sender");
    }
}
