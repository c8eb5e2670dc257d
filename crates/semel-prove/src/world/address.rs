//! The address in a dependency's URL, which is replaced by a proxy's.

use crate::error::Error;
use crate::scenario::check::Endpoint;
use url::Url;

/// A URL with a hole where its address was.
#[derive(Debug)]
pub(crate) struct UrlTemplate(String, String);

impl UrlTemplate {
    /// With an address of our own.
    pub(crate) fn at(&self, port: u16) -> String {
        format!("{}127.0.0.1:{port}{}", self.0, self.1)
    }
}

/// The address in a URL, and what is around it.
pub(crate) fn address(url: &str, endpoint: &Endpoint) -> Result<(String, UrlTemplate), Error> {
    let wrong = || {
        Error::Scenario(format!(
            "dependency `{}`: `{url}` names no address",
            endpoint.env
        ))
    };
    let parsed = Url::parse(url).map_err(|_| wrong())?;
    let host = parsed
        .host_str()
        .filter(|host| !host.is_empty())
        .ok_or_else(wrong)?;
    let port = parsed.port_or_known_default().or(match parsed.scheme() {
        "postgres" | "postgresql" => Some(5432),
        "redis" => Some(6379),
        "amqp" => Some(5672),
        _ => None,
    });
    let port = port.ok_or_else(wrong)?;
    let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let user = authority
        .rsplit_once('@')
        .map(|(user, _)| format!("{user}@"))
        .unwrap_or_default();
    Ok((
        format!("{host}:{port}"),
        UrlTemplate(format!("{scheme}://{user}"), path.to_owned()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::protocol::Protocol;

    #[test]
    fn address_is_cut_out_of_a_url_and_nothing_else_changes() {
        let endpoint = Endpoint {
            env: "X".to_owned(),
            url: String::new(),
            protocol: Protocol::Postgres,
            encrypted: false,
        };
        let (to, template) = address("postgres://me:p%40w@db.example/shop?x=1", &endpoint).unwrap();
        assert_eq!(to, "db.example:5432");
        assert_eq!(template.at(99), "postgres://me:p%40w@127.0.0.1:99/shop?x=1");
        let (to, template) = address("http://127.0.0.1:80", &endpoint).unwrap();
        assert_eq!(
            (to.as_str(), template.at(7).as_str()),
            ("127.0.0.1:80", "http://127.0.0.1:7")
        );
        assert!(address("redis://", &endpoint).is_err());
    }
}
