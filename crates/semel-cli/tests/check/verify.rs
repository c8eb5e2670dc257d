//! What `semel check` says of routes that verify their senders.

use super::{Says, check, check_with, in_route};

/// A route of tasks with tokens of Google's, with these lines besides.
fn with_tokens(lines: &str) -> String {
    in_route(&format!(
        "source = \"cloud-tasks\"\nverify = \"google\"\naudience = \"https://a/b\"\nemails = [\"a@b.example\"]\n{lines}"
    ))
}

#[test]
fn a_route_that_verifies_is_not_named_as_one_that_trusts_its_network() {
    let said = check(&with_tokens("")).good();
    said.lacks("identity is not checked");
    said.has("note     route orders: tokens of https://accounts.google.com for https://a/b and of a@b.example");
    let said = check(&in_route("source = \"cloud-tasks\"")).good();
    said.has("warning  the senders' identity is not checked on orders");
}

#[test]
fn what_verification_lacks_is_named() {
    let missing = [
        (
            "verify = \"google\"\nemails = [\"a@b\"]",
            "`audience` is missing: a token for somebody else would be taken",
        ),
        (
            "verify = \"google\"\naudience = \"a\"",
            "`emails` is missing: anybody with a project at Google",
        ),
        (
            "verify = \"cloud-run-iam\"\naudience = \"a\"",
            "`emails` is missing",
        ),
        (
            "verify = \"https://i.example\"\naudience = \"a\"",
            "`keys_url` is missing: write the `jwks_uri` that https://i.example/.well-known/openid-configuration names",
        ),
        (
            "source = \"stripe\"",
            "`secrets` is missing: without the secret of stripe anybody could deliver",
        ),
    ];
    for (lines, expected) in missing {
        let said = check(&in_route(lines)).refused();
        said.has("semel.toml:2: route orders: ");
        said.has(expected);
    }
}

#[test]
fn google_by_another_name_is_held_to_the_same_rules() {
    for name in [
        "https://accounts.google.com",
        "accounts.google.com",
        "https://accounts.google.com/",
        "https://Accounts.Google.com",
    ] {
        let lines = format!("source = \"cloud-tasks\"\nverify = \"{name}\"\naudience = \"a\"\n");
        check(&in_route(&lines))
            .refused()
            .has("`emails` is missing");
        let with = |more: &str| {
            check(&in_route(&format!(
                "{lines}emails = [\"a@b.example\"]\n{more}"
            )))
        };
        with("")
            .good()
            .has("tokens of https://accounts.google.com for a");
        with("keys_url = \"https://i.example/keys\"")
            .refused()
            .has("where Google's keys are is known");
        with("algorithms = [\"ES256\"]")
            .refused()
            .has("Google signs with RS256 alone");
    }
    for keys in [
        "https://www.googleapis.com/oauth2/v3/certs",
        "https://WWW.googleapis.com/oauth2/v1/certs",
    ] {
        let lines =
            format!("verify = \"https://i.example\"\naudience = \"a\"\nkeys_url = \"{keys}\"");
        check(&in_route(&lines))
            .refused()
            .has("these are Google's keys, which sign for everybody");
    }
}

#[test]
fn cloud_run_is_trusted_on_cloud_run_only() {
    let toml = with_tokens("").replace("google", "cloud-run-iam");
    let toml = format!("store = \"redis://localhost\"\n{toml}");
    check(&toml).ends(
        64,
        "this process is not on Cloud Run (K_SERVICE is not set)",
    );
    check_with(&toml, "", &[("KUBERNETES_SERVICE_HOST", "x")]).ends(64, "not on Cloud Run");
    let said = check_with(&toml, "", &[("K_SERVICE", "x")]).good();
    said.has("warning  route orders: verify = \"cloud-run-iam\" trusts the platform");
}

#[test]
fn issuers_besides_google_are_described() {
    let named = |keys: &str, lines: &str| {
        let issuer = keys.strip_suffix("/keys").unwrap();
        check(&in_route(&format!(
            "source = \"cloud-tasks\"\nverify = \"{issuer}\"\nkeys_url = \"{keys}\"\naudience = [\"a\", \"b\"]\n{lines}"
        )))
        .good()
    };
    named(
        "https://i.example/keys",
        "algorithms = [\"RS256\", \"ES256\"]",
    )
    .has("note     route orders: every account that https://i.example signs a token");
    named("http://127.0.0.1:8085/keys", "")
        .has("warning  route orders: the keys of http://127.0.0.1:8085 come from http://127.0.0.1:8085/keys without TLS");
}

