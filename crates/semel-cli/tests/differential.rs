//! The same calls to `semel broker` and to another Cloud Tasks emulator, whose answers agree with recordings of the
//! real service.

use crate::support::broker::{Broker, python, there_is_time};
use crate::support::listens;
use testbed::Program;

#[test]
fn answers_as_the_peer_does() {
    if !there_is_time("the comparison with another emulator") {
        return;
    }
    let port = testbed::free_port().unwrap();
    let mut peer = Program::start(&mut testbed::cloud_tasks_emulator(port).unwrap()).unwrap();
    peer.wait_until(|_| listens(port)).unwrap();
    let broker = Broker::in_memory();
    broker
        .serves(python("differential.py").args([&format!("127.0.0.1:{port}"), &broker.address()]));
}
