//! Signed webhooks: the body is the payload, and a header or a field of it names the event. The signature was checked
//! before; which of the names it covers differs from sender to sender.

use crate::delivery::{Delivery, Invalid, Transport, single_header};
use crate::settings::{Source, Webhook};
use bytes::Bytes;
use http::{HeaderMap, Request};

pub(super) fn read(sender: Webhook, request: &Request<Bytes>) -> Result<Delivery, Invalid> {
    let headers = request.headers();
    let id = match sender {
        // It is in the body, where the key's rule finds it.
        Webhook::Stripe => None,
        Webhook::GitHub => single_header(headers, "x-github-delivery")?,
        Webhook::Shopify => single_header(headers, "x-shopify-webhook-id")?,
        Webhook::Standard => {
            let prefix = standard_prefix(headers).unwrap_or("webhook");
            single_header(headers, &format!("{prefix}-id"))?
        }
    };
    Ok(Delivery {
        transport: Transport {
            message_id: id.map(std::borrow::Cow::into_owned),
            ..Transport::default()
        },
        ..Delivery::new(Source::Webhook(sender), request.body().clone())
    })
}

/// How the headers of a standard webhook begin: as the specification says, or as Svix spells them. None when both are
/// there, because a reader could take either.
pub(crate) fn standard_prefix(headers: &HeaderMap) -> Option<&'static str> {
    let has = |name: &str| headers.contains_key(name);
    match (has("webhook-id"), has("svix-id")) {
        (true, true) => None,
        (false, true) => Some("svix"),
        (true | false, false) => Some("webhook"),
    }
}
