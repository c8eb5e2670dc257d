//! Group commit: rows of many deliveries, one write at a time.

use crate::failpoint::{Point, pass};
use crate::row::{Fault, Row};
use crate::sink::{Sink, WriteError};
use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

/// The most rows of one group: more are written no faster, and hear later.
const GROUP_ROWS_MAX: usize = 1_000;

/// The most bytes of one group, unless one row alone has more.
const GROUP_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The most rows that wait for a group; whoever comes then waits before it is taken.
const QUEUE_ROWS_MAX: usize = 4 * GROUP_ROWS_MAX;

/// Pause between two markers after a refused write.
const MARKER_PAUSE: Duration = Duration::from_secs(1);

/// Where rows land. Clones land in the same place.
#[derive(Clone, Debug)]
pub struct Landing {
    queue: mpsc::Sender<Order>,
    refusal: Refusal,
}

/// The reason why the last write was refused, until one succeeds.
#[derive(Clone, Debug, Default)]
struct Refusal(Arc<Mutex<Option<NotLanded>>>);

/// A marker that is due after a refused write.
#[derive(Clone, Copy, Debug)]
struct Marker {
    at: Instant,
    /// The size of the group that was refused.
    bytes: usize,
}

/// A row that is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landed {
    /// How many rows became durable together with it.
    pub group_rows: usize,
    /// How they did, told to one of the rows that have a span.
    pub write: Option<GroupWrite>,
}

/// How a group became durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupWrite {
    /// When its write began.
    pub begun: Instant,
    /// The spans of its deliveries.
    pub spans: Vec<String>,
}

/// A row that is not known to be durable: its sender must keep the delivery. A retry is safe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotLanded {
    /// The sink did not take it.
    #[error("{0}")]
    Sink(String),
    /// It took too long.
    #[error("it was not durable in time")]
    Late,
    /// Nothing is written any more.
    #[error("the landing is closed")]
    Closed,
}

#[derive(Debug)]
enum Order {
    Land(Box<Waiting>),
    Ready(oneshot::Sender<Result<(), NotLanded>>),
    Close(oneshot::Sender<()>),
}

/// A row whose delivery waits.
#[derive(Debug)]
struct Waiting {
    row: Row,
    heard: oneshot::Sender<Result<Landed, NotLanded>>,
}

/// The one that writes.
#[derive(Debug)]
struct Writer<S> {
    sink: S,
    refusal: Refusal,
    marker: Option<Marker>,
    orders: mpsc::Receiver<Order>,
    /// What was taken out of the queue beside the last group.
    next: Option<Order>,
}

// === impl Landing ===

impl Landing {
    /// Begins to write to this sink, in a task of its own.
    #[must_use]
    pub fn begin(sink: impl Sink) -> Self {
        let (queue, orders) = mpsc::channel(QUEUE_ROWS_MAX);
        let refusal = Refusal::default();
        let writer = Writer {
            sink,
            refusal: refusal.clone(),
            marker: None,
            orders,
            next: None,
        };
        drop(tokio::spawn(writer.run()));
        Self { queue, refusal }
    }

    /// Waits until the row is durable, for so long at the most.
    ///
    /// # Errors
    /// When that is not known; the row may have landed all the same.
    pub async fn land(&self, row: Row, within: Duration) -> Result<Landed, NotLanded> {
        if within.is_zero() {
            return Err(NotLanded::Late);
        }
        let (heard, hears) = oneshot::channel();
        let row = row.judged();
        let order = Order::Land(Box::new(Waiting { row, heard }));
        self.asked(order, hears, within).await?
    }

    /// Asks the sink. After a refused write the landing is not ready until a row lands, or a marker of that size is written:
    /// one is tried every second.
    ///
    /// # Errors
    /// The reason why a row would not land.
    pub async fn ready(&self, within: Duration) -> Result<(), NotLanded> {
        if let Some(why) = self.refusal.get() {
            return Err(why);
        }
        let (heard, hears) = oneshot::channel();
        self.asked(Order::Ready(heard), hears, within).await?
    }

    /// Writes what has come until now, and nothing after it.
    pub async fn close(&self) {
        let (heard, hears) = oneshot::channel();
        if self.queue.send(Order::Close(heard)).await.is_ok() {
            hears.await.ok();
        }
    }

    async fn asked<T>(
        &self,
        order: Order,
        hears: oneshot::Receiver<T>,
        within: Duration,
    ) -> Result<T, NotLanded> {
        let asked = async {
            let sent = self.queue.send(order).await;
            sent.map_err(|_| NotLanded::Closed)?;
            hears.await.map_err(|_| NotLanded::Closed)
        };
        timeout(within, asked).await.unwrap_or(Err(NotLanded::Late))
    }
}

// === impl Refusal ===

impl Refusal {
    fn get(&self) -> Option<NotLanded> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, why: Option<NotLanded>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}

// === impl Writer ===

