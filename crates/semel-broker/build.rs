//! Turns our `.proto` files into Rust, without `protoc`.

use prost::Message;
use std::path::PathBuf;

const FILES: [&str; 3] = [
    "google/rpc/status.proto",
    "google/cloud/tasks/v2/cloudtasks.proto",
    "google/pubsub/v1/pubsub.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // REST reads and writes JSON by these.
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .build_client(false)
        .generate_default_stubs(true)
        .bytes(".")
        .boxed(".google.cloud.tasks.v2.Task.message_type")
        .compile_fds(descriptors)?;
    Ok(())
}
