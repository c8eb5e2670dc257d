//! Secrets: a configuration says where they are, never what they are.

use super::tree::Value;
use super::values::{Read, Wrong, text};
use semel_gate::settings::Secret;

/// A secret out of the environment or a file. What is written in their place may be the secret itself, so no message
/// repeats it.
#[expect(
    clippy::disallowed_methods,
    reason = "only the command line reads the environment"
)]
pub(crate) fn secret(value: &Value) -> Read<Secret> {
    let text = text(value)?;
    let found = match text.split_once(':') {
        Some(("env", name)) if is_variable(name) => {
            std::env::var(name).map_err(|_| format!("the variable {name} is not set"))
        }
        Some(("file", path)) if !path.is_empty() => std::fs::read_to_string(path)
            .map_err(|error| format!("the file {path} cannot be read: {error}")),
        Some(_) | None => Err(
            "write \"env:NAME\" or \"file:PATH\": a secret does not stand in the file itself"
                .into(),
        ),
    };
    let secret = found.or_else(|says| Wrong::says(value, says))?;
    // Editors and `echo` put a new line behind it.
    let secret = secret.trim_end_matches(['\r', '\n']);
    let some = (!secret.is_empty()).then(|| Secret(secret.into()));
    Wrong::unless(value, some, || format!("{text} is empty"))
}

fn is_variable(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(plain)
}
