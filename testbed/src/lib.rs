//! Real servers for tests and benchmarks.
//!
//! Each server is private: its own temporary directory, a free port of the loopback interface, ended by its
//! process id. Dropping the handle ends the server and removes the directory; so does the death of the process
//! that started it, however it died. Servers come from Debian's packages; [`install`] fetches what is missing.
//! [`python`] is an interpreter with the packages of the Python programs, [`node`] the same for Node. What is not a
//! server, [`Program`] for example, comes from the rig.

mod postgres;
mod redis;
mod pgbouncer;
mod rabbitmq;
mod firestore;
mod google;
mod grpc;
mod shared;
mod certificates;
mod python;
mod node;
mod emulator;
mod environment;
mod packages;
mod server;
mod clock;
mod command;

pub use certificates::{Certificate, Certificates, Validity};
pub use command::run;
pub use emulator::{
    CLOUD_TASKS_EMULATOR, PUBSUB_NOT_RUN, cloud_tasks_emulator, has_pubsub_emulator,
    pubsub_emulator,
};
pub use firestore::{FIRESTORE_NOT_RUN, Firestore};
pub use google::Google;
pub use grpc::{GrpcAnswer, GrpcCall, GrpcForwarder, serve_grpc};
pub use node::{browser_run, node, npm_run};
pub use packages::{
    find_program, install, missing_bench_packages, missing_long_packages, missing_packages,
    missing_tools,
};
pub use pgbouncer::PgBouncer;
pub use postgres::{Postgres, query};
pub use python::{python, python_of, python_with};
pub use rabbitmq::RabbitMq;
pub use redis::Redis;
pub use semel_rig::{Process, Program, free_port, until};
pub use shared::{firestore_host, fresh_database, redis_url};