impl<S: Sink> Writer<S> {
    async fn run(mut self) {
        loop {
            match self.order().await {
                Some(Order::Land(first)) => {
                    let group = self.group(*first);
                    self.settle(group).await;
                }
                Some(Order::Ready(heard)) => {
                    let ready = self.sink.ready().await;
                    drop(heard.send(ready.map_err(NotLanded::from)));
                }
                Some(Order::Close(heard)) => {
                    self.sink.close().await;
                    heard.send(()).ok();
                    return;
                }
                None => return self.sink.close().await,
            }
        }
    }

    /// The next order; what is due by time is done meanwhile.
    async fn order(&mut self) -> Option<Order> {
        if let Some(order) = self.next.take() {
            return Some(order);
        }
        loop {
            let (due, marker) = (self.sink.due(), self.marker.map(|marker| marker.at));
            tokio::select! {
                biased;
                order = self.orders.recv() => return order,
                () = reached(marker) => self.try_marker().await,
                () = reached(due) => self.sink.tend().await,
            }
        }
    }

    async fn try_marker(&mut self) {
        let Some(Marker { bytes, .. }) = self.marker else {
            return;
        };
        match self.sink.try_marker(bytes).await {
            // A row that is refused for its own sake shows that rows are written.
            Ok(()) | Err(WriteError::Refused(_)) => self.writes(),
            Err(error @ WriteError::Unavailable(_)) => self.refuses(bytes, error.into()),
        }
    }

    fn writes(&mut self) {
        if self.marker.take().is_some() {
            self.refusal.set(None);
        }
    }

    fn refuses(&mut self, bytes: usize, why: NotLanded) {
        let at = Instant::now() + MARKER_PAUSE;
        self.marker = Some(Marker { at, bytes });
        self.refusal.set(Some(why));
    }

    /// Everything that waits already, as far as a group goes. Whoever has stopped waiting is left out.
    fn group(&mut self, first: Waiting) -> Vec<Waiting> {
        let mut bytes = first.row.bytes();
        let mut group = vec![first];
        while group.len() < GROUP_ROWS_MAX {
            match self.orders.try_recv() {
                Ok(Order::Land(waiting)) if bytes + waiting.row.bytes() <= GROUP_BYTES_MAX => {
                    bytes += waiting.row.bytes();
                    group.push(*waiting);
                }
                Ok(other) => {
                    self.next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        group.retain(|waiting| !waiting.heard.is_closed());
        group
    }

    /// Writes a group. One that is refused is cut in half until it is known which row it is; that row is a fault.
    async fn settle(&mut self, group: Vec<Waiting>) {
        let mut groups = VecDeque::from([group]);
        while let Some(mut group) = groups.pop_front() {
            let Some(first) = group.first() else {
                continue;
            };
            let is_fault = first.row.fault.is_some();
            let rows: Vec<_> = group.iter().map(|waiting| &waiting.row).collect();
            let begun = Instant::now();
            pass(Point::BeforeWrite);
            match self.sink.write(&rows).await {
                Ok(()) => {
                    pass(Point::Durable);
                    self.writes();
                    acknowledge(group, begun);
                }
                Err(WriteError::Refused(_)) if group.len() > 1 => {
                    let rest = group.split_off(group.len() / 2);
                    groups.push_front(rest);
                    groups.push_front(group);
                }
                Err(WriteError::Refused(detail)) if !is_fault => {
                    for waiting in &mut group {
                        let (word, detail) = ("row-refused", detail.clone());
                        waiting.row.fault = Some(Fault { word, detail });
                    }
                    groups.push_front(group);
                }
                // A fault that is refused says nothing about rows.
                Err(error @ WriteError::Refused(_)) => refuse(group, &error.into()),
                Err(error @ WriteError::Unavailable(_)) => {
                    let why = NotLanded::from(error);
                    let bytes = rows.iter().map(|row| row.bytes()).sum();
                    self.refuses(bytes, why.clone());
                    refuse(group, &why);
                }
            }
        }
    }
}

async fn reached(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

/// Tells everyone that the group is durable, and the first with a span that still waits how it was written.
fn acknowledge(group: Vec<Waiting>, begun: Instant) {
    let group_rows = group.len();
    let spans: Vec<_> = group.iter().filter_map(|it| it.row.span.clone()).collect();
    let mut untold = Some(GroupWrite { begun, spans });
    for waiting in group {
        let write = waiting.row.span.and_then(|_| untold.take());
        let landed = Landed { group_rows, write };
        // Who no longer waits has said so to its sender.
        if let Err(Ok(unheard)) = waiting.heard.send(Ok(landed)) {
            untold = untold.or(unheard.write);
        }
    }
}

fn refuse(group: Vec<Waiting>, why: &NotLanded) {
    for waiting in group {
        drop(waiting.heard.send(Err(why.clone())));
    }
}

// === impl NotLanded ===

impl From<WriteError> for NotLanded {
    fn from(error: WriteError) -> Self {
        Self::Sink(error.to_string())
    }
}
