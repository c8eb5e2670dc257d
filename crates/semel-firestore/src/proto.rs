//! What travels: generated from the `.proto` file beside this crate's sources.
#![allow(
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

tonic::include_proto!("google.firestore.v1");
