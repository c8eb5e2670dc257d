//! Turns our part of Firestore's `.proto` into Rust, without `protoc`.

const FILE: &str = "google/firestore/v1/firestore.proto";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile([FILE], ["proto"])?;
    tonic_prost_build::configure()
        .build_server(false)
        .bytes(".")
        .compile_fds(descriptors)?;
    Ok(())
}
