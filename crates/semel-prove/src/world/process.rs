//! One process of a world: started, awaited, killed, paused, and the proxies that are its own.

use crate::error::NotReady;
use crate::printable::plain;
use crate::scenario::Process;
use crate::world::log;
use crate::world::proxy::Proxy;
use http_body_util::Full;
use semel_rig::{Mark, Program, ReaperHandle, Signal, http};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// Interpreters with many packages take seconds on a busy machine.
pub(crate) const READY_TIMEOUT: Duration = Duration::from_secs(20);
/// Who takes a connection and says nothing is asked again; each time it gets twice as long to answer.
const READY_ANSWER: Duration = Duration::from_secs(1);
const LOG_LINES_SHOWN: usize = 20;

/// A process that is started, and started again after it was killed. Every variable is expanded.
#[derive(Debug)]
pub(crate) struct ManagedProcess {
    pub(super) name: String,
    pub(super) command: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) directory: PathBuf,
    pub(super) port: u16,
    pub(super) ready: Ready,
    pub(super) log: PathBuf,
    /// Whether attacks may kill and pause it.
    pub(super) attack: bool,
    /// They listen as long as they are kept.
    #[expect(dead_code, reason = "a proxy closes when it is dropped")]
    pub(super) proxies: Vec<Proxy>,
    /// Also those that left its group have it.
    pub(super) mark: Mark,
    /// Where it listens: 127.0.0.1, or ::1 if only there.
    pub(super) ip: IpAddr,
    pub(super) program: Option<Program>,
    pub(super) paused: bool,
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

// === impl ManagedProcess ===

impl ManagedProcess {
    /// Starts it, and returns once it is ready.
    pub(super) async fn start(&mut self, reaper: &ReaperHandle) -> Result<(), NotReady> {
        let mut program = self.spawn(reaper).map_err(|why| self.not_ready(why))?;
        let ready = self.wait_ready(&mut program).await;
        self.ip = ready.map_err(|why| self.not_ready(why))?;
        self.program = Some(program);
        self.paused = false;
        Ok(())
    }

    pub(super) fn is_running(&self) -> bool {
        self.program.is_some()
    }

    /// Whether it ended by itself. The rest of its group goes with it.
    pub(super) fn reap(&mut self) -> bool {
        let ended = |program: &mut Program| !matches!(program.status(), Ok(None));
        let ended = self.program.take_if(ended).is_some();
        if ended {
            self.mark.end();
        }
        ended
    }

    /// Ends the whole group at once, with no chance to tidy up, and whoever has left it.
    pub(super) fn kill(&mut self) {
        self.program = None;
        self.mark.end();
    }

    /// Whether there was something to pause.
    pub(super) fn pause(&mut self) -> bool {
        self.paused = self.signal(Signal::STOP);
        self.paused
    }

    pub(super) fn resume(&mut self) {
        self.paused = false;
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) -> bool {
        let group = self.program.as_ref().map(Program::group);
        let sent = group.map(|group| group.signal(signal)).is_some();
        if sent {
            self.mark.signal(signal);
        }
        sent
    }

    fn spawn(&self, reaper: &ReaperHandle) -> Result<Program, String> {
        let (program, arguments) = self.command.split_first().ok_or("its command is empty")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(&self.environment)
            .current_dir(&self.directory);
        self.mark.set(&mut command);
        Program::builder(&mut command)
            .reaper(reaper)
            .last_signal(Signal::KILL)
            .log(self.log.clone())
            .start()
            .map_err(|why| self.explain(why))
    }

