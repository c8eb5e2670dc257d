//! nginx as a plain reverse proxy: what the gate would stand in place of, if nothing had to take effect once.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use anyhow::Context;

use crate::disk;
use crate::running::Running;
use crate::upstream::{Upstream, ready_through};

/// Connections to the handler are kept, at least as many as clients have.
const KEPT_CONNECTIONS: usize = 256;

/// Starts it before the handler.
pub(crate) async fn start(handler: &Upstream) -> anyhow::Result<Running> {
    let (port, dir) = (testbed::free_port()?, disk::directory()?);
    let file = dir.path().join("nginx.conf");
    fs::write(&file, settings(port, handler.port())?).context("cannot write nginx.conf")?;
    let mut command = Command::new(testbed::find_program("nginx")?);
    command.env_clear().args(["-e", "stderr", "-p"]);
    command.arg(dir.path()).arg("-c").arg(file);
    Running::start("nginx", dir, &mut command, port, ready_through(port)).await
}

/// As many workers as cores, which is what `auto` means where no core is withheld from us.
fn settings(port: u16, handler: u16) -> anyhow::Result<String> {
    let workers = available_parallelism().context("cannot count cores")?;
    Ok(format!(
        "daemon off;
worker_processes {workers};
pid nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    keepalive_requests 1000000000;
    upstream handler {{
        server 127.0.0.1:{handler};
        keepalive {KEPT_CONNECTIONS};
        keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://handler;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
        }}
    }}
}}
"
    ))
}
