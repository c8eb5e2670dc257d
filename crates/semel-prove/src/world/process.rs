//! One process: started, awaited, killed, paused. It leads a group of its own, so its children share its fate.

use crate::error::Error;
use crate::printable::plain;
use crate::scenario::Process;
use crate::world::http_client;
use crate::world::reaper::{ProcessGroup, ReaperHandle};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// Interpreters with many packages take seconds on a busy machine.
pub(crate) const READY_BOUND: Duration = Duration::from_secs(20);
/// Who takes a connection and says nothing is asked again; each time it gets twice as long to answer.
const READY_ANSWER: Duration = Duration::from_secs(1);
const READY_LOOK: Duration = Duration::from_millis(4);
const LOG_LINES_SHOWN: usize = 20;

/// Below Linux's range for outgoing connections, so that no client takes the port of a killed process.
const PORT_FIRST: u32 = 10_000;
const PORT_COUNT: u32 = 22_000;
/// Spreads runs that look for ports at the same moment.
const PORT_STRIDE: u32 = 211;
static PORTS_LOOKED_AT: AtomicU32 = AtomicU32::new(0);

/// How a process is started, with every variable expanded.
#[derive(Clone, Debug)]
pub(crate) struct ProcessSpec {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) directory: PathBuf,
    pub(crate) port: u16,
    pub(crate) ready: Ready,
    pub(crate) log: PathBuf,
}

/// When a process counts as started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// This path answers below 500.
    Path(String),
    /// Its port takes connections.
    Port,
    /// At once.
    Now,
}

/// A process that was started.
#[derive(Debug)]
pub(crate) struct RunningProcess {
    child: Child,
    group: ProcessGroup,
}

// === impl ProcessSpec ===

impl ProcessSpec {
    /// Starts it; it is not ready yet.
    pub(crate) fn start(&self, handle: &ReaperHandle) -> Result<RunningProcess, Error> {
        let (program, words) = self
            .command
            .split_first()
            .ok_or_else(|| self.failed("its command is empty"))?;
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log);
        let log = log.map_err(|why| Error::system("a log cannot be written", why))?;
        let errors = log
            .try_clone()
            .map_err(|why| Error::system("a log cannot be shared", why))?;
        let child = Command::new(program)
            .args(words)
            .env_clear()
            .envs(&self.environment)
            .current_dir(&self.directory)
            .process_group(0)
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|why| self.failed(&format!("`{program}` cannot be run: {why}")))?;
        let group =
            ProcessGroup::of(child.id(), handle)?.ok_or_else(|| self.failed("it ended at once"))?;
        Ok(RunningProcess { child, group })
    }

    /// Returns once it is ready.
    pub(crate) async fn ready(&self, running: &mut RunningProcess) -> Result<(), Error> {
        let began = Instant::now();
        let mut patience = READY_ANSWER;
        loop {
            let left = READY_BOUND.saturating_sub(began.elapsed());
            match tokio::time::timeout(patience.min(left), self.is_ready()).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(_) => patience *= 2,
            }
            if let Ok(Some(status)) = running.child.try_wait() {
                return Err(self.failed(&format!("it ended with {status}")));
            }
            if began.elapsed() > READY_BOUND {
                return Err(self.failed(&self.waited_for()));
            }
            tokio::time::sleep(READY_LOOK).await;
        }
    }

    async fn is_ready(&self) -> bool {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        match &self.ready {
            Ready::Now => true,
            Ready::Port => TcpStream::connect(address).await.is_ok(),
            Ready::Path(path) => http_client::get(address, path)
                .await
                .is_ok_and(|status| status < 500),
        }
    }

    fn waited_for(&self) -> String {
        let seconds = READY_BOUND.as_secs();
        match &self.ready {
            Ready::Now => "it ended".to_owned(),
            Ready::Port => format!("nobody listened on port {} within {seconds} s", self.port),
            Ready::Path(path) => {
                format!(
                    "{path} on port {} did not answer below 500 within {seconds} s",
                    self.port
                )
            }
        }
    }

    fn failed(&self, why: &str) -> Error {
        Error::ProcessStart {
            name: self.name.clone(),
            why: why.to_owned(),
            log: self.log_tail(),
        }
    }

    /// The end of what it printed, to be added to a sentence.
    pub(crate) fn log_tail(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let log = plain(&String::from_utf8_lossy(&log));
        let lines: Vec<&str> = log.lines().collect();
        let skipped = lines.len().saturating_sub(LOG_LINES_SHOWN);
        let shown: Vec<&str> = lines.into_iter().skip(skipped).collect();
        if shown.is_empty() {
            return "; it printed nothing".to_owned();
        }
        format!("; the end of what it printed:\n{}", shown.join("\n"))
    }
}

