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

/// `google`, as the generated code names its relatives.
pub mod google {
    pub mod rpc {
        tonic::include_proto!("google.rpc");
    }
    pub mod cloud {
        pub mod tasks {
            pub mod v2 {
                tonic::include_proto!("google.cloud.tasks.v2");
            }
        }
    }
    pub mod pubsub {
        pub mod v1 {
            tonic::include_proto!("google.pubsub.v1");
        }
    }
}

pub use google::cloud::tasks::v2 as tasks;
pub use google::pubsub::v1 as pubsub;
pub use google::rpc;

/// The same as data, for reading and writing JSON.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
