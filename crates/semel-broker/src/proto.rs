//! What travels: generated from the `.proto` files beside this crate's sources.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::wildcard_enum_match_arm,
    clippy::too_many_lines,
    clippy::use_self,
    clippy::large_futures,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, MessageDescriptor};
use std::sync::LazyLock;

/// `google`, as the generated code names its relatives.
pub mod google {
    pub mod rpc {
        tonic::include_proto!("google.rpc");
    }
    pub mod r#type {
        tonic::include_proto!("google.r#type");
    }
    pub mod iam {
        pub mod v1 {
            tonic::include_proto!("google.iam.v1");
        }
    }
    pub mod cloud {
        pub mod location {
            tonic::include_proto!("google.cloud.location");
        }
        pub mod tasks {
            pub mod v2 {
                tonic::include_proto!("google.cloud.tasks.v2");
            }
            pub mod v2beta3 {
                tonic::include_proto!("google.cloud.tasks.v2beta3");
            }
        }
    }
    pub mod pubsub {
        pub mod v1 {
            tonic::include_proto!("google.pubsub.v1");
        }
    }
}

pub use google::cloud::location;
pub use google::cloud::tasks::v2 as tasks;
pub use google::cloud::tasks::v2beta3 as beta_tasks;
pub use google::iam::v1 as iam;
pub use google::pubsub::v1 as pubsub;
pub use google::rpc;

/// The same as data, for reading and writing JSON.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The full name of a queue's message.
pub(crate) const QUEUE: &str = "google.cloud.tasks.v2.Queue";

/// The full name of the message of a queue's target.
#[cfg(test)]
pub(crate) const HTTP_TARGET: &str = "google.cloud.tasks.v2.HttpTarget";

/// The full name of what a request that becomes a task is answered with.
pub(crate) const BUFFER_TASK_RESPONSE: &str = "google.cloud.tasks.v2.BufferTaskResponse";

/// Everything that travels, as data.
pub(crate) static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(DESCRIPTORS).expect("the build wrote them"));

/// What fields a message has.
pub(crate) fn descriptor(name: &str) -> MessageDescriptor {
    let message = POOL.get_message_by_name(name);
    message.expect("our own build has it")
}

/// A message as a tree of named fields.
pub(crate) fn dynamic(descriptor: MessageDescriptor, message: &impl Message) -> DynamicMessage {
    let mut dynamic = DynamicMessage::new(descriptor);
    let same = dynamic.transcode_from(message);
    same.expect("it reads as it was written");
    dynamic
}

/// For tests: a message as its JSON says.
#[cfg(test)]
pub(crate) fn from_json<M: Message + Default>(name: &str, json: serde_json::Value) -> M {
    let message = DynamicMessage::deserialize(descriptor(name), json);
    message.unwrap().transcode_to().unwrap()
}

/// The fields that a path like `queue.name` goes through, each found by `find`; nothing if one is not there.
pub(crate) fn fields(
    message: &MessageDescriptor,
    path: &str,
    find: impl Fn(&MessageDescriptor, &str) -> Option<FieldDescriptor>,
) -> Option<Vec<FieldDescriptor>> {
    let mut message = Some(message.clone());
    let step = |name| {
        let field = find(&message.take()?, name)?;
        message = field.kind().as_message().cloned();
        Some(field)
    };
    path.split('.').map(step).collect()
}
