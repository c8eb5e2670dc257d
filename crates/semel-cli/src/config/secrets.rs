//! Secrets: a configuration says where they are, never what they are.

use super::tree::Value;
use super::values::{Read, Wrong, text};
use semel_gate::settings::Secret;
use std::path::Path;

/// In place of what may be the secret itself.
const NOT_SHOWN: &str = "that it names (not shown, in case it is the secret itself)";

const NOT_SET: &str = "is not set";
const NOT_READ: &str = "cannot be read";

/// Whether a mistake is only that a secret is not to be had here.
pub(crate) fn is_elsewhere(says: &str) -> bool {
    let of = |field: &str| says.strip_prefix(&format!("`{field}`: the "));
    let about = of("secrets").or_else(|| of("label_key"));
    about.is_some_and(|about| about.ends_with(NOT_SET) || about.contains(&format!(" {NOT_READ}: ")))
}

/// A secret out of the environment or a file. What is written in their place may be the secret itself, so no message
/// repeats it.
#[expect(
    clippy::disallowed_methods,
    reason = "only the command line reads the environment"
)]
pub(crate) fn secret(value: &Value) -> Read<Secret> {
    let text = text(value)?;
    let found = match text.split_once(':') {
        Some(("env", name)) if is_variable(name) => std::env::var(name)
            .map_err(|_| format!("the variable {} {NOT_SET}", shown_variable(name))),
        Some(("file", path)) if !path.is_empty() => std::fs::read_to_string(path)
            .map_err(|error| format!("the file {} {NOT_READ}: {error}", shown_path(path))),
        Some(_) | None => Err(
            "write \"env:NAME\" or \"file:PATH\": a secret does not stand in the file itself"
                .into(),
        ),
    };
    let secret = found.or_else(|says| Wrong::says(value, says))?;
    // Editors and `echo` put a new line behind it, some of Windows a mark before it.
    let secret = secret.trim_start_matches('\u{feff}');
    let secret = secret.trim_end_matches(['\r', '\n']);
    let some = (!secret.trim().is_empty()).then(|| Secret(secret.into()));
    Wrong::unless(value, some, || format!("{text} is empty"))
}

/// No sender's secrets look like `STRIPE_SECRET`.
fn shown_variable(name: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let is_name = name.contains('_') && name.bytes().all(is_plain);
    if is_name { name } else { NOT_SHOWN }
}

/// A directory that is there is not part of a secret.
fn shown_path(path: &str) -> &str {
    let parent = Path::new(path).parent();
    let is_path = parent.is_some_and(|it| it.is_absolute() && it != Path::new("/") && it.is_dir());
    if is_path { path } else { NOT_SHOWN }
}

fn is_variable(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(plain)
}
