//! Both forms take connections and refuse an event without its parts. Which of them is right is the prover's to say.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use testbed::Program;

#[test]
fn wrong_form_refuses_an_event_without_an_account() {
    refuses_an_event_without_an_account(env!("CARGO_BIN_EXE_webhook-wrong"));
}

#[test]
fn right_form_refuses_an_event_without_an_account() {
    refuses_an_event_without_an_account(env!("CARGO_BIN_EXE_webhook-right"));
}

fn refuses_an_event_without_an_account(form: &str) {
    let port = testbed::free_port().unwrap();
    let database = testbed::fresh_database("webhook").unwrap();
    let mut command = Command::new(form);
    command
        .env("DATABASE_URL", database)
        .env("PORT", port.to_string());
    let mut program = Program::start(&mut command).unwrap();
    let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    program.wait_until(|_| connect().is_ok()).unwrap();
    let mut asked = connect().unwrap();
    asked
        .write_all(
            b"POST /events HTTP/1.1\r\nhost: here\r\nconnection: close\r\nidempotency-key: \"e-1\"\r\n\
              content-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
        )
        .unwrap();
    let mut answer = String::new();
    asked.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
}
