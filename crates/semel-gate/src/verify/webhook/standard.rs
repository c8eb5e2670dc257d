//! Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature: v1,BASE64 v1,BASE64`, over
//! `ID.TIME.BODY`. Svix sends the same under names that begin with `svix-`. Other versions (`v1a`, by a public key)
//! prove nothing here.

use super::{Refusal, Signed, one_header};
use crate::source::webhook::standard_prefix;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;

pub(super) fn read(
    headers: &HeaderMap,
    check_time: impl Fn(&str) -> Result<(), Refusal>,
) -> Result<Signed, Refusal> {
    // With both sets of names, which id is the signed one could be read in two ways.
    let prefix = standard_prefix(headers).ok_or(Refusal::SignatureMalformed)?;
    let id = one_header(headers, &format!("{prefix}-id"))?;
    let time = one_header(headers, &format!("{prefix}-timestamp"))?;
    let header = one_header(headers, &format!("{prefix}-signature"))?;
    check_time(&time)?;
    let mut signatures = Vec::new();
    for item in header.split(' ') {
        if let Some(encoded) = item.strip_prefix("v1,") {
            let bytes = STANDARD.decode(encoded);
            signatures.push(bytes.map_err(|_| Refusal::SignatureMalformed)?);
        }
    }
    Ok(Signed {
        prefix: format!("{id}.{time}."),
        signatures,
    })
}
