//! Queues as trees of named fields, for masks and filters.

use crate::proto::DESCRIPTORS;
use crate::proto::tasks::Queue;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use std::sync::LazyLock;

static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(DESCRIPTORS).expect("our own build made it"));

/// What fields a queue has.
pub(super) fn queue() -> MessageDescriptor {
    POOL.get_message_by_name("google.cloud.tasks.v2.Queue")
        .expect("our own build has it")
}

/// A queue as such a tree.
pub(super) fn dynamic(queue: &Queue) -> DynamicMessage {
    let bytes = queue.encode_to_vec();
    DynamicMessage::decode(self::queue(), bytes.as_slice()).expect("a queue reads as a queue")
}
