//! `UpdateQueue` with a mask: the named fields are taken over, the others stay.

use super::errors::invalid;
use crate::field_mask::{self, Parents};
use crate::proto::tasks::http_target::AuthorizationHeader as QueueToken;
use crate::proto::tasks::{HttpTarget, Queue};
use crate::proto::{self, QUEUE};
use tonic::Status;

/// Fields that are shown, but not set by anybody.
const OUTPUT_ONLY: [&str; 4] = ["name", "state", "purge_time", "rate_limits.max_burst_size"];

/// Checks that every path names a field that is served.
pub(super) fn check(paths: &[String]) -> Result<(), Status> {
    let mut served = paths.iter();
    served.try_for_each(|path| field_mask::check_served(QUEUE, path))?;
    let queue = proto::descriptor(QUEUE);
    let mut paths = paths.iter();
    match paths.find(|path| field_mask::fields(&queue, path).is_none()) {
        Some(path) => Err(invalid(format!("Invalid mask: {path}"))),
        None => Ok(()),
    }
}

/// `old` with the named fields of `new`.
pub(super) fn merged(old: &Queue, new: &Queue, paths: &[String]) -> Queue {
    let paths = paths
        .iter()
        .filter(|path| !OUTPUT_ONLY.contains(&path.as_str()));
    let mut merged = field_mask::merged(QUEUE, old, new, paths, Parents::Kept);
    if let Some(target) = &mut merged.http_target {
        drop_empty_token(target);
    }
    merged
}

/// A token of which a mask left nothing is none.
fn drop_empty_token(target: &mut HttpTarget) {
    let is_empty = match &target.authorization_header {
        Some(QueueToken::OidcToken(token)) => *token == Default::default(),
        Some(QueueToken::OauthToken(token)) => *token == Default::default(),
        None => false,
    };
    if is_empty {
        target.authorization_header = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::tasks::{OAuthToken, PathOverride};
    use serde_json::json;

    fn paths(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|it| (*it).to_owned()).collect()
    }

    fn created() -> Queue {
        let target = json!({
            "uriOverride": { "host": "example.net", "pathOverride": { "path": "/path" } },
            "httpMethod": "PUT",
            "oidcToken": { "serviceAccountEmail": "a@b", "audience": "c" },
        });
        proto::from_json(QUEUE, json!({ "httpTarget": target }))
    }

    fn updated() -> Queue {
        let target = json!({
            "uriOverride": { "scheme": "HTTPS", "port": 8080 },
            "httpMethod": "GET",
            "oauthToken": { "serviceAccountEmail": "a@b", "scope": "s" },
        });
        proto::from_json(QUEUE, json!({ "httpTarget": target }))
    }

    fn after(path: &str) -> HttpTarget {
        merged(&created(), &updated(), &paths(&[path]))
            .http_target
            .unwrap()
    }

    #[test]
    fn unknown_paths_are_refused() {
        for path in [
            "bogus",
            "rate_limits.bogus",
            "rate_limits.max_dispatches_per_second.bogus",
            "rateLimits.maxDispatchesPerSecond",
            "rate_limits.max_burst_size,state",
            " state",
            "",
            "http_target.header_overrides.header",
        ] {
            let refusal = check(&paths(&[path])).unwrap_err();
            assert_eq!(refusal.message(), format!("Invalid mask: {path}"));
        }
        check(&paths(&[
            "state",
            "http_target.uri_override.path_override.path",
        ]))
        .unwrap();
    }

    #[test]
    fn only_the_named_field_changes() {
        let target = after("http_target.uri_override.scheme");
        let uri = target.uri_override.unwrap();
        assert_eq!(
            (uri.scheme, uri.host.as_deref(), uri.port),
            (Some(2), Some("example.net"), None)
        );
        assert_eq!(target.http_method, 4);
    }

    #[test]
    fn what_is_not_given_is_cleared() {
        let uri = |path: &str| after(path).uri_override.unwrap();
        assert_eq!(uri("http_target.uri_override.host").host, None);
        let path = |path: &str| uri(path).path_override;
        let emptied = path("http_target.uri_override.path_override.path");
        assert_eq!(emptied, Some(PathOverride::default()));
        assert_eq!(path("http_target.uri_override.path_override"), None);
    }

    #[test]
    fn tokens_replace_each_other_as_recorded() {
        assert_eq!(after("http_target.oidc_token").authorization_header, None);
        let audience = after("http_target.oidc_token.audience").authorization_header;
        assert!(matches!(audience, Some(QueueToken::OidcToken(it)) if it.audience.is_empty()));
        let scope = after("http_target.oauth_token.scope").authorization_header;
        let expected = OAuthToken {
            service_account_email: String::new(),
            scope: "s".into(),
        };
        assert_eq!(scope, Some(QueueToken::OauthToken(expected)));
    }
}
