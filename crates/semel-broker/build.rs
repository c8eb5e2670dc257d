//! Turns our `.proto` files into Rust, without `protoc`.

use std::path::PathBuf;

const FILES: [&str; 3] = [
    "google/rpc/status.proto",
    "google/cloud/tasks/v2/cloudtasks.proto",
    "google/pubsub/v1/pubsub.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).open_files(FILES)?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // REST goes by these; the options say by which paths.
    std::fs::write(
        out.join("descriptors.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    tonic_prost_build::configure()
        .build_client(false)
        .build_server(false)
        .bytes(".")
        .boxed(".google.cloud.tasks.v2.Task.message_type")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
