//! Servers that every test of a run shares, and `cargo xtask servers` for those who run tests one by one.

use anyhow::Context;
use testbed::{PgBouncer, Postgres, RabbitMq, Redis};

/// What to start.
#[derive(Debug, clap::Args)]
pub(crate) struct ServersArgs {
    /// RabbitMQ too, for the long tests of the Python package.
    #[arg(long)]
    long: bool,
}

/// One of each, told to tests by their environment.
#[derive(Debug)]
pub(crate) struct Servers {
    pgbouncer: PgBouncer,
    postgres: Postgres,
    redis: Redis,
}

// === impl Servers ===

impl Servers {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let postgres = Postgres::start()?;
        let pgbouncer = PgBouncer::start(&postgres.url())?;
        let redis = Redis::start(&[])?;
        Ok(Self {
            pgbouncer,
            postgres,
            redis,
        })
    }

    /// Tests create databases of their own next to the one named here.
    pub(crate) fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("SEMEL_TEST_POSTGRES_URL", self.postgres.url()),
            ("SEMEL_TEST_PGBOUNCER_URL", self.pgbouncer.url()),
            ("SEMEL_TEST_REDIS_URL", self.redis.url()),
        ]
    }
}

/// RabbitMQ, which only the long tests of the Python package use. Installs it first.
pub(crate) fn rabbitmq() -> anyhow::Result<RabbitMq> {
    testbed::install(&testbed::missing_long_packages())?;
    RabbitMq::start()
}

/// How tests are told of it.
pub(crate) fn rabbitmq_variable(rabbitmq: &RabbitMq) -> (&'static str, String) {
    ("SEMEL_TEST_RABBITMQ_URL", rabbitmq.url())
}

pub(crate) fn keep(args: &ServersArgs) -> anyhow::Result<()> {
    testbed::install(&testbed::missing_packages())?;
    let servers = Servers::start()?;
    let rabbitmq = args.long.then(rabbitmq).transpose()?;
    let beside = rabbitmq.as_ref().map(rabbitmq_variable);
    for (name, value) in servers.environment().into_iter().chain(beside) {
        println!("export {name}={value}");
    }
    eprintln!("the servers run until Ctrl-C or the end of stdin; their data goes with them");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).context("cannot read stdin")?;
    Ok(())
}
