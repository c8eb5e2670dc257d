//! Servers that every test of a run shares, and `cargo xtask servers` for those who run tests one by one.

use anyhow::Context;
use testbed::{PgBouncer, Postgres, RabbitMq, Redis};

/// What programs under test are told.
pub(crate) type Environment = Vec<(&'static str, String)>;

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
    /// None where there is no emulator: what it is for is not run then.
    firestore: Option<String>,
}

// === impl Servers ===

impl Servers {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let postgres = Postgres::start()?;
        let pgbouncer = PgBouncer::start(&postgres.url())?;
        let redis = Redis::start(&[])?;
        let firestore = testbed::firestore_host()?;
        Ok(Self {
            pgbouncer,
            postgres,
            redis,
            firestore,
        })
    }

    /// Tests create databases of their own next to the one named here.
    pub(crate) fn environment(&self) -> Environment {
        let mut environment = vec![
            ("SEMEL_TEST_POSTGRES_URL", self.postgres.url()),
            ("SEMEL_TEST_PGBOUNCER_URL", self.pgbouncer.url()),
            ("SEMEL_TEST_REDIS_URL", self.redis.url()),
        ];
        let firestore = self.firestore.clone();
        environment.extend(firestore.map(|host| ("FIRESTORE_EMULATOR_HOST", host)));
        environment
    }

    /// What cannot be run for want of a server.
    pub(crate) fn not_run(&self) -> Option<&'static str> {
        let missing = self.firestore.is_none();
        missing.then_some(testbed::FIRESTORE_NOT_RUN)
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
