//! What an attempt leaves in its task's record.

use super::outcome::response_status;
use super::schedule::Retry;
use crate::clock::Time;
use crate::proto::tasks::task::MessageType;
use crate::proto::tasks::{Attempt, Queue, StoredTask, Task};
use prost_types::Timestamp;
use std::time::Duration;

/// An attempt that failed.
#[derive(Debug)]
pub(super) struct FailedAttempt {
    /// What the task had been scheduled for.
    pub(super) scheduled: Option<Timestamp>,
    pub(super) started: Time,
    pub(super) ended: Time,
    /// From when on the wait for the next attempt counts.
    pub(super) backoff_from: Time,
    /// 504 after a deadline, 0 when no answer came.
    pub(super) code: u16,
}

/// What follows a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterFailure {
    Retry(Time),
    GiveUp,
}

/// Writes a failed attempt into the record.
///
/// `Retry-After` can make the wait longer, though never longer than the longest backoff.
pub(super) fn failed(
    stored: &mut StoredTask,
    queue: &Queue,
    failed: &FailedAttempt,
    retry_after: Option<Duration>,
) -> AfterFailure {
    let task = stored.task.get_or_insert_default();
    task.dispatch_count = task.dispatch_count.saturating_add(1);
    if counts_as_response(task, failed.code) {
        task.response_count = task.response_count.saturating_add(1);
    }
    let started = failed.started.timestamp();
    task.first_attempt.get_or_insert(Attempt {
        dispatch_time: Some(started),
        ..Attempt::default()
    });
    task.last_attempt = Some(Attempt {
        schedule_time: failed.scheduled,
        dispatch_time: Some(started),
        response_time: Some(failed.ended.timestamp()),
        response_status: Some(response_status(failed.code)),
    });
    stored.previous_response = Some(previous_response(task, failed.code));

    let retry = task.retry_config.or(queue.retry_config).unwrap_or_default();
    let retry = Retry::of(&retry);
    let attempts = u32::try_from(task.dispatch_count).unwrap_or(u32::MAX);
    if retry.gives_up(attempts, first_attempt(task), created(task), failed.ended) {
        return AfterFailure::GiveUp;
    }
    let asked = retry_after.unwrap_or_default().min(retry.backoff_max);
    let next = failed.backoff_from.plus(retry.backoff(attempts).max(asked));
    task.schedule_time = Some(next.timestamp());
    AfterFailure::Retry(next)
}

/// For HTTP targets a 5xx does not count as a response.
fn counts_as_response(task: &Task, code: u16) -> bool {
    match task.message_type.as_ref() {
        Some(MessageType::AppEngineHttpRequest(_)) => code != 0,
        Some(MessageType::HttpRequest(_)) | None => (1..500).contains(&code),
    }
}

/// App Engine tells a timeout from an answer.
fn previous_response(task: &Task, code: u16) -> i32 {
    match (task.message_type.as_ref(), code) {
        (Some(MessageType::AppEngineHttpRequest(_)), 504) => 0,
        (_, code) => i32::from(code),
    }
}

fn first_attempt(task: &Task) -> Time {
    let first = task.first_attempt.as_ref();
    let at = first.and_then(|first| first.dispatch_time.as_ref());
    at.map(Time::of).unwrap_or_default()
}

/// When it was created.
pub(super) fn created(task: &Task) -> Time {
    task.create_time.as_ref().map(Time::of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::config;

    #[test]
    fn a_wish_for_a_pause_is_considered_up_to_the_longest_backoff() {
        let mut queue = Queue::default();
        let retry = queue.retry_config.get_or_insert_default();
        retry.max_backoff = Some(crate::clock::proto_span(Duration::from_secs(30)));
        let queue = config::with_defaults(queue).unwrap();
        let attempt = FailedAttempt {
            scheduled: None,
            started: Time(0),
            ended: Time(0),
            backoff_from: Time(0),
            code: 503,
        };
        for (asked, waits) in [(10, 10), (100, 30)] {
            let asked = Some(Duration::from_secs(asked));
            let after = failed(&mut StoredTask::default(), &queue, &attempt, asked);
            let at = Time(0).plus(Duration::from_secs(waits));
            assert_eq!(after, AfterFailure::Retry(at));
        }
    }
}
