//! Load: many callers at once, each asking again as soon as it was answered.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Context;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::rounds::Pace;

/// Events per second of `callers` callers. `act` is given the caller's number and says how many events it was.
pub(crate) async fn rate<A, F>(callers: usize, pace: Pace, act: A) -> anyhow::Result<f64>
where
    A: Fn(usize) -> F + Clone + Send + 'static,
    F: Future<Output = anyhow::Result<u64>> + Send,
{
    let (events, stop) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let mut calling = JoinSet::new();
    for caller in 0..callers {
        let (events, stop, act) = (Arc::clone(&events), Arc::clone(&stop), act.clone());
        calling.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                events.fetch_add(act(caller).await?, Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    sleep(pace.warm_up).await;
    let (began, before) = (Instant::now(), events.load(Ordering::Relaxed));
    sleep(pace.window).await;
    let (took, after) = (began.elapsed(), events.load(Ordering::Relaxed));
    stop.store(true, Ordering::Relaxed);
    join(calling).await?;
    Ok((after - before) as f64 / took.as_secs_f64())
}

/// Events per second of one thread that blocks.
pub(crate) async fn blocking_rate(
    pace: Pace,
    mut act: impl FnMut() -> anyhow::Result<u64> + Send + 'static,
) -> anyhow::Result<f64> {
    let thread = tokio::task::spawn_blocking(move || {
        let warm = Instant::now() + pace.warm_up;
        while Instant::now() < warm {
            act()?;
        }
        let (began, mut events) = (Instant::now(), 0);
        while began.elapsed() < pace.window {
            events += act()?;
        }
        Ok(events as f64 / began.elapsed().as_secs_f64())
    });
    thread.await.context("the measuring thread failed")?
}

/// Does `act` once for each number below `count`, `at_once` of them at a time; it is told its number.
pub(crate) async fn times<A, F, T>(count: u64, at_once: usize, act: A) -> anyhow::Result<Vec<T>>
where
    A: Fn(u64) -> F + Clone + Send + 'static,
    F: Future<Output = anyhow::Result<T>> + Send,
    T: Send + 'static,
{
    let begun = Arc::new(AtomicU64::new(0));
    let mut acting = JoinSet::new();
    for _ in 0..at_once {
        let (begun, act) = (Arc::clone(&begun), act.clone());
        acting.spawn(async move {
            let mut done = Vec::new();
            loop {
                let number = begun.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(done);
                }
                done.push(act(number).await?);
            }
        });
    }
    Ok(join(acting).await?.into_iter().flatten().collect())
}

async fn join<T: 'static>(mut tasks: JoinSet<anyhow::Result<T>>) -> anyhow::Result<Vec<T>> {
    let mut done = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        done.push(ended.context("a caller failed")??);
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn pace(window: Duration) -> Pace {
        Pace {
            rounds: 1,
            warm_up: window / 4,
            window,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rate_counts_only_the_window() {
        let pace = pace(Duration::from_secs(8));
        // Two callers, each with 3 events every 1.5 seconds: once in the warm-up of 2 seconds, 5 times in the window.
        let act = |_| async {
            sleep(Duration::from_millis(1_500)).await;
            Ok(3)
        };
        let rate = rate(2, pace, act).await.unwrap();
        assert!((rate - 2.0 * 3.0 * 5.0 / 8.0).abs() < 0.01, "{rate}");
    }

    #[tokio::test]
    async fn failing_caller_fails_the_measurement() {
        let pace = pace(Duration::from_millis(1));
        let error = rate(1, pace, |_| async { anyhow::bail!("no disk") }).await;
        assert!(error.unwrap_err().to_string().contains("no disk"));
    }

    #[tokio::test]
    async fn times_acts_exactly_so_often() {
        let numbers = times(100, 7, |_| async { Ok(1) }).await.unwrap();
        assert_eq!(numbers.len(), 100);
    }
}