// === impl RunningProcess ===

impl RunningProcess {
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends the whole group at once, with no chance to tidy up.
    pub(crate) async fn kill(&mut self) {
        self.group.signal(Signal::KILL);
        // It was killed: the wait is short, and there is nothing to do about an error.
        self.child.wait().await.ok();
    }

    pub(crate) fn pause(&self) {
        self.group.signal(Signal::STOP);
    }

    pub(crate) fn resume(&self) {
        self.group.signal(Signal::CONT);
    }
}

// === impl Process ===

impl Process {
    pub(crate) fn readiness(&self) -> Ready {
        match self.ready.as_deref() {
            None => Ready::Port,
            Some("none") => Ready::Now,
            Some(path) => Ready::Path(path.to_owned()),
        }
    }

    pub(crate) fn has_no_port(&self) -> bool {
        self.readiness() == Ready::Now
    }

    pub(crate) fn uses_its_directory(&self) -> bool {
        std::iter::once(&self.spawn)
            .chain(self.env.values())
            .any(|text| text.contains("{dir}"))
    }
}

/// A port of 127.0.0.1 on which nobody listens.
pub(crate) fn free_port() -> Result<u16, Error> {
    for _ in 0..PORT_COUNT {
        let own = std::process::id().wrapping_mul(PORT_STRIDE);
        let looked_at = PORTS_LOOKED_AT.fetch_add(1, Ordering::Relaxed);
        let port = PORT_FIRST + own.wrapping_add(looked_at) % PORT_COUNT;
        let port = u16::try_from(port).expect("the range ends below 65536");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(Error::system(
        "no port of 127.0.0.1 is free",
        "all are taken",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::reaper::Reaper;
    use tokio::io::AsyncWriteExt;

    /// A process that prints in red and then stands still, and is asked at another one's port.
    fn spec(seconds: &str, port: u16, dir: &std::path::Path) -> ProcessSpec {
        let script = format!("printf '\\033[31mred'; sleep {seconds}");
        ProcessSpec {
            name: "handler".to_owned(),
            command: ["/bin/sh", "-c", &script].map(str::to_owned).to_vec(),
            environment: BTreeMap::new(),
            directory: dir.to_owned(),
            port,
            ready: Ready::Path("/healthz".to_owned()),
            log: dir.join("log"),
        }
    }

    #[tokio::test]
    async fn who_takes_connections_and_never_answers_is_not_waited_for_endlessly() {
        let dir = tempfile::tempdir().unwrap();
        let reaper = Reaper::start(&dir.path().join("kept")).unwrap();
        let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let spec = spec("0.2", silent.local_addr().unwrap().port(), dir.path());
        let mut running = spec.start(&reaper.handle).unwrap();
        let waited = tokio::time::timeout(READY_ANSWER * 3, spec.ready(&mut running)).await;
        let said = waited.unwrap().unwrap_err().to_string();
        assert!(said.contains("it ended with"), "{said}");
        assert!(
            said.contains("[31mred") && !said.contains('\u{1b}'),
            "{said:?}"
        );
    }

    #[tokio::test]
    async fn slow_answer_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let reaper = Reaper::start(&dir.path().join("kept")).unwrap();
        let slow = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .unwrap();
        let spec = spec("60", slow.local_addr().unwrap().port(), dir.path());
        let answers = async || loop {
            let (mut asked, _) = slow.accept().await.unwrap();
            tokio::time::sleep(READY_ANSWER.mul_f64(1.3)).await;
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            asked.write_all(answer).await.ok();
        };
        let mut running = spec.start(&reaper.handle).unwrap();
        let ready = tokio::select! {
            ready = spec.ready(&mut running) => ready,
            () = answers() => unreachable!("it never ends"),
        };
        ready.unwrap();
    }
}
