//! Shopify: `X-Shopify-Hmac-SHA256: BASE64`, over the body alone.

use super::{Refusal, Signed, one_header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;

pub(super) fn read(headers: &HeaderMap) -> Result<Signed, Refusal> {
    let header = one_header(headers, "x-shopify-hmac-sha256")?;
    let signature = STANDARD.decode(header.as_bytes());
    signature
        .map(Signed::body)
        .map_err(|_| Refusal::SignatureMalformed)
}
