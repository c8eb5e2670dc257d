//! Files of certificates and keys: good, broken, swapped, and replaced while they are used.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use rustls::pki_types::UnixTime;
use semel_tls::{IdentityFiles, Roots, ServerIdentity, Verify, client_config};
use std::fs;
use std::path::Path;
use testbed::{Certificate, Certificates, Validity};

fn files(certificate: &Certificate) -> IdentityFiles {
    IdentityFiles {
        certificate: certificate.certificate.clone(),
        key: certificate.key.clone(),
    }
}

#[test]
fn a_certificate_out_of_its_time_is_noticed() {
    let ca = Certificates::new().unwrap();
    for (validity, noticed) in [
        (Validity::Now, false),
        (Validity::Expired, true),
        (Validity::Later, true),
    ] {
        let issued = ca.issue("one", "DNS:localhost", validity).unwrap();
        let identity = ServerIdentity::read(files(&issued)).unwrap();
        let why = identity.out_of_time(UnixTime::now());
        assert_eq!(why.is_some(), noticed, "{why:?}");
    }
}

#[test]
fn a_pipe_is_not_waited_for() {
    let ca = Certificates::new().unwrap();
    let mut issued = ca.issue("one", "DNS:localhost", Validity::Now).unwrap();
    let pipe = ca.root().with_file_name("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    issued.certificate = pipe;
    let error = ServerIdentity::read(files(&issued)).unwrap_err();
    assert!(error.to_string().contains("it is not a file"), "{error}");
}

#[test]
fn what_is_wrong_with_a_file_is_said_and_never_what_is_in_it() {
    let ca = Certificates::new().unwrap();
    let one = ca.issue("one", "DNS:localhost", Validity::Now).unwrap();
    let two = ca.issue("two", "DNS:localhost", Validity::Now).unwrap();
    let secret = "c2VjcmV0c2VjcmV0";
    let block =
        |kind: &str, text: &str| format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n");
    let write = |name: &str, text: &str| ca.write(name, text).unwrap();
    let cases = [
        (
            Path::new("/no/c.pem").to_owned(),
            one.key.clone(),
            "/no/c.pem cannot be read",
        ),
        (write("a.pem", ""), one.key.clone(), "holds no certificate"),
        (
            write("b.pem", "-----BEGIN CERTIFICATE-----\n"),
            one.key.clone(),
            "is not PEM: a section has no end;",
        ),
        (
            write("c.pem", &block("CERTIFICATE", secret)),
            one.key.clone(),
            "cannot be used",
        ),
        (
            one.certificate.clone(),
            ca.root(),
            "holds no private key that is not encrypted",
        ),
        (
            one.certificate.clone(),
            write("d.pem", &block("PRIVATE KEY", secret)),
            "cannot be used",
        ),
        (
            one.certificate.clone(),
            write("e.pem", &block("ENCRYPTED PRIVATE KEY", secret)),
            "not encrypted",
        ),
        (
            one.certificate,
            two.key,
            "does not belong to the certificate",
        ),
    ];
    for (certificate, key, says) in cases {
        let identity = IdentityFiles { certificate, key };
        let error = ServerIdentity::read(identity.clone())
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{says}: {error}");
        assert!(!error.contains(secret), "{error}");
        // The same file is as useless to a client.
        let error = client_config(&Verify::Nothing, Some(&identity))
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    let empty = Verify::Full(Roots::File(write("f.pem", "")));
    let error = client_config(&empty, None).unwrap_err().to_string();
    assert!(error.contains("f.pem holds no certificate"), "{error}");
}

#[test]
fn replaced_files_are_taken_and_broken_ones_are_told_once() {
    let ca = Certificates::new().unwrap();
    let used = ca.issue("used", "DNS:localhost", Validity::Now).unwrap();
    let next = ca.issue("next", "DNS:localhost", Validity::Now).unwrap();
    let identity = ServerIdentity::read(files(&used)).unwrap();
    assert!(!identity.reload().unwrap());

    used.replace_by(&next).unwrap();
    assert!(identity.reload().unwrap());
    assert!(!identity.reload().unwrap());

    fs::write(&used.certificate, "half of a fi").unwrap();
    identity.reload().unwrap_err();
    assert!(!identity.reload().unwrap());
    fs::remove_file(&used.certificate).unwrap();
    identity.reload().unwrap_err();
    assert!(!identity.reload().unwrap());

    // The old certificate stayed, so that it is not a new one when its file is back.
    used.replace_by(&next).unwrap();
    assert!(!identity.reload().unwrap());
    let last = ca.issue("last", "DNS:localhost", Validity::Now).unwrap();
    used.replace_by(&last).unwrap();
    assert!(identity.reload().unwrap());
}
