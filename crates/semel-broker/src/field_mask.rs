//! Field masks: which fields of a resource an update takes over.

use crate::interface::Standing;
use crate::proto;
use prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, MessageDescriptor, Value};
use tonic::Status;

/// What becomes of a message that neither side has, when a field inside it is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parents {
    /// It stays unset.
    Kept,
    /// It is there from then on.
    Created,
}

/// The message `name`, as `old` is, with the named fields of `new`. Paths that name no field are left out.
pub(crate) fn merged<M: Message + Default>(
    name: &str,
    old: &M,
    new: &M,
    paths: impl IntoIterator<Item = impl AsRef<str>>,
    parents: Parents,
) -> M {
    let descriptor = proto::descriptor(name);
    let mut into = proto::dynamic(descriptor.clone(), old);
    let from = proto::dynamic(descriptor.clone(), new);
    for path in paths {
        if let Some(fields) = fields(&descriptor, path.as_ref()) {
            take_over(&mut into, Some(&from), &fields, parents);
        }
    }
    into.transcode_to().expect("it was such a message before")
}

/// The fields a path goes through; nothing if it does not name one.
pub(crate) fn fields(message: &MessageDescriptor, path: &str) -> Option<Vec<FieldDescriptor>> {
    let fields = proto::fields(message, path, MessageDescriptor::get_field_by_name)?;
    let (_, within) = fields.split_last()?;
    let is_one = within.iter().all(|field| !field.is_list());
    is_one.then_some(fields)
}

/// Refuses a path, in either spelling, through a field that is not served; what is beyond it is not known here.
pub(crate) fn check_served(message: &str, path: &str) -> Result<(), Status> {
    let mut message = Some(proto::descriptor(message));
    for name in path.split('.') {
        let named = |it: &MessageDescriptor| {
            let field = it.get_field_by_name(name);
            field.or_else(|| it.get_field_by_json_name(name))
        };
        let field = message.as_ref().and_then(named);
        let Some(field) = field else {
            return Ok(());
        };
        if let Some(not_served) = Standing::refusal(&field) {
            return Err(not_served.status());
        }
        message = field.kind().as_message().cloned();
    }
    Ok(())
}

/// A path as the interface spells it: REST clients may write `ackDeadlineSeconds`.
pub(crate) fn snake_case(path: &str) -> String {
    let mut snake = String::with_capacity(path.len() + 4);
    for letter in path.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn take_over(
    into: &mut DynamicMessage,
    from: Option<&DynamicMessage>,
    fields: &[FieldDescriptor],
    parents: Parents,
) {
    let Some((field, rest)) = fields.split_first() else {
        return;
    };
    let given = from.filter(|from| from.has_field(field));
    let value = given.map(|from| from.get_field(field).into_owned());
    if rest.is_empty() {
        match value {
            Some(value) => into.set_field(field, value),
            None => into.clear_field(field),
        }
        return;
    }
    if value.is_none() && !into.has_field(field) && parents == Parents::Kept {
        return;
    }
    if let Value::Message(inner) = into.get_field_mut(field) {
        let value = value.as_ref().and_then(Value::as_message);
        take_over(inner, value, rest, parents);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_served_is_refused_in_either_spelling() {
        let queue = "google.cloud.tasks.v2beta3.Queue";
        for path in ["task_ttl", "taskTtl", "tombstoneTtl.seconds"] {
            assert!(check_served(queue, path).is_err(), "{path}");
        }
        check_served(queue, "retryConfig").expect("it is served");
    }
}
