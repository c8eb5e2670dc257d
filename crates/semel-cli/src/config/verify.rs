//! Verification: how the senders of a route show who they are.

use super::route_values::Senders;
use super::secrets::secret;
use super::section::Section;
use super::values::{duration, list, switch, text};
use super::verify_values::{TokenIssuer, algorithm, email, keys_url, one_or_more, token_issuer};
use semel_gate::settings::{
    Algorithm, Issuer, Secret, SignatureRule, Source, TokenRule, Verify, Webhook, is_google_key_set,
};
use semel_gate::verify::secret_bytes;
use std::time::Duration;

/// Fields that only mean something where tokens are verified.
const OF_TOKENS: [&str; 5] = [
    "keys_url",
    "algorithms",
    "audience",
    "emails",
    "forward_token",
];

/// The shortest secret: GitHub takes any, and a short one is soon found by whoever has one signed body.
const SECRET_BYTES_MIN: usize = 8;

/// The longest tolerance: beyond it a signature that leaked stays good for too long.
const TOLERANCE_MAX: Duration = Duration::from_secs(3600);

/// Every field is read before anything is given up, so that all mistakes are found.
pub(super) fn verify(section: &mut Section<'_>, senders: &Senders) -> Verify {
    let webhook = senders.webhook();
    let signature = signature(section, webhook);
    let token = token(section);
    if let (Some(webhook), true) = (webhook, section.given("verify")) {
        let says = format!(
            "`verify` is for tokens, and {webhook} signs its deliveries: leave it out, `secrets` says how they are checked"
        );
        section.wrong("verify", says);
    }
    match (signature, token) {
        (Some(rule), _) => Verify::Signature(rule),
        (None, Some(rule)) => Verify::Token(rule),
        (None, None) => Verify::Off,
    }
}

fn signature(section: &mut Section<'_>, webhook: Option<Webhook>) -> Option<SignatureRule> {
    let secrets = section.list("secrets", secret);
    let tolerance = section.value("tolerance", duration);
    let Some(sender) = webhook else {
        for field in ["secrets", "tolerance"] {
            let says = format!(
                "`{field}` is for senders that sign: write source = \"stripe\", \"github\", \"shopify\" or \"standard-webhooks\""
            );
            section.refuse_if(section.given(field), field, says);
        }
        return None;
    };
    let says = format!(
        "`secrets` is missing: without the secret of {sender} anybody could deliver; write secrets = [\"env:NAME\"]"
    );
    let missing = !section.given("secrets");
    section.refuse_if(missing, "secrets", says);
    let says = "`secrets`: the list is empty: nothing would be taken";
    let empty = secrets.is_empty() && section.is_empty_list("secrets");
    section.refuse_if(empty, "secrets", says);
    let unusable = |secret: &Secret| secret_bytes(sender, secret).is_none();
    let says = format!(
        "`secrets`: one of them is not a secret of {sender}: it is whsec_ and base64, as the sender shows it"
    );
    section.refuse_if(secrets.iter().any(unusable), "secrets", says);
    let short = |secret: &Secret| {
        secret_bytes(sender, secret).is_some_and(|bytes| bytes.len() < SECRET_BYTES_MIN)
    };
    let says = format!(
        "`secrets`: one of them has fewer than {SECRET_BYTES_MIN} bytes and can be guessed: have {sender} use a longer one"
    );
    section.refuse_if(secrets.iter().any(short), "secrets", says);
    let says =
        format!("`tolerance`: the signature of {sender} covers no time that could be compared");
    let idle = section.given("tolerance") && !sender.signs_time();
    section.refuse_if(idle, "tolerance", says);
    let fits = (Duration::from_secs(1)..=TOLERANCE_MAX).contains(&tolerance);
    section.refuse_if(!fits, "tolerance", "`tolerance` must be from 1s to 1h");
    Some(SignatureRule {
        sender,
        secrets,
        tolerance,
    })
}

fn token(section: &mut Section<'_>) -> Option<TokenRule> {
    let issuer = section.take("verify", token_issuer);
    let keys = section.take("keys_url", keys_url);
    let algorithms = section.value("algorithms", list(algorithm));
    let audiences = section.take("audience", one_or_more);
    let emails = section.list("emails", email);
    let forwarded = section.value("forward_token", switch);
    if !section.given("verify") {
        for field in OF_TOKENS {
            let says = format!(
                "`{field}` is for routes that verify tokens: write verify = \"google\", too"
            );
            section.refuse_if(section.given(field), field, says);
        }
        return None;
    }
    let issuer = issuer?;
    let says = "`audience` is missing: a token for somebody else would be taken; write the audience of the task or \
                subscription, which is the whole URL that it is sent to unless it says otherwise";
    section.refuse_if(!section.given("audience"), "audience", says);
    let is_google = !matches!(issuer, TokenIssuer::Named(_));
    let says = "`emails` is missing: anybody with a project at Google can have tokens signed for any audience; write \
                the service accounts that deliver here";
    section.refuse_if(is_google && emails.is_empty(), "emails", says);
    let says = "`keys_url`: these are Google's keys, which sign for everybody: write verify = \"google\" and leave it out";
    let googles = !is_google && keys.as_ref().is_some_and(is_google_key_set);
    section.refuse_if(googles, "keys_url", says);
    check_keys(section, &issuer, &algorithms);
    Some(TokenRule {
        issuer: match issuer {
            TokenIssuer::Google => Issuer::google(),
            TokenIssuer::CloudRunIam => Issuer::trusting_cloud_run(),
            TokenIssuer::Named(name) => Issuer::named(name, keys.unwrap_or_default()),
        },
        audiences: audiences.unwrap_or_default(),
        emails,
        algorithms,
        forwarded,
    })
}

/// Whose keys there are, and how they sign.
fn check_keys(section: &mut Section<'_>, issuer: &TokenIssuer, algorithms: &[Algorithm]) {
    let says = "`algorithms`: the list is empty: nothing would be taken";
    section.refuse_if(algorithms.is_empty(), "algorithms", says);
    match issuer {
        TokenIssuer::Google | TokenIssuer::CloudRunIam => {
            let says = "`algorithms`: Google signs with RS256 alone: leave it out";
            section.refuse_if(algorithms != [Algorithm::Rs256], "algorithms", says);
            let says = "`keys_url`: where Google's keys are is known: leave it out";
            section.refuse_if(section.given("keys_url"), "keys_url", says);
        }
        TokenIssuer::Named(name) => {
            let says = format!(
                "`keys_url` is missing: write the `jwks_uri` that {name}/.well-known/openid-configuration names"
            );
            section.refuse_if(!section.given("keys_url"), "keys_url", says);
        }
    }
}

/// Who may ask to deliver events here.
pub(super) fn webhook_origins(section: &mut Section<'_>, sources: &[Source]) -> Vec<String> {
    let origins = section.list("webhook_origins", text);
    let elsewhere = !origins.is_empty() && !sources.contains(&Source::CloudEvents);
    let says = "`webhook_origins` is for the handshake of CloudEvents, and this route takes none: name \"cloudevents\" \
                in source";
    section.refuse_if(elsewhere, "webhook_origins", says);
    origins
}
