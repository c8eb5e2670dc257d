//! A queue's `httpTarget`: checked when it is set, and applied to a task's request when that is sent.

use super::errors::{self, invalid, invalid_somehow};
use super::{headers, validate};
use crate::proto::tasks::uri_override::{Scheme, UriOverrideEnforceMode};
use crate::proto::tasks::{HttpMethod, HttpTarget, UriOverride};
use tonic::Status;
use url::Url;

/// Checks who the queue speaks as.
pub(super) fn check_tokens(target: &HttpTarget) -> Result<(), Status> {
    let token = validate::token_of(target);
    token.as_ref().map_or(Ok(()), validate::check_email)
}

pub(super) fn check_email(email: &str) -> Result<(), Status> {
    if email.is_empty() {
        return Err(invalid("service_account_email must be set."));
    }
    let parts: Vec<&str> = email.split('@').collect();
    match parts.as_slice() {
        [name, domain] if !name.is_empty() && !domain.is_empty() => Ok(()),
        _ => Err(invalid_somehow()),
    }
}

/// Checks all but who the queue speaks as.
pub(super) fn checked(mut target: HttpTarget) -> Result<HttpTarget, Status> {
    if HttpMethod::try_from(target.http_method).is_err() {
        return Err(errors::http_target(""));
    }
    if let Some(uri) = &target.uri_override {
        check_uri(uri)?;
    }
    target.header_overrides.retain(|it| it.header.is_some());
    let names = target.header_overrides.iter();
    let names = names.filter_map(|it| Some(it.header.as_ref()?.key.as_str()));
    let refused: Vec<&str> = names.filter(|name| !headers::may_override(name)).collect();
    if !refused.is_empty() {
        return Err(invalid(format!(
            "Error in parsing HttpTarget.headers. Header name cannot be empty or start with reserved prefixes. Invalid headers found: {}",
            refused.join(", ")
        )));
    }
    Ok(target)
}

fn check_uri(uri: &UriOverride) -> Result<(), Status> {
    if *uri == UriOverride::default() {
        return Err(errors::http_target("Invalid uri_override."));
    }
    let scheme_is_known = uri.scheme.is_none_or(|it| Scheme::try_from(it).is_ok());
    let mode_is_known = UriOverrideEnforceMode::try_from(uri.uri_override_enforce_mode).is_ok();
    if !scheme_is_known || !mode_is_known {
        return Err(errors::http_target(""));
    }
    if uri.host.as_ref().is_some_and(|host| !is_host(host)) {
        return Err(errors::http_target("Invalid Host."));
    }
    if uri.port.is_some_and(|port| port < 0) {
        return Err(errors::http_target(
            "Port number should be a positive integer.",
        ));
    }
    Ok(())
}

fn is_host(host: &str) -> bool {
    let allowed = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
    !host.is_empty() && host.chars().all(allowed)
}

/// Where a task goes that has no address of its own; nothing if the queue does not say.
pub(super) fn address(target: &HttpTarget) -> Option<Url> {
    let uri = target.uri_override.as_ref()?;
    let host = uri.host.as_ref()?;
    let url = Url::parse(&format!("https://{host}/")).ok()?;
    overridden(uri, &url)
}

/// Where a task of the queue goes that names `url` itself; nothing if that is not an address.
pub(super) fn resolve(target: Option<&HttpTarget>, url: &str) -> Option<Url> {
    let own = Url::parse(url).ok()?;
    let Some(uri) = target.and_then(|target| target.uri_override.as_ref()) else {
        return Some(own);
    };
    match uri.uri_override_enforce_mode() {
        UriOverrideEnforceMode::IfNotExists => Some(own),
        UriOverrideEnforceMode::Unspecified | UriOverrideEnforceMode::Always => {
            overridden(uri, &own)
        }
    }
}

fn overridden(uri: &UriOverride, own: &Url) -> Option<Url> {
    let scheme = match uri.scheme() {
        Scheme::Unspecified => own.scheme().to_owned(),
        Scheme::Http => "http".into(),
        Scheme::Https => "https".into(),
    };
    let host = uri.host.as_deref().or(own.host_str())?;
    let port = match uri.port {
        None => own.port().map(i64::from),
        Some(0) => None,
        Some(port) => Some(port),
    };
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let mut url = Url::parse(&format!("{scheme}://{host}{port}/")).ok()?;
    match &uri.path_override {
        Some(path) => url.set_path(&path.path),
        None => url.set_path(own.path()),
    }
    match &uri.query_override {
        Some(query) => {
            let params = query.query_params.trim_start_matches('?');
            url.set_query((!params.is_empty()).then_some(params));
        }
        None => url.set_query(own.query()),
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{self, HTTP_TARGET};
    use serde_json::{Value, json};

    fn over(uri: &Value) -> HttpTarget {
        proto::from_json(HTTP_TARGET, json!({ "uriOverride": uri }))
    }

    fn whole(mode: &str) -> HttpTarget {
        over(&json!({
            "scheme": "HTTP", "host": "127.0.0.1", "port": 8080, "pathOverride": { "path": "a b" },
            "queryOverride": { "queryParams": "q=1" }, "uriOverrideEnforceMode": mode,
        }))
    }

    #[test]
    fn every_part_of_an_address_is_replaced() {
        let target = whole("URI_OVERRIDE_ENFORCE_MODE_UNSPECIFIED");
        let url = resolve(Some(&target), "https://example.com/work?x").unwrap();
        assert_eq!(url.as_str(), "http://127.0.0.1:8080/a%20b?q=1");
        assert_eq!(address(&target).unwrap(), url);
    }

    #[test]
    fn parts_can_be_cleared() {
        let target = over(&json!({ "port": 0, "pathOverride": {}, "queryOverride": {} }));
        let url = resolve(Some(&target), "http://example.com:99/work?x").unwrap();
        assert_eq!(url.as_str(), "http://example.com/");
        assert_eq!(address(&target), None);
    }

    #[test]
    fn if_not_exists_keeps_a_tasks_own_address() {
        let target = whole("IF_NOT_EXISTS");
        let url = resolve(Some(&target), "http://example.com/work").unwrap();
        assert_eq!(url.as_str(), "http://example.com/work");
    }

    #[test]
    fn a_port_that_cannot_be_is_stored_but_leads_nowhere() {
        let target = over(&json!({ "port": 65_536 }));
        assert!(checked(target.clone()).is_ok());
        assert_eq!(resolve(Some(&target), "http://example.com/"), None);
    }
}
