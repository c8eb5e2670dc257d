//! One connection that comes back: dialled when needed, given up when it is broken or silent.
//!
//! While the server is away a call fails at once with the last reason; one call at a time dials
//! again, after a pause that doubles up to a second.

use crate::errors;
use crate::eviction::Eviction;
use crate::settings::RedisSettings;
use crate::tls::Tls;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionAddr, Pipeline, RedisConnectionInfo, RedisError, Value,
};
use semel::Error;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How many calls may wait to be written to a connection before callers wait for room.
const QUEUE_CALLS_MAX: usize = 4_096;

/// The pause after the first failure to connect; it doubles with each further one.
const PAUSE_FIRST: Duration = Duration::from_millis(25);

/// The longest pause between two attempts to connect.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Where connections lead.
#[derive(Clone)]
pub(crate) struct Target {
    host: String,
    port: u16,
    tls: Option<Tls>,
    user: RedisConnectionInfo,
    config: AsyncConnectionConfig,
    connect_timeout: Duration,
    allow_eviction: bool,
    pub(crate) eviction: Eviction,
    /// Host and port, for messages.
    pub(crate) address: String,
    /// How long an answer may take.
    pub(crate) patience: Duration,
}

/// A connection that comes back.
#[derive(Debug)]
pub(crate) struct Connection {
    target: Target,
    up: RwLock<Option<OpenConnection>>,
    outage: Mutex<Option<Outage>>,
}

/// A connection that was alive when it was last used.
#[derive(Clone, Debug)]
pub(crate) struct OpenConnection {
    connection: MultiplexedConnection,
    driver: Arc<Driver>,
}

/// What reads and writes the socket. It ends with the connection, idle or not, and is ended with
/// the last [`OpenConnection`] that needs it.
#[derive(Debug)]
struct Driver(JoinHandle<()>);

/// Why there is no connection, and when to try again.
#[derive(Debug)]
struct Outage {
    why: Error,
    pause: Duration,
    until: Instant,
}

// === impl Target ===

impl Target {
    pub(crate) fn new(settings: &RedisSettings) -> Result<Self, Error> {
        let (info, tls) = settings.place()?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            return Err(Error::bug("a redis:// URL is not TCP"));
        };
        let waiting = settings.wait_replicas.map(|wait| wait.timeout);
        let patience = settings.response_timeout + waiting.unwrap_or_default();
        Ok(Self {
            host: host.clone(),
            port: *port,
            tls,
            user: info.redis_settings().clone(),
            config: AsyncConnectionConfig::new()
                .set_response_timeout(Some(patience))
                .set_pipeline_buffer_size(QUEUE_CALLS_MAX),
            connect_timeout: settings.connect_timeout,
            allow_eviction: settings.allow_eviction,
            eviction: Eviction::default(),
            address: info.addr().to_string(),
            patience,
        })
    }

    /// A new connection, or the plain reason why there is none.
    pub(crate) async fn dial(&self) -> Result<OpenConnection, RedisError> {
        let dialled = tokio::time::timeout(self.connect_timeout, self.connect()).await;
        dialled.map_err(|_| {
            // Redis without TLS waits for the rest of what it takes for a command.
            let hint = match &self.tls {
                Some(_) => ": look whether it speaks TLS on this port",
                None => "",
            };
            let what = format!("no connection within {:?}{hint}", self.connect_timeout);
            RedisError::from(std::io::Error::other(what))
        })?
    }

    async fn connect(&self) -> Result<OpenConnection, RedisError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => self.greet(stream).await,
            Some(tls) => self.greet(tls.shake_hands(stream).await?).await,
        }
    }

    /// Says who we are, and which database we mean.
    async fn greet<S>(&self, stream: S) -> Result<OpenConnection, RedisError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let config = self.config.clone();
        let connecting = MultiplexedConnection::new_with_config(&self.user, stream, config);
        let (connection, driver) = Box::pin(connecting).await?;
        Ok(OpenConnection {
            connection,
            driver: Arc::new(Driver(tokio::spawn(driver))),
        })
    }

    pub(crate) fn error(&self, error: &RedisError) -> Error {
        errors::error(error, &self.address, self.patience)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.address).finish()
    }
}

