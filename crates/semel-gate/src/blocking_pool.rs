//! A pool for large bodies: they are read beside the workers, so that renewals, health checks and small
//! deliveries do not wait for them.

use std::panic::resume_unwind;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// A body up to this size is read where it is: that takes less than handing it over. 64 KiB of JSON take
/// about a millisecond.
const AT_ONCE_BYTES_MAX: usize = 64 * 1024;

/// Places for bodies that are being read.
#[derive(Debug)]
pub(crate) struct BlockingPool(Arc<Semaphore>);

// === impl BlockingPool ===

impl BlockingPool {
    /// Half as many as there are workers: the others keep their processors.
    pub(crate) fn new() -> Self {
        let workers = Handle::try_current().map_or(1, |handle| handle.metrics().num_workers());
        Self(Arc::new(Semaphore::new((workers / 2).max(1))))
    }

    /// Runs what reads so many bytes.
    pub(crate) async fn run<T>(&self, bytes: usize, read: impl FnOnce() -> T + Send + 'static) -> T
    where
        T: Send + 'static,
    {
        if bytes <= AT_ONCE_BYTES_MAX {
            return read();
        }
        let place = Arc::clone(&self.0).acquire_owned().await;
        let place = place.expect("this semaphore is never closed");
        let reading = spawn_blocking(move || {
            let read = read();
            drop(place);
            read
        });
        match reading
            .await
            .map_err(tokio::task::JoinError::try_into_panic)
        {
            Ok(read) => read,
            Err(Ok(panic)) => resume_unwind(panic),
            // The process ends, and so does whoever waits here.
            Err(Err(_)) => std::future::pending().await,
        }
    }
}
