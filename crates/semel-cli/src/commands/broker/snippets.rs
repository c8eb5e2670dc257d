//! How Google's clients are pointed at a broker.

use crate::args::broker::Language;
use clap::ValueEnum;
use std::net::SocketAddr;

/// The address in the texts.
const WRITTEN: &str = "127.0.0.1:8085";

pub(super) fn texts(language: Option<Language>, address: SocketAddr) -> String {
    let asked = language.as_ref().map(std::slice::from_ref);
    let languages = asked.unwrap_or(Language::value_variants()).iter();
    let texts: Vec<_> = languages.map(|it| text(*it, address)).collect();
    texts.join("\n")
}

fn text(language: Language, address: SocketAddr) -> String {
    let text = match language {
        Language::Python => include_str!("snippets/connect.py"),
        Language::Node => include_str!("snippets/connect.mjs"),
        Language::Rust => include_str!("snippets/connect.rs.txt"),
        Language::Gcloud => include_str!("snippets/connect.sh"),
    };
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    text.replace(WRITTEN, &address.to_string()).replace(
        "\"127.0.0.1\", port: 8085",
        &format!("\"{ip}\", port: {port}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_names_the_broker_that_is_asked_for() {
        let address = "127.0.0.1:9".parse().unwrap();
        for language in Language::value_variants() {
            let text = text(*language, address);
            assert!(!text.contains("8085"), "{text}");
            assert!(
                text.contains("127.0.0.1:9") || text.contains("port: 9"),
                "{text}"
            );
        }
    }
}
