//! What children inherit. A process in the background of a script has SIGINT and SIGQUIT ignored, and so have all its
//! children: they could not be stopped by these signals.

use rustix::process::Signal;
use std::io;
use std::sync::Mutex;
use tokio::signal::unix::{SignalKind, signal};

/// The signals that a script ignores on behalf of its background.
const RESET: [Signal; 2] = [Signal::INT, Signal::QUIT];

/// From now on children start with the default meaning of these signals. A signal that this process ignores gets a
/// handler that does nothing: for this process that is the same, and a handler, unlike "ignore", ends with `exec`.
pub(crate) fn reset_for_children() -> io::Result<()> {
    static RESET_DONE: Mutex<bool> = Mutex::new(false);
    let mut done = RESET_DONE.lock().expect("nobody panics while holding it");
    if *done {
        return Ok(());
    }
    let ignored = ignored_signals();
    let is_ignored = |signal: &Signal| ignored & (1 << (signal.as_raw() - 1)) != 0;
    let ignored: Vec<Signal> = RESET.into_iter().filter(is_ignored).collect();
    if !ignored.is_empty() {
        // Another thread, because this one may have a runtime already. The handlers outlive theirs.
        let handled = std::thread::spawn(move || handle(&ignored)).join();
        handled.map_err(|_| io::Error::other("the signal handlers panicked"))??;
    }
    *done = true;
    Ok(())
}

fn handle(signals: &[Signal]) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let _in_it = runtime.enter();
    for one in signals {
        drop(signal(SignalKind::from_raw(one.as_raw()))?);
    }
    Ok(())
}

/// A bit for each signal that is ignored, the lowest for signal 1. Where the kernel does not tell, none is.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
