//! Letters: a whole delivery, as it is kept in the store and read back for a redrive.
//!
//! Version 1: byte `0x01` · 4-byte big-endian length n · n bytes of JSON (route, method, path, headers,
//! what was wrong) · body bytes.

use crate::delivery::path_and_query;
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use semel::Error;
use semel::outcome::{bytes_of, text_of};
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;

/// Headers that prove who somebody is: a letter is read by people and outlives them.
const CREDENTIALS: [&str; 5] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-serverless-authorization",
    "x-goog-iap-jwt-assertion",
];

/// A delivery as a letter keeps it.
#[derive(Clone, Debug)]
pub struct StoredDelivery {
    /// All of it but the body.
    pub head: Head,
    /// The body.
    pub body: Bytes,
}

/// All of it but the body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The route's name.
    pub route: String,
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The headers, without credentials.
    pub headers: Vec<(String, String)>,
    /// What was wrong, for whoever reads it.
    pub why: String,
}

// === impl StoredDelivery ===

impl StoredDelivery {
    /// The delivery as it came to this route, and what was wrong.
    #[must_use]
    pub fn of(route: &str, request: &Request<Bytes>, why: String) -> Self {
        Self {
            head: Head {
                route: route.into(),
                method: request.method().to_string(),
                path: path_and_query(request).into(),
                headers: harmless(request.headers()),
                why,
            },
            body: request.body().clone(),
        }
    }

    /// The bytes that a store keeps.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let head = serde_json::to_vec(&self.head).expect("strings always encode");
        let mut out = BytesMut::with_capacity(5 + head.len() + self.body.len());
        out.put_u8(VERSION);
        out.put_u32(u32::try_from(head.len()).expect("headers are bounded far below 4 GiB"));
        out.put_slice(&head);
        out.put_slice(&self.body);
        out.freeze()
    }

    /// Reads what a store kept.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not a delivery of a version this build knows.
    pub fn decode(bytes: &Bytes) -> Result<Self, Error> {
        let wrong = |what: &str| Error::corrupt(format!("a letter {what}; it is left as it is"));
        let Some((&[version, a, b, c, d], rest)) = bytes.split_first_chunk::<5>() else {
            return Err(wrong("is too short"));
        };
        if version != VERSION {
            return Err(wrong("has a version that this build does not read"));
        }
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        let (head, body) = rest
            .split_at_checked(length)
            .ok_or_else(|| wrong("is cut off"))?;
        Ok(Self {
            head: serde_json::from_slice(head).map_err(|_| wrong("has a bad head"))?,
            body: bytes.slice_ref(body),
        })
    }

    /// The request, to be sent through the gate again.
    ///
    /// # Errors
    /// `Corrupt` when what was kept is not a request.
    pub fn request(&self) -> Result<Request<Bytes>, Error> {
        let wrong =
            |what: &str| Error::corrupt(format!("a letter has a bad {what}; it is left as it is"));
        let mut request = Request::new(self.body.clone());
        for (name, value) in &self.head.headers {
            let name: HeaderName = name.parse().map_err(|_| wrong("header name"))?;
            let value =
                HeaderValue::from_bytes(&bytes_of(value)).map_err(|_| wrong("header value"))?;
            request.headers_mut().append(name, value);
        }
        let method = Method::from_bytes(self.head.method.as_bytes());
        *request.method_mut() = method.map_err(|_| wrong("method"))?;
        *request.uri_mut() = self.head.path.parse::<Uri>().map_err(|_| wrong("path"))?;
        Ok(request)
    }
}

/// Whether a header of this name, in lower case, proves who somebody is.
pub(crate) fn is_credential(name: &str) -> bool {
    CREDENTIALS.contains(&name)
}

fn harmless(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .filter(|(name, _)| !is_credential(name.as_str()))
        .map(|(name, value)| (name.to_string(), text_of(value.as_bytes())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_keeps_the_delivery_without_credentials() {
        let request = Request::post("/charge?x=1")
            .header("x-cloudtasks-taskname", "t1")
            .header("authorization", "Bearer secret")
            .body(Bytes::from_static(b"{}"))
            .unwrap();
        let bytes = StoredDelivery::of("charge", &request, "it failed".into()).encode();
        let kept = StoredDelivery::decode(&bytes).unwrap();
        let back = kept.request().unwrap();
        assert_eq!(
            (back.method(), back.uri(), back.body()),
            (request.method(), request.uri(), request.body())
        );
        assert_eq!(back.headers().len(), 1);
        assert!(!String::from_utf8_lossy(&bytes).contains("secret"));
        assert!(StoredDelivery::decode(&bytes.slice(..9)).is_err());
    }
}
