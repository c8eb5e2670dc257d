//! Names of queues and tasks: taken apart, and refused in production's words.

use super::errors::{self, Rpc};
use std::fmt;
use std::sync::Arc;
use tonic::Status;

const QUEUE_ID_MAX: usize = 100;
const TASK_ID_MAX: usize = 500;

/// A task's short id. Numbers, which is what generated ids are, take no memory of their own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum TaskId {
    Number(u64),
    Word(Arc<str>),
}

/// A task's full name, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TaskName<'a> {
    /// The queue's full name.
    pub(super) queue: &'a str,
    pub(super) id: &'a str,
}

// === impl TaskId ===

impl TaskId {
    pub(super) fn new(text: &str) -> Self {
        // Only what is written again as it came.
        let number = text.parse().ok().filter(|it: &u64| it.to_string() == text);
        number.map_or_else(|| Self::Word(text.into()), Self::Number)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => word.fmt(f),
        }
    }
}

/// Checks that `name` is a location's: `projects/P/locations/L`.
pub(super) fn location(name: &str, rpc: Rpc) -> Result<(), Status> {
    let rest = in_project(name, rpc)?;
    match rest.as_slice() {
        ["locations", location] if !location.is_empty() => Ok(()),
        _ => Err(errors::no_permission(rpc, name)),
    }
}

/// Checks that `name` is a queue's.
pub(super) fn queue(name: &str, rpc: Rpc) -> Result<(), Status> {
    let rest = in_project(name, rpc)?;
    match rest.as_slice() {
        ["locations", location, "queues", id] if !location.is_empty() => queue_id(id),
        _ => Err(errors::no_permission(rpc, name)),
    }
}

/// Takes a task's name apart.
pub(super) fn task(name: &str, rpc: Rpc) -> Result<TaskName<'_>, Status> {
    let rest = in_project(name, rpc)?;
    match rest.as_slice() {
        ["locations", location, "queues", queue, "tasks", id] if !location.is_empty() => {
            queue_id(queue)?;
            task_id(id)?;
            Ok(split(name))
        }
        _ => Err(errors::no_permission(rpc, name)),
    }
}

/// Checks the name given to a queue that is to be created under `parent`.
pub(super) fn new_queue(name: &str, parent: &str) -> Result<(), Status> {
    let parts: Vec<&str> = name.split('/').collect();
    let ["projects", project, "locations", location, "queues", id] = parts.as_slice() else {
        return Err(errors::queue_name_form());
    };
    if project.is_empty() || location.is_empty() || id.is_empty() {
        return Err(errors::queue_name_form());
    }
    queue_id(id)?;
    if name
        .strip_prefix(parent)
        .is_none_or(|it| !it.starts_with('/'))
    {
        return Err(errors::invalid(format!("{name} must begin with {parent}.")));
    }
    Ok(())
}

/// The id in the name given to a task that is to be created in `parent`.
pub(super) fn new_task<'a>(name: &'a str, parent: &str) -> Result<&'a str, Status> {
    let parts: Vec<&str> = name.split('/').collect();
    let ["projects", _, "locations", _, "queues", _, "tasks", id] = parts.as_slice() else {
        return Err(errors::task_name_form());
    };
    task_id(id)?;
    let queue = split(name).queue;
    if queue != parent {
        return Err(errors::invalid(format!(
            "The queue name from request ('{parent}') must be the same as the queue name in the named task ('{queue}')."
        )));
    }
    Ok(id)
}

/// The last part of a name.
pub(super) fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

pub(super) fn task_id(id: &str) -> Result<(), Status> {
    let fits = is_id(id, TASK_ID_MAX, "-_");
    fits.then_some(()).ok_or_else(|| errors::task_id(id))
}

fn queue_id(id: &str) -> Result<(), Status> {
    let fits = is_id(id, QUEUE_ID_MAX, "-");
    fits.then_some(()).ok_or_else(|| errors::queue_id(id))
}

/// Whether it has letters, digits and these signs, and not too many of them.
fn is_id(id: &str, max: usize, signs: &str) -> bool {
    let allowed = |it: char| it.is_ascii_alphanumeric() || signs.contains(it);
    (1..=max).contains(&id.len()) && id.chars().all(allowed)
}

/// What follows `projects/P/`.
fn in_project(name: &str, rpc: Rpc) -> Result<Vec<&str>, Status> {
    if name.is_empty() {
        return Err(errors::empty_name(rpc));
    }
    let mut parts = name.split('/');
    match (parts.next(), parts.next()) {
        (Some("projects"), Some(project)) if !project.is_empty() => Ok(parts.collect()),
        (first, _) => Err(errors::no_project(first.unwrap_or_default())),
    }
}

fn split(name: &str) -> TaskName<'_> {
    let (queue, id) = name.rsplit_once("/tasks/").unwrap_or((name, ""));
    TaskName { queue, id }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::rpc::{ErrorInfo, Status as RpcStatus};
    use prost::Message;

    const GET: Rpc = "GetTask";

    #[test]
    fn an_id_is_written_as_it_came() {
        for text in [
            "0",
            "7",
            "007",
            "18446744073709551615",
            "18446744073709551616",
            "a-b_C",
        ] {
            assert_eq!(TaskId::new(text).to_string(), text);
        }
        assert_eq!(TaskId::new("12"), TaskId::Number(12));
        assert_eq!(size_of::<TaskId>(), 16);
    }

    #[test]
    fn a_task_named_queue_parts_is_taken_apart() {
        let name = "projects/p/locations/l/queues/tasks/tasks/t";
        let taken = task(name, GET).unwrap();
        assert_eq!(taken.queue, "projects/p/locations/l/queues/tasks");
        assert_eq!(taken.id, "t");
    }

    #[test]
    fn refusals_carry_the_recorded_details() {
        let details = |name: &str| {
            let refusal = task(name, GET).unwrap_err();
            RpcStatus::decode(refusal.details()).unwrap().details
        };
        let empty = details("").remove(0);
        assert_eq!(empty.type_url, "type.googleapis.com/google.rpc.ErrorInfo");
        let info = ErrorInfo::decode(empty.value.as_slice()).unwrap();
        assert_eq!(info.reason, "RESOURCE_PROJECT_INVALID");
        let method = "google.cloud.tasks.v2.CloudTasks.GetTask";
        assert_eq!(info.metadata["method"], method);
        assert_eq!(details("not-a-valid-name").len(), 3);
    }

    #[test]
    fn names_are_refused_as_production_does() {
        let said = |name: &str| task(name, GET).unwrap_err().message().to_owned();
        assert_eq!(said(""), "Invalid resource field value in the request.");
        assert_eq!(
            said("not-a-valid-name"),
            "Permission denied on resource project not-a-valid-name."
        );
        assert_eq!(
            said("projects/p/locations/l/queues/q/tasks"),
            "The principal (user or service account) lacks IAM permission \"cloudtasks.tasks.get\" for the resource \"projects/p/locations/l/queues/q/tasks\" (or the resource may not exist)."
        );
        assert!(
            said("projects/p/locations/l/queues/q/tasks/not valid")
                .starts_with("Task ID \"not valid\" can contain only")
        );
        assert!(
            said("projects/p/locations/l/queues/not_valid/tasks/t")
                .starts_with("Queue ID \"not_valid\" can contain only")
        );
        let long = "a".repeat(501);
        assert!(new_task(&format!("projects/p/locations/l/queues/q/tasks/{long}"), "").is_err());
    }
}
