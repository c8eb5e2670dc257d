//! Turns our `.proto` files into Rust, without `protoc`. Fields that are not served are in the descriptors, by which
//! requests are checked, and not in the types: no code can read one by mistake.

use protox::prost_reflect::{DescriptorPool, prost_types::DescriptorProto};
use std::collections::HashSet;
use std::path::PathBuf;
use tonic_prost_build::FileDescriptorSet;

const FILES: [&str; 8] = [
    "google/rpc/status.proto",
    "google/cloud/location/locations.proto",
    "google/cloud/tasks/v2/cloudtasks.proto",
    "google/cloud/tasks/v2beta3/cloudtasks.proto",
    "google/iam/v1/iam_policy.proto",
    "google/longrunning/operations.proto",
    "google/pubsub/v1/pubsub.proto",
    "google/pubsub/v1/schema.proto",
];

/// The option of a field that is not served, and the type of a message that is not.
const REFUSED: &str = "semel.refused";
const NOT_SERVED: &str = ".semel.NotServed";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).open_files(FILES)?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // REST and the checks go by these; the options say by which paths, and what is served.
    let descriptors = compiler.encode_file_descriptor_set();
    std::fs::write(out.join("descriptors.bin"), &descriptors)?;
    let refused = refused(&DescriptorPool::decode(descriptors.as_slice())?);
    tonic_prost_build::configure()
        .build_client(false)
        .build_server(false)
        .bytes(".")
        .boxed(".google.cloud.tasks.v2.Task.message_type")
        .compile_fds(served(compiler.file_descriptor_set(), &refused))?;
    Ok(())
}

/// The full names of the fields that are not served.
fn refused(pool: &DescriptorPool) -> HashSet<String> {
    let option = pool.get_extension_by_name(REFUSED);
    let option = option.expect("semel/interface.proto has it");
    let messages: Vec<_> = pool.all_messages().collect();
    let fields = messages.iter().flat_map(|message| message.fields());
    let refused = fields.filter(|field| field.options().has_extension(&option));
    refused.map(|field| field.full_name().to_owned()).collect()
}

/// Only what is served: the types are made of this.
fn served(mut files: FileDescriptorSet, refused: &HashSet<String>) -> FileDescriptorSet {
    for file in &mut files.file {
        file.service.clear();
        let package = file.package().to_owned();
        for message in &mut file.message_type {
            keep_served(message, &package, refused);
        }
    }
    files
}

fn keep_served(message: &mut DescriptorProto, within: &str, refused: &HashSet<String>) {
    let name = format!("{within}.{}", message.name());
    message.field.retain(|field| {
        let is_refused = refused.contains(&format!("{name}.{}", field.name()));
        !is_refused && field.type_name() != NOT_SERVED
    });
    for inner in &mut message.nested_type {
        keep_served(inner, &name, refused);
    }
}
