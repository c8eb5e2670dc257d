//! Refusals, in production's words and with the details it attaches.

use crate::proto::rpc::{Help, LocalizedMessage, help};
use crate::status::{detail, detailed, error_info};
use tonic::{Code, Status};

const DEFINITIONS: &str = "https://cloud.google.com/tasks/docs/reference/rest/v2/";

const SERVICE: &str = "cloudtasks.googleapis.com";

/// The method that was called, as refusals name it: `GetQueue`.
pub(super) type Rpc = &'static str;

pub(super) fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

/// What production says when it gives no reason.
pub(super) fn invalid_somehow() -> Status {
    invalid("Request contains an invalid argument.")
}

pub(super) fn no_queue() -> Status {
    Status::not_found(
        "Queue does not exist. If you just created the queue, wait at least a minute for the queue to initialize.",
    )
}

pub(super) fn not_found() -> Status {
    Status::not_found("Requested entity was not found.")
}

pub(super) fn task_is_past() -> Status {
    Status::not_found(
        "The task no longer exists, though a task with this name existed recently. The task either successfully completed or was deleted.",
    )
}

pub(super) fn task_exists() -> Status {
    Status::already_exists("Requested entity already exists")
}

pub(super) fn task_existed_recently() -> Status {
    Status::already_exists(format!(
        "The task cannot be created because a task with this name existed too recently. For more information about task de-duplication see {DEFINITIONS}projects.locations.queues.tasks/create#body.request_body.FIELDS.task."
    ))
}

pub(super) fn queue_exists() -> Status {
    Status::already_exists("Queue already exists")
}

pub(super) fn queue_existed_recently() -> Status {
    Status::failed_precondition(
        "The queue cannot be created because a queue with this name existed too recently.",
    )
}

pub(super) fn empty_name(rpc: Rpc) -> Status {
    let message = "Invalid resource field value in the request.";
    let method = format!("google.cloud.tasks.v2.CloudTasks.{rpc}");
    let metadata = [("method", &*method), ("service", SERVICE)];
    let info = error_info("RESOURCE_PROJECT_INVALID", "googleapis.com", metadata);
    detailed(Code::InvalidArgument, message, vec![info])
}

pub(super) fn no_project(name: &str) -> Status {
    let message = format!("Permission denied on resource project {name}.");
    let consumer = format!("projects/{name}");
    let metadata = [
        ("consumer", &*consumer),
        ("containerInfo", name),
        ("service", SERVICE),
    ];
    let localized = LocalizedMessage {
        locale: "en-US".into(),
        message: message.clone(),
    };
    let console = "https://console.developers.google.com".into();
    let details = vec![
        error_info("CONSUMER_INVALID", "googleapis.com", metadata),
        detail("LocalizedMessage", &localized),
        detail("Help", &help("Google developers console", console)),
    ];
    detailed(Code::PermissionDenied, &message, details)
}

pub(super) fn no_permission(rpc: Rpc, resource: &str) -> Status {
    let permission = permission(rpc);
    Status::permission_denied(format!(
        "The principal (user or service account) lacks IAM permission \"cloudtasks.{permission}\" for the resource \"{resource}\" (or the resource may not exist)."
    ))
}

/// What production asks for: `queues.get` for `GetQueue`.
fn permission(rpc: Rpc) -> String {
    let noun = rpc.find("Queue").or(rpc.find("Task"));
    let (verb, noun) = rpc.split_at(noun.unwrap_or(rpc.len()));
    let verb = match verb {
        "Buffer" => "create",
        verb => verb,
    };
    format!("{}s.{verb}", noun.trim_end_matches('s')).to_lowercase()
}

pub(super) fn queue_name_form() -> Status {
    let message = "Queue name must be formatted: \"projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>\".";
    explained(message, "Definition of queue name", QUEUE)
}

pub(super) fn queue_id(id: &str) -> Status {
    let message = format!(
        "Queue ID \"{id}\" can contain only letters ([A-Za-z]), numbers ([0-9]), or hyphens (-). Queue ID must be between 1 and 100 characters."
    );
    explained(&message, "Definition of queue ID", QUEUE)
}

pub(super) fn task_name_form() -> Status {
    let message = "Task name must be formatted: \"projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>/tasks/<TASK_ID>\".";
    explained(message, "Definition of task name", TASK)
}

pub(super) fn task_id(id: &str) -> Status {
    let message = format!(
        "Task ID \"{id}\" can contain only letters ([A-Za-z]), numbers ([0-9]), hyphens (-), or underscores (_). Task ID must between 1 and 500 characters."
    );
    explained(&message, "Definition of task ID", TASK)
}

/// A queue's `httpTarget` that cannot be; `why` is empty where production gives no reason.
pub(super) fn http_target(why: &str) -> Status {
    let message = format!("Error in parsing HttpTarget. {why}");
    let reason = "INVALID_INPUT_ON_HTTP_TARGET_OVERRIDE";
    let info = error_info(reason, SERVICE, [("invalid_field", why)]);
    detailed(Code::InvalidArgument, &message, vec![info])
}

const QUEUE: &str = "projects.locations.queues#Queue.FIELDS.name";
const TASK: &str = "projects.locations.queues.tasks#Task.FIELDS.name";

fn explained(message: &str, description: &str, definition: &str) -> Status {
    let help = help(description, format!("{DEFINITIONS}{definition}"));
    detailed(Code::InvalidArgument, message, vec![detail("Help", &help)])
}

fn help(description: &str, url: String) -> Help {
    let description = description.into();
    Help {
        links: vec![help::Link { description, url }],
    }
}