    /// Where it listens.
    async fn wait_ready(&self, program: &mut Program) -> Result<IpAddr, String> {
        let began = Instant::now();
        let mut patience = READY_ANSWER;
        let mut found = self.ip;
        let ready = async || {
            for ip in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
                let left = READY_TIMEOUT.saturating_sub(began.elapsed());
                let answered = timeout(patience.min(left), self.is_ready(ip)).await;
                if answered.is_err() {
                    patience *= 2;
                }
                if answered == Ok(true) {
                    found = ip;
                    return true;
                }
            }
            false
        };
        let waited = program.wait_ready(READY_TIMEOUT, ready).await;
        waited.map_err(|why| self.explain(why))?;
        Ok(found)
    }

    fn explain(&self, why: semel_rig::Error) -> String {
        match why {
            semel_rig::Error::Start { source, .. } => {
                let program = self.command.first().map_or("", String::as_str);
                format!("`{program}` cannot be run: {source}")
            }
            semel_rig::Error::Ended { status, .. } => format!("it ended with {status}"),
            semel_rig::Error::Late { .. } => self.waited_for(),
            semel_rig::Error::Machine(why) => why.to_string(),
        }
    }

    async fn is_ready(&self, ip: IpAddr) -> bool {
        let address = SocketAddr::from((ip, self.port));
        match &self.ready {
            Ready::Now => true,
            Ready::Port => TcpStream::connect(address).await.is_ok(),
            Ready::Path(path) => {
                let status = status_of(address, path).await;
                status.is_some_and(|status| status < 500)
            }
        }
    }

    fn waited_for(&self) -> String {
        let (port, seconds) = (self.port, READY_TIMEOUT.as_secs());
        match &self.ready {
            Ready::Now => "it ended".to_owned(),
            Ready::Port => format!("nobody listened on port {port} within {seconds} s"),
            Ready::Path(path) => {
                format!("{path} on port {port} did not answer below 500 within {seconds} s")
            }
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::from((self.ip, self.port))
    }

    fn not_ready(&self, why: String) -> NotReady {
        NotReady {
            name: self.name.clone(),
            why,
            log: self.log_tail(),
        }
    }

    /// The end of what it printed, to be added to a sentence.
    pub(super) fn log_tail(&self) -> String {
        let log = plain(&log::tail(&self.log));
        let lines: Vec<&str> = log.lines().collect();
        let skipped = lines.len().saturating_sub(LOG_LINES_SHOWN);
        match lines.get(skipped..) {
            None | Some([]) => "; it printed nothing".to_owned(),
            Some(shown) => format!("; the end of what it printed:\n{}", shown.join("\n")),
        }
    }
}

impl Drop for ManagedProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn status_of(address: SocketAddr, path: &str) -> Option<u16> {
    let request = ::http::Request::get(path)
        .header("host", address.to_string())
        .header("connection", "close")
        .body(Full::default());
    let head = http::send(address, request.ok()?).await.ok()?;
    Some(head.status)
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

    /// Whether two of it, side by side, are two of the same handler.
    pub(crate) fn can_run_twice(&self) -> bool {
        let mut texts = std::iter::once(&self.spawn).chain(self.env.values());
        self.readiness() != Ready::Now && !texts.any(|text| text.contains("{dir}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_rig::Reaper;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    /// A process that prints in red and then stands still, and is asked at another one's port.
    async fn start(seconds: &str, asked: &TcpListener, reaper: &Reaper) -> Result<(), NotReady> {
        let dir = tempfile::tempdir().unwrap();
        let script = format!("printf '\\033[31mred'; sleep {seconds}");
        let mut process = ManagedProcess {
            name: "handler".to_owned(),
            command: ["/bin/sh", "-c", &script].map(str::to_owned).to_vec(),
            environment: BTreeMap::new(),
            directory: dir.path().to_owned(),
            port: asked.local_addr().unwrap().port(),
            ready: Ready::Path("/healthz".to_owned()),
            log: dir.path().join("log"),
            attack: true,
            proxies: Vec::new(),
            mark: Mark::new(dir.path().display().to_string()),
            ip: Ipv4Addr::LOCALHOST.into(),
            program: None,
            paused: false,
        };
        process.start(&reaper.handle()).await
    }

    #[tokio::test]
    async fn who_takes_connections_and_never_answers_is_not_waited_for_endlessly() {
        let reaper = Reaper::start().unwrap();
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let waited = timeout(READY_ANSWER * 3, start("0.2", &silent, &reaper)).await;
        let said = waited.unwrap().unwrap_err().to_string();
        assert!(said.contains("it ended with"), "{said}");
        let plain = said.contains("[31mred") && !said.contains('\u{1b}');
        assert!(plain, "{said:?}");
    }

    #[tokio::test]
    async fn slow_answer_is_waited_for() {
        let reaper = Reaper::start().unwrap();
        let slow = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let answers = async || loop {
            let (mut asked, _) = slow.accept().await.unwrap();
            tokio::time::sleep(READY_ANSWER.mul_f64(1.3)).await;
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            asked.write_all(answer).await.ok();
        };
        let ready = tokio::select! {
            ready = start("60", &slow, &reaper) => ready,
            () = answers() => unreachable!("it never ends"),
        };
        ready.unwrap();
    }
}