#[test]
fn webhooks_have_their_own_terms_and_secrets_are_never_said() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret");
    std::fs::write(&file, "\u{feff}whsec_Y2FuYXJ5LWNhbmFyeQ==\r\n").unwrap();
    let with = |sender: &str, lines: &str| {
        let file = file.display();
        let route =
            format!("source = \"{sender}\"\nsecrets = [\"env:S\", \"file:{file}\"]\n{lines}");
        check_with(&in_route(&route), "", &[("S", "whsec_b3RoZXItb3RoZXI=")])
    };
    let said = with("stripe", "").good();
    said.has("note     route orders, stripe: timeout 10m > deadline 10s: a run may continue without its sender");
    said.has("proved   route orders, stripe: retention 7d ≥ horizon 3d");
    said.has("note     route orders, stripe: what the event id names is not compared");
    said.has("note     route orders: signatures of stripe cover body, id and time: one older than 5m is refused");
    said.lacks("identity is not checked");
    let said = with("github", "").good();
    said.has("note     route orders: signatures of github cover the body alone");
    said.has("proved   route orders, github: timeout 9s + 1s ≤ deadline 10s");
    said.has("this sender gives up after sender_attempts 1");
    with("shopify", "").good().has("deadline 5s");
    with("standard-webhooks", "tolerance = \"1m\"")
        .good()
        .has("older than 1m");
    for said in [
        with("github", "tolerance = \"1m\""),
        with("stripe", "tolerance = \"2h\""),
        with(
            "stripe",
            "verify = \"google\"\naudience = \"a\"\nemails = [\"a@b\"]",
        ),
    ] {
        let said = said.refused();
        said.lacks("Y2FuYXJ5");
        said.lacks("b3RoZXI");
    }
    let route = in_route("source = \"standard-webhooks\"\nsecrets = [\"env:S\"]");
    let said = check_with(&route, "", &[("S", "canary, not base64")]).refused();
    said.has("one of them is not a secret of standard-webhooks");
    said.lacks("canary");
    // A secret that stands in the file itself is not repeated.
    for written in ["whsec_canary", "env:whsec_canary", "file:whsec_canary"] {
        let route = format!("source = \"stripe\"\nsecrets = [\"{written}\"]");
        check(&in_route(&route)).refused().lacks("canary");
    }
}

#[test]
fn a_secret_that_can_be_guessed_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret");
    let with = |sender: &str, secret: &str| {
        std::fs::write(&file, secret).unwrap();
        let file = file.display();
        check(&in_route(&format!(
            "source = \"{sender}\"\nsecrets = [\"file:{file}\"]"
        )))
    };
    for blank in ["", " \n", "\t\r\n", "\u{feff}\n"] {
        with("github", blank).refused().has("is empty");
    }
    with("github", "canary7\n")
        .refused()
        .has("fewer than 8 bytes and can be guessed");
    with("standard-webhooks", "whsec_Y2FuYXJ5")
        .refused()
        .has("fewer than 8 bytes");
    with("github", "canary78").good();
    // A path that is one may be named.
    std::fs::remove_file(&file).unwrap();
    let name = file.display().to_string();
    let route = format!("source = \"github\"\nsecrets = [\"file:{name}\"]");
    check(&in_route(&route))
        .refused()
        .has(&format!("the file {name} cannot be read"));
}

#[test]
fn a_webhook_s_key_is_of_what_is_signed() {
    let with = |sender: &str, key: &str| {
        let route = format!("source = \"{sender}\"\nkey = \"{key}\"\nsecrets = [\"env:S\"]");
        let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
        check_with(&in_route(&route), "", &[("S", secret)])
    };
    for (sender, key) in [
        ("stripe", "header:X-Foo"),
        ("stripe", "/id header:x-foo"),
        ("standard-webhooks", "header:x-foo"),
        ("github", "header:x-github-event"),
    ] {
        let said = with(sender, key).good();
        said.has(&format!(
            "warning  route orders: signatures of {sender} do not cover header:x-"
        ));
        said.lacks("cover body, id and time");
    }
    for (sender, key) in [
        ("stripe", "header:stripe-signature"),
        ("standard-webhooks", "header:webhook-timestamp"),
        ("standard-webhooks", "header:svix-signature"),
    ] {
        with(sender, key).ends(
            64,
            "each delivery is signed anew, so every repeat would run",
        );
    }
    with("standard-webhooks", "header:svix-id")
        .good()
        .has("cover body, id and time");
    with("github", "/id")
        .good()
        .has("cover the body and so the key, and no time");
}

#[test]
fn callers_by_claims_need_tokens() {
    let api =
        |caller: &str| with_tokens(&format!("caller = \"{caller}\"")).replace("cloud-tasks", "api");
    check(&api("jwt:sub")).good();
    check(&api("jwt:email")).good();
    for claim in ["aud", "iss"] {
        check(&api(&format!("jwt:{claim}"))).ends(64, "one caller would get another's answers");
    }
    for claim in ["jti", "exp", "iat", "nbf"] {
        let said = check(&api(&format!("jwt:{claim}")));
        said.ends(64, "a retry with a new token would run again");
    }
    check(&api("header:authorization")).ends(64, "the token is verified and then taken away");
}

#[test]
fn what_is_let_through_is_warned_of() {
    let said = check(&in_route(
        "source = \"api\"\ncaller = \"shared\"\nkey_missing = \"pass\"",
    ))
    .good();
    said.has("warning  route orders: key_missing = \"pass\"");
}

#[test]
fn the_handshake_is_refused_unless_origins_are_named() {
    let said = check(&in_route("source = \"cloudevents\"")).good();
    said.has("note     route orders: the handshake of CloudEvents webhooks is refused");
    let said = check(&in_route(
        "source = \"cloudevents\"\nwebhook_origins = [\"eventgrid.azure.net\"]",
    ));
    said.good().lacks("handshake");
}
