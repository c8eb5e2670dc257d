//! First runs with TLS to the handler and to PostgreSQL, against the same without it.

use std::sync::Arc;

use super::deliveries::{Rate, Reach};
use super::semel::{self, Binary, Log, Store};
use super::wrk::Names;
use crate::postgres::{conditions, server_with};
use crate::report::{Group, Row, Target};
use crate::rounds::{Pace, rounds};
use crate::upstream::Upstream;
use testbed::{Certificates, Validity};

const TARGET: Target = Target::RatioAtLeast(0.7);

pub(crate) async fn measure(binary: &Binary, pace: Pace) -> anyhow::Result<Group> {
    let ca = Certificates::new()?;
    let certificate = ca.issue("localhost", "DNS:localhost", Validity::Now)?;
    let (file, key) = (&certificate.certificate, &certificate.key);
    let (file, key) = (file.display().to_string(), key.display().to_string());
    let server = server_with(&[
        ("ssl", "on"),
        ("ssl_cert_file", &file),
        ("ssl_key_file", &key),
    ])?;
    let handler = Arc::new(Upstream::start_with_tls(&certificate, ca.root()).await?);
    let plain = Store::Postgres(server.create_database("plain")? + "?sslmode=disable");
    let root = ca.root();
    let verified = format!("?sslmode=verify-full&sslrootcert={}", root.display());
    let secure = server
        .create_database("secure")?
        .replace("127.0.0.1", "localhost");
    let secure = Store::Postgres(secure + &verified);
    let without = semel::start(binary, &plain, &handler, Log::Default).await?;
    let with = semel::start_with_tls(binary, &secure, &handler, Log::Default).await?;
    let through = |port| Rate::boxed(port, Names::Fresh, Reach::Handler(Arc::clone(&handler)));
    let [with, without] = rounds(
        [
            ("first runs with TLS", through(with.port)),
            ("first runs without TLS", through(without.port)),
        ],
        pace,
    )
    .await?;
    let row = Row::rate("first runs, TLS to handler and store", &with);
    Ok(Group {
        title: "TLS on loopback, PostgreSQL store, 64 connections",
        conditions: vec![
            conditions(&server).await?,
            "TLS 1.3 to the handler and to PostgreSQL, certificate and host checked; wrk comes without it. The same \
             server and the same handler are asked without TLS beside it."
                .into(),
        ],
        rows: vec![row.beside("without TLS", &without).judged(TARGET)],
    })
}
