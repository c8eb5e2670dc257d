//! Cloud Tasks v2beta3, for queues that push: the same service under other numbers. A request becomes one of v2, and
//! v2's answer one of v2beta3, field by field; a few fields are elsewhere.

use super::{Tasks, errors};
use crate::field_mask;
use crate::interface::NotServed;
use crate::methods::{Call, Methods};
use crate::proto::iam::{
    GetIamPolicyRequest, Policy, SetIamPolicyRequest, TestIamPermissionsRequest,
    TestIamPermissionsResponse,
};
use crate::proto::{self, beta_tasks as beta};
use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor, ReflectMessage, Value};
use std::collections::HashMap;
use std::sync::Arc;
use tonic::Status;

const SERVICE: &str = "google.cloud.tasks.v2beta3.CloudTasks";
const BETA_QUEUE: &str = "google.cloud.tasks.v2beta3.Queue";

/// Where a queue's App Engine routing is: in v2beta3 within the first, in v2 alone.
const APP_ENGINE_QUEUE: &str = "app_engine_http_queue";
const ROUTING: &str = "app_engine_routing_override";

/// The calls of v2, by their names.
pub(crate) struct Beta {
    calls: HashMap<String, (MethodDescriptor, Call)>,
}

// === impl Tasks ===

impl Tasks {
    /// The methods of v2beta3.
    pub(crate) fn beta_methods(self: &Arc<Self>) -> Methods<Beta> {
        let calls = self.methods().unary.into_iter();
        let calls = calls.map(|it| (it.descriptor.name().to_owned(), (it.descriptor, it.call)));
        let beta = Arc::new(Beta {
            calls: calls.collect(),
        });
        Methods::new(SERVICE, &beta, &self.shared.context.refusals)
            .relay::<beta::CreateTaskRequest, beta::Task>("CreateTask")
            .relay::<beta::GetTaskRequest, beta::Task>("GetTask")
            .relay::<beta::DeleteTaskRequest, ()>("DeleteTask")
            .relay::<beta::ListTasksRequest, beta::ListTasksResponse>("ListTasks")
            .relay::<beta::RunTaskRequest, beta::Task>("RunTask")
            .relay::<beta::ListQueuesRequest, beta::ListQueuesResponse>("ListQueues")
            .relay::<beta::GetQueueRequest, beta::Queue>("GetQueue")
            .relay::<beta::CreateQueueRequest, beta::Queue>("CreateQueue")
            .relay::<beta::UpdateQueueRequest, beta::Queue>("UpdateQueue")
            .relay::<beta::DeleteQueueRequest, ()>("DeleteQueue")
            .relay::<beta::PurgeQueueRequest, beta::Queue>("PurgeQueue")
            .relay::<beta::PauseQueueRequest, beta::Queue>("PauseQueue")
            .relay::<beta::ResumeQueueRequest, beta::Queue>("ResumeQueue")
            .relay::<GetIamPolicyRequest, Policy>("GetIamPolicy")
            .relay::<SetIamPolicyRequest, Policy>("SetIamPolicy")
            .relay::<TestIamPermissionsRequest, TestIamPermissionsResponse>("TestIamPermissions")
    }
}

// === impl Methods ===

