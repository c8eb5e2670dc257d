//! Cloud Tasks: a push whose headers name the queue and the task. Nothing strips these headers on the
//! way to a plain HTTP target, so they are identity only where the route trusts its sender.

use super::refuse;
use crate::delivery::{Delivery, Invalid, Transport, single_header};
use crate::settings::Source;
use bytes::Bytes;
use http::{HeaderMap, Request};

/// How one kind of target spells the headers.
struct HeaderNames {
    queue: &'static str,
    task: &'static str,
    retry_count: &'static str,
    execution_count: &'static str,
    previous_response: &'static str,
}

const HTTP_TARGET: HeaderNames = HeaderNames {
    queue: "x-cloudtasks-queuename",
    task: "x-cloudtasks-taskname",
    retry_count: "x-cloudtasks-taskretrycount",
    execution_count: "x-cloudtasks-taskexecutioncount",
    previous_response: "x-cloudtasks-taskpreviousresponse",
};

const APP_ENGINE: HeaderNames = HeaderNames {
    queue: "x-appengine-queuename",
    task: "x-appengine-taskname",
    retry_count: "x-appengine-taskretrycount",
    execution_count: "x-appengine-taskexecutioncount",
    previous_response: "x-appengine-taskpreviousresponse",
};

pub(super) fn recognises(headers: &HeaderMap) -> bool {
    HTTP_TARGET.is_in(headers) || APP_ENGINE.is_in(headers)
}

pub(super) fn read(request: &Request<Bytes>) -> Result<Delivery, Invalid> {
    let headers = request.headers();
    let names = HeaderNames::of(headers);
    Ok(Delivery {
        transport: Transport {
            queue: Some(required(headers, names.queue, "cloud-tasks-no-queue")?),
            task_name: Some(required(headers, names.task, "cloud-tasks-no-task-name")?),
            ..counts(headers)
        },
        ..Delivery::new(Source::CloudTasks, request.body().clone())
    })
}

/// The counts of a task's dispatches.
pub(super) fn counts(headers: &HeaderMap) -> Transport {
    let names = HeaderNames::of(headers);
    Transport {
        retry_count: number(headers, names.retry_count),
        execution_count: number(headers, names.execution_count),
        previous_response: number(headers, names.previous_response),
        ..Transport::default()
    }
}

fn required(headers: &HeaderMap, name: &str, code: &'static str) -> Result<String, Invalid> {
    match single_header(headers, name)? {
        Some(text) if !text.is_empty() => Ok(text.into_owned()),
        Some(_) | None => Err(refuse(
            code,
            format!(
                "the header {name} is missing or empty, which Cloud Tasks always sends: let it \
                 through whatever stands before the gate, or give the route the source that sends"
            ),
        )),
    }
}

/// A count, for the log only: one that cannot be read is no reason to refuse work.
fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

// === impl HeaderNames ===

impl HeaderNames {
    /// The one in use. The two are never mixed: the task's creator may have set the other's headers.
    fn of(headers: &HeaderMap) -> &'static Self {
        if APP_ENGINE.is_in(headers) && !HTTP_TARGET.is_in(headers) {
            &APP_ENGINE
        } else {
            &HTTP_TARGET
        }
    }

    fn is_in(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(self.queue) || headers.contains_key(self.task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&'static str, &str)]) -> Request<Bytes> {
        let mut request = Request::post("/tasks");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Bytes::from_static(b"{}")).unwrap()
    }

    #[test]
    fn counts_that_cannot_be_read_are_left_out() {
        let delivery = read(&request(&[
            ("x-cloudtasks-queuename", "orders"),
            ("x-cloudtasks-taskname", "7"),
            ("x-cloudtasks-taskretrycount", "-1"),
            ("x-cloudtasks-taskexecutioncount", ""),
            ("x-cloudtasks-taskpreviousresponse", "503"),
        ]))
        .unwrap();
        assert_eq!(delivery.transport.retry_count, None);
        assert_eq!(delivery.transport.execution_count, None);
        assert_eq!(delivery.transport.previous_response, Some(503));
    }

    #[test]
    fn the_two_spellings_are_never_mixed() {
        let both = [
            ("x-appengine-queuename", "forged"),
            ("x-appengine-taskname", "forged"),
            ("x-cloudtasks-queuename", "orders"),
        ];
        let invalid = read(&request(&both)).unwrap_err();
        assert_eq!(invalid.code, "cloud-tasks-no-task-name");
    }

    #[test]
    fn two_task_names_are_refused() {
        let twice = [
            ("x-cloudtasks-queuename", "orders"),
            ("x-cloudtasks-taskname", "1"),
            ("x-cloudtasks-taskname", "2"),
        ];
        assert_eq!(read(&request(&twice)).unwrap_err().code, "header-repeated");
    }
}
