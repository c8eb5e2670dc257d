//! Channel binding: the digest of the server's certificate (`tls-server-end-point`, RFC 5929), by which
//! SCRAM notices somebody in between who has another one.

use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};

/// The tag of an object identifier.
const OBJECT_IDENTIFIER: u8 = 6;

/// Which digest goes with which signature, by the bytes of its object identifier. For MD5 and SHA-1 it is
/// SHA-256; signatures without a digest of their own (Ed25519) have none.
const DIGESTS: [(&[u8], &Algorithm); 9] = [
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x04", &SHA256), // md5WithRSAEncryption
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05", &SHA256), // sha1WithRSAEncryption
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b", &SHA256), // sha256WithRSAEncryption
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c", &SHA384), // sha384WithRSAEncryption
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d", &SHA512), // sha512WithRSAEncryption
    (b"\x2a\x86\x48\xce\x3d\x04\x01", &SHA256),         // ecdsa-with-SHA1
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x02", &SHA256),     // ecdsa-with-SHA256
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x03", &SHA384),     // ecdsa-with-SHA384
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x04", &SHA512),     // ecdsa-with-SHA512
];

/// One element of DER.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    after: &'a [u8],
}

/// The digest of a certificate; none when its signature says of none.
pub(crate) fn server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let whole = Element::read(certificate)?;
    let signed = Element::read(whole.content)?;
    let algorithm = Element::read(signed.after)?;
    let identifier = Element::read(algorithm.content)?;
    if identifier.tag != OBJECT_IDENTIFIER {
        return None;
    }
    let (_, algorithm) = DIGESTS.iter().find(|(oid, _)| *oid == identifier.content)?;
    Some(digest(algorithm, certificate).as_ref().to_vec())
}

// === impl Element ===

impl<'a> Element<'a> {
    fn read(der: &'a [u8]) -> Option<Self> {
        let (&[tag, first], rest) = der.split_first_chunk::<2>()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let length = bytes
                    .iter()
                    .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
                (length, rest)
            }
            _ => return None,
        };
        let (content, after) = rest.split_at_checked(length)?;
        Some(Self {
            tag,
            content,
            after,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate as far as anybody looks: something signed, and by which algorithm.
    fn certificate(oid: &[u8]) -> Vec<u8> {
        let signed = [&[0x30, 0x81, 200][..], &[7; 200]].concat();
        let identifier = [&[OBJECT_IDENTIFIER, u8::try_from(oid.len()).unwrap()], oid].concat();
        let algorithm = [
            &[0x30, u8::try_from(identifier.len()).unwrap()][..],
            &identifier,
        ]
        .concat();
        let content = [signed, algorithm].concat();
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[0x30, 0x82][..], &length, &content].concat()
    }

    #[test]
    fn the_signature_says_which_digest() {
        for (oid, algorithm) in DIGESTS {
            let der = certificate(oid);
            let expected = digest(algorithm, &der);
            assert_eq!(server_end_point(&der).unwrap(), expected.as_ref());
        }
        // Ed25519.
        assert_eq!(server_end_point(&certificate(b"\x2b\x65\x70")), None);
    }

    #[test]
    fn what_is_cut_or_something_else_has_none() {
        let whole = certificate(DIGESTS[2].0);
        for end in 0..whole.len() {
            assert_eq!(server_end_point(&whole[..end]), None, "{end}");
        }
        assert_eq!(server_end_point(b"\x30\x85\x01\x01\x01\x01\x01"), None);
    }
}
