//! Google's Rust clients against a local broker: `semel-clients HOST:PORT tasks|pubsub`.

mod handler;
mod pubsub;
mod tasks;

use std::fmt::Debug;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [broker, "tasks"] => tasks::run(broker).await,
        [broker, "pubsub"] => pubsub::run(broker).await,
        _ => anyhow::bail!("usage: semel-clients HOST:PORT tasks|pubsub"),
    }
}

/// Says what was seen, or stops the program.
fn check<A: PartialEq<B> + Debug, B: Debug>(
    what: &str,
    seen: A,
    expected: B,
) -> anyhow::Result<()> {
    anyhow::ensure!(seen == expected, "{what}: saw {seen:?}, not {expected:?}");
    println!("ok: {what}");
    Ok(())
}