// === impl Connection ===

impl Connection {
    pub(crate) fn new(target: Target) -> Self {
        Self {
            target,
            up: RwLock::default(),
            outage: Mutex::default(),
        }
    }

    /// Sends one command.
    pub(crate) async fn send(&self, command: &Cmd) -> Result<Value, SendError> {
        let mut up = self.connected().await?;
        let answer = up.send(command).await;
        answer.map_err(|error| self.failed(&up, error))
    }

    /// Sends commands together; an error of one of them is its own answer.
    pub(crate) async fn send_all(&self, commands: &Pipeline) -> Result<Vec<Value>, SendError> {
        let mut up = self.connected().await?;
        let answers = up
            .connection
            .send_packed_commands(commands, 0, commands.len());
        answers.await.map_err(|error| self.failed(&up, error))
    }

    async fn connected(&self) -> Result<OpenConnection, Error> {
        if let Some(up) = self.current() {
            return Ok(up);
        }
        let mut outage = self.outage.lock().await;
        // Whoever held the lock may have connected, or have learnt that it is no use yet.
        if let Some(up) = self.current() {
            return Ok(up);
        }
        if let Some(outage) = outage.as_ref().filter(|it| Instant::now() < it.until) {
            return Err(outage.why.clone());
        }
        match self.target.dial().await {
            Ok(mut up) => {
                if !self.target.allow_eviction {
                    let eviction = &self.target.eviction;
                    eviction.alarm(&mut up, &self.target.address).await;
                }
                *outage = None;
                self.set(Some(up.clone()));
                Ok(up)
            }
            Err(error) => {
                let why = errors::error_at_dial(&error, &self.target.address);
                *outage = Some(Outage::again(outage.as_ref(), why.clone()));
                Err(why)
            }
        }
    }

    fn failed(&self, up: &OpenConnection, error: RedisError) -> SendError {
        if errors::costs_the_connection(&error) {
            self.give_up(up);
        }
        SendError::Redis(error)
    }

    /// Lets the next call dial, unless somebody already has.
    fn give_up(&self, up: &OpenConnection) {
        let mut current = self.up.write().unwrap_or_else(PoisonError::into_inner);
        if current
            .as_ref()
            .is_some_and(|now| Arc::ptr_eq(&now.driver, &up.driver))
        {
            *current = None;
        }
    }

    /// The connection, unless the server has closed it.
    fn current(&self) -> Option<OpenConnection> {
        let up = self.up.read().unwrap_or_else(PoisonError::into_inner);
        up.as_ref().filter(|up| !up.driver.0.is_finished()).cloned()
    }

    fn set(&self, up: Option<OpenConnection>) {
        *self.up.write().unwrap_or_else(PoisonError::into_inner) = up;
    }
}

/// Why a command was not answered.
#[derive(Debug)]
pub(crate) enum SendError {
    /// It was not sent: there is no connection.
    NotConnected(Error),
    /// Redis, or the connection, said this.
    Redis(RedisError),
}

impl From<Error> for SendError {
    fn from(why: Error) -> Self {
        Self::NotConnected(why)
    }
}

// === impl OpenConnection ===

impl OpenConnection {
    /// Sends one command; an error that the server answers is an error.
    pub(crate) async fn send(&mut self, command: &Cmd) -> Result<Value, RedisError> {
        let answer = self.connection.send_packed_command(command).await?;
        if let Value::ServerError(error) = answer {
            return Err(error.into());
        }
        Ok(answer)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// === impl Outage ===

impl Outage {
    fn again(before: Option<&Self>, why: Error) -> Self {
        let pause = before.map_or(PAUSE_FIRST, |before| (before.pause * 2).min(PAUSE_MAX));
        Self {
            why,
            pause,
            until: Instant::now() + pause,
        }
    }
}
