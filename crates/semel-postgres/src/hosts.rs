//! Where a URL says that the servers are, in libpq's words. The driver adds what the options say to what stands before the
//! path, and takes a list that begins with a directory for one directory; in libpq the options come instead.

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;

const PORT: u16 = 5432;

/// The hosts of a URL. One that begins with `/` is the directory of a Unix socket.
#[derive(Debug)]
pub(crate) struct Hosts {
    names: Vec<String>,
    /// None, one for all of them, or one for each.
    ports: Vec<u16>,
}

/// The URL without its hosts and ports, and these; `None` when it is not of that form.
pub(crate) fn split(url: &str) -> Option<(String, Result<Hosts, &'static str>)> {
    let (scheme, rest) = url.split_once("://")?;
    // As for the driver, a `?` before the `@` belongs to the password.
    let (user, rest) = rest.split_once('@').unwrap_or(("", rest));
    let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (mut hosts, mut ports) = listed(authority)?;
    let mut options = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match percent_decode_str(name).decode_utf8_lossy().as_ref() {
            "host" => hosts = items(&decoded(value)),
            "port" => ports = items(&decoded(value)),
            _ => options.push(pair),
        }
    }
    let at = if user.is_empty() { "" } else { "@" };
    let mark = if options.is_empty() { "" } else { "?" };
    let url = format!("{scheme}://{user}{at}{path}{mark}{}", options.join("&"));
    Some((url, judged(hosts, &ports)))
}

/// What stands before the path: hosts and ports, either of which may be left out.
fn listed(authority: &str) -> Option<(Vec<String>, Vec<String>)> {
    let chunks = authority.split(',').filter(|_| !authority.is_empty());
    let pairs = chunks.map(|chunk| {
        let (host, port) = match chunk.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => chunk.split_at(chunk.find(':').unwrap_or(chunk.len())),
        };
        let port = if port.is_empty() {
            ""
        } else {
            port.strip_prefix(':')?
        };
        Some((decoded(host), decoded(port)))
    });
    let (hosts, ports): (Vec<_>, Vec<_>) = pairs.collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let are_said = |all: &[String]| all.iter().any(|one| !one.is_empty());
    Some((
        if are_said(&hosts) { hosts } else { Vec::new() },
        if are_said(&ports) { ports } else { Vec::new() },
    ))
}

fn judged(names: Vec<String>, ports: &[String]) -> Result<Hosts, &'static str> {
    if names.iter().any(String::is_empty) {
        return Err("one of the hosts of the URL is empty: leave out the comma, or write its name");
    }
    let ports: Option<Vec<u16>> = ports.iter().map(|port| read(port)).collect();
    let ports = ports.ok_or("a port of the URL is not a number from 1 to 65535")?;
    // Without names there may be addresses, which are counted later.
    if !names.is_empty() && ports.len() > 1 && ports.len() != names.len() {
        return Err(
            "the URL has another number of ports than of hosts: write one port for all, or one for each",
        );
    }
    Ok(Hosts { names, ports })
}

fn read(port: &str) -> Option<u16> {
    match port {
        "" => Some(PORT),
        digits => digits.parse().ok().filter(|port| *port > 0),
    }
}

fn items(list: &str) -> Vec<String> {
    list.split(',').map(str::to_owned).collect()
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

// === impl Hosts ===

impl Hosts {
    pub(crate) fn apply(&self, config: &mut Config) {
        for name in &self.names {
            config.host(name);
        }
        for port in &self.ports {
            config.port(*port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(url: &str) -> (String, Vec<u16>) {
        let (_, hosts) = split(url).unwrap();
        let hosts = hosts.unwrap();
        (hosts.names.join(" "), hosts.ports)
    }

    #[test]
    fn hosts_and_ports_are_those_of_libpq() {
        for (url, names, ports) in [
            ("postgres://h/d", "h", &[][..]),
            ("postgres://u:p?q@h:6432/d", "h", &[6432]),
            ("postgres://a:1,b/d", "a b", &[1, 5432]),
            ("postgres://a,b/d?port=7", "a b", &[7]),
            ("postgres://a:1,b:2/d?port=7", "a b", &[7]),
            ("postgres://a,b?port=7,8", "a b", &[7, 8]),
            ("postgres://a,b?port=7,", "a b", &[7, 5432]),
            ("postgres://[::1]:7,[::2]/d", "::1 ::2", &[7, 5432]),
            ("postgres://%2Frun%2Fpg:7/d", "/run/pg", &[7]),
            ("postgres:///d?host=/run/pg", "/run/pg", &[]),
            ("postgres://:7/d?host=/run/pg", "/run/pg", &[7]),
            (
                "postgres://x/d?host=/run/pg,127.0.0.1&port=7",
                "/run/pg 127.0.0.1",
                &[7],
            ),
            ("postgres:///d?h%6Fst=%2Fa,b&port=1,2", "/a b", &[1, 2]),
            ("postgres:///d?hostaddr=127.0.0.1&port=7", "", &[7]),
        ] {
            assert_eq!(hosts(url), (names.to_owned(), ports.to_vec()), "{url}");
        }
    }

    #[test]
    fn the_driver_sees_the_rest() {
        for (url, rest) in [
            ("postgres://h/d", "postgres:///d"),
            ("postgres://h", "postgres://"),
            ("postgres://u:p@h:1,i/d?a=b", "postgres://u:p@/d?a=b"),
            ("postgres://u@h?port=7&a=b", "postgres://u@?a=b"),
        ] {
            assert_eq!(split(url).unwrap().0, rest);
        }
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        for (url, why) in [
            ("postgres://a,b,c/d?port=1,2", "another number of ports"),
            ("postgres://a,b/d?port=1,2,3", "another number of ports"),
            ("postgres://a,,b/d", "one of the hosts of the URL is empty"),
            ("postgres:///d?host=/run/pg,", "one of the hosts"),
            ("postgres://a:0/d", "a port of the URL is not"),
            ("postgres://a/d?port=x", "a port of the URL is not"),
        ] {
            let (_, hosts) = split(url).unwrap();
            let said = hosts.unwrap_err();
            assert!(said.contains(why), "{url}: {said}");
        }
        for url in ["h/d", "postgres://[::1/d", "postgres://[::1]7/d"] {
            assert!(split(url).is_none(), "{url}");
        }
    }
}
