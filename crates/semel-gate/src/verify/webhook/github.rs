//! GitHub: `X-Hub-Signature-256: sha256=HEX`, over the body alone. The older `X-Hub-Signature`, with SHA-1, is not
//! looked at.

use super::{Refusal, Signed, one_header};
use http::HeaderMap;

pub(super) fn read(headers: &HeaderMap) -> Result<Signed, Refusal> {
    let header = one_header(headers, "x-hub-signature-256")?;
    let digits = header.strip_prefix("sha256=");
    let signature = digits.and_then(|digits| hex::decode(digits).ok());
    signature
        .map(Signed::body)
        .ok_or(Refusal::SignatureMalformed)
}
