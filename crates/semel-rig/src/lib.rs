//! What tests and tools need to run other programs and to disturb them.
//!
//! - [`Program`] is a started process with its log: wait until it is ready, pause, kill, stop. It leads a process group,
//!   so its children share its fate, and no group outlives this process ([`Reaper`]), however this process ends.
//! - [`Process`] is any process, by its id. [`Mark`] finds those that left their group.
//! - [`Link`] is a TCP proxy that forwards, holds, swallows, or is cut.
//! - [`Crowd`] is thousands of connections that stay and say next to nothing.
//! - [`http`] is a client that sends each request once.
//! - [`free_port`] and [`until`] are for servers that are about to start.
//! - [`failpoint`] connects named points in a program to whoever tests it.

mod program;
mod process;
mod reaper;
mod mark;
mod signals;
mod link;
mod crowd;
pub mod http;
pub mod failpoint;
mod port;
mod wait;

pub use crowd::Crowd;
pub use link::{Direction, Halfway, Link};
pub use mark::{Mark, adopt_orphans};
pub use port::free_port;
pub use process::Process;
pub use program::{Error, Program, ProgramBuilder};
pub use reaper::{Group, Reaper, ReaperHandle};
pub use rustix::process::Signal;
pub use wait::{BOUND, until};