impl Methods<Beta> {
    /// A method that v2 answers.
    fn relay<Q, A>(self, name: &'static str) -> Self
    where
        Q: Message + Default + 'static,
        A: Message + Default + 'static,
    {
        let method = self.descriptor(name);
        self.wait(name, move |beta, request: Q| {
            let method = method.clone();
            async move { beta.call::<A>(&method, &request).await }
        })
    }
}

// === impl Beta ===

impl Beta {
    async fn call<A: Message + Default>(
        &self,
        method: &MethodDescriptor,
        request: &impl Message,
    ) -> Result<A, Status> {
        let call = self.calls.get(method.name());
        let (v2, call) = call.expect("v2 has every method that is relayed");
        let request = proto::dynamic(method.input(), request);
        let mut asked = translated(&request, &v2.input())?;
        rename_mask(&mut asked)?;
        let answer = call(asked).await?;
        let answer = translated(&answer, &method.output())?;
        Ok(answer.transcode_to().expect("it is of this type"))
    }
}

/// The same in the other version: fields are found by their names, and numbers of enums are the same.
fn translated(from: &DynamicMessage, to: &MessageDescriptor) -> Result<DynamicMessage, Status> {
    let mut into = DynamicMessage::new(to.clone());
    if from.descriptor() == *to {
        return Ok(from.clone());
    }
    for (field, value) in from.fields() {
        let Some(target) = to.get_field_by_name(field.name()) else {
            continue;
        };
        let inner = target.kind();
        let value = match (value, inner.as_message()) {
            (Value::Message(message), Some(to)) => Value::Message(translated(message, to)?),
            (Value::List(items), Some(to)) => {
                let items = items.iter().filter_map(Value::as_message);
                let items = items.map(|it| translated(it, to).map(Value::Message));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            (value, _) => value.clone(),
        };
        into.set_field(&target, value);
    }
    move_routing(from, &mut into)?;
    Ok(into)
}

/// What a queue has elsewhere in the other version.
fn move_routing(from: &DynamicMessage, into: &mut DynamicMessage) -> Result<(), Status> {
    if from.descriptor().full_name() == BETA_QUEUE {
        refuse_pull(from)?;
        let queue = from.get_field_by_name(APP_ENGINE_QUEUE);
        let queue = queue.filter(|_| from.has_field_by_name(APP_ENGINE_QUEUE));
        let queue = queue.as_deref().and_then(Value::as_message);
        if let Some(routing) = queue.filter(|it| it.has_field_by_name(ROUTING)) {
            let routing = routing.get_field_by_name(ROUTING);
            let routing = routing.as_deref().and_then(Value::as_message);
            set_routing(into, routing)?;
        }
    } else if into.descriptor().full_name() == BETA_QUEUE {
        into.set_field_by_name("type", Value::EnumNumber(beta::queue::Type::Push.into()));
        if from.has_field_by_name(ROUTING) {
            let routing = from.get_field_by_name(ROUTING);
            let routing = routing.as_deref().and_then(Value::as_message);
            let field = into.descriptor().get_field_by_name(APP_ENGINE_QUEUE);
            let field = field.expect("it is one of v2beta3");
            let kind = field.kind();
            let mut queue =
                DynamicMessage::new(kind.as_message().expect("it is a message").clone());
            set_routing(&mut queue, routing)?;
            into.set_field(&field, Value::Message(queue));
        }
    }
    Ok(())
}

fn set_routing(into: &mut DynamicMessage, routing: Option<&DynamicMessage>) -> Result<(), Status> {
    let field = into.descriptor().get_field_by_name(ROUTING);
    let field = field.expect("both versions have it");
    let kind = field.kind();
    if let (Some(routing), Some(to)) = (routing, kind.as_message()) {
        into.set_field(&field, Value::Message(translated(routing, to)?));
    }
    Ok(())
}

fn refuse_pull(queue: &DynamicMessage) -> Result<(), Status> {
    let kind = queue.get_field_by_name("type");
    let kind = kind.as_deref().and_then(Value::as_enum_number);
    if kind != Some(beta::queue::Type::Pull.into()) {
        return Ok(());
    }
    let not_served = NotServed {
        name: format!("{BETA_QUEUE}.type"),
        why: "there are no pull queues here".into(),
    };
    Err(not_served.status())
}

/// An update's mask names the fields of v2beta3.
fn rename_mask(request: &mut DynamicMessage) -> Result<(), Status> {
    if !request.has_field_by_name("update_mask") || !request.has_field_by_name("queue") {
        return Ok(());
    }
    let Some(Value::Message(mask)) = request.get_field_by_name_mut("update_mask") else {
        return Ok(());
    };
    let Some(Value::List(paths)) = mask.get_field_by_name_mut("paths") else {
        return Ok(());
    };
    for path in paths.iter_mut() {
        let Value::String(path) = path else {
            continue;
        };
        field_mask::check_served(BETA_QUEUE, path)?;
        // What only v2 has is nothing here, also where v2 would take it.
        if field_mask::fields(&proto::descriptor(BETA_QUEUE), path).is_none() {
            return Err(errors::invalid(format!("Invalid mask: {path}")));
        }
        if path == APP_ENGINE_QUEUE {
            *path = ROUTING.into();
        }
        if let Some(rest) = path.strip_prefix(&format!("{APP_ENGINE_QUEUE}.")) {
            *path = rest.to_owned();
        }
    }
    // Every queue pushes: there is nothing to change.
    paths.retain(|path| path.as_str() != Some("type"));
    Ok(())
}
