//! What a reader is shown of a task.

use crate::proto::tasks::Task;
use crate::proto::tasks::task::{MessageType, View};
use bytes::Bytes;

/// A task as the asker wants it: the body only in the full view. An unknown view is shown as unspecified.
pub(super) fn shown(mut task: Task, view: i32) -> Task {
    let view = match View::try_from(view) {
        Ok(View::Full) => View::Full,
        Ok(View::Basic | View::Unspecified) => View::Basic,
        Err(_) => View::Unspecified,
    };
    task.view = view.into();
    if view != View::Full {
        hide_body(&mut task);
    }
    task
}

/// A task in a list, where an unknown view is the basic one.
pub(super) fn listed(task: Task, view: i32) -> Task {
    let view = View::try_from(view).unwrap_or(View::Basic);
    shown(task, view.into())
}

fn hide_body(task: &mut Task) {
    match task.message_type.as_mut() {
        Some(MessageType::HttpRequest(request)) => request.body = Bytes::new(),
        Some(MessageType::AppEngineHttpRequest(request)) => request.body = Bytes::new(),
        None => {}
    }
}
