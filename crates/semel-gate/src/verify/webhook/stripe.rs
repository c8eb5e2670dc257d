//! Stripe: `Stripe-Signature: t=TIME,v1=HEX`, over `TIME.BODY`. There is a `v1` for each secret that is in use; other
//! schemes, as `v0` of test events, prove nothing.

use super::{Refusal, Signed, one_header};
use http::HeaderMap;

pub(super) fn read(
    headers: &HeaderMap,
    check_time: impl Fn(&str) -> Result<(), Refusal>,
) -> Result<Signed, Refusal> {
    let header = one_header(headers, "stripe-signature")?;
    let (mut time, mut signatures) = (None, Vec::new());
    for item in header.split(',') {
        let (name, value) = item.split_once('=').ok_or(Refusal::SignatureMalformed)?;
        match name.trim() {
            // Two times could be read in two ways.
            "t" if time.replace(value).is_some() => return Err(Refusal::SignatureMalformed),
            "t" => {}
            "v1" => {
                let bytes = hex::decode(value).map_err(|_| Refusal::SignatureMalformed)?;
                signatures.push(bytes);
            }
            _ => {}
        }
    }
    let time = time.ok_or(Refusal::SignatureMalformed)?;
    check_time(time)?;
    Ok(Signed {
        prefix: format!("{time}."),
        signatures,
    })
}
