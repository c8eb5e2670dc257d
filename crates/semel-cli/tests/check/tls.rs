//! TLS: what the gate would refuse at its start, `semel check` refuses.

use super::{Says, check, in_route, on_top, semel};
use std::path::Path;
use tempfile::TempDir;
use testbed::{Certificate, Certificates, Validity};

/// A store's URL, and what is said of it.
const STORES: [(&str, &str); 9] = [
    (
        "postgres://u:s3cret@h/d?sslmode=verify-full",
        "needs sslrootcert",
    ),
    (
        "postgres://u:s3cret@h/d?sslmode=maybe",
        "sslmode=maybe is not one of",
    ),
    (
        "postgres://u:s3cret@h/d?sslrootcert=/no/ca.pem",
        "/no/ca.pem cannot be read",
    ),
    ("postgres:///d?user=s3cret", "names no host"),
    (
        "rediss://u:s3cret@h?ssl_ca_certs=/no/ca.pem",
        "/no/ca.pem cannot be read",
    ),
    (
        "firestore://shop-prod?endpoint=http://10.0.0.1",
        "has no TLS",
    ),
    (
        "firestore://shop-prod?endpoint=https://u:s3cret@h",
        "has a user in it",
    ),
    (
        "firestore://shop-prod?ssl_ca_certs=/no/ca.pem",
        "/no/ca.pem cannot be read",
    ),
    (
        "rediss://u:s3cret@h?ssl_cert_reqs=none",
        "certificates are always checked",
    ),
];

/// What is wrong, for whom it says so, and where it stands.
fn cases(ca: &Certificates) -> Vec<(String, String)> {
    let shown = ca.issue("gate", "DNS:localhost", Validity::Now).unwrap();
    let other = ca.issue("gate", "DNS:localhost", Validity::Now).unwrap();
    let (root, empty) = (ca.root(), ca.write("empty.pem", "").unwrap());
    let tls = |certificate: &Path, key: &Path| {
        let (certificate, key) = (certificate.display(), key.display());
        on_top(&format!(
            "tls_certificate = \"{certificate}\"\ntls_key = \"{key}\""
        ))
    };
    let https =
        |options: &str| in_route(&format!("upstream = \"https://localhost:3443\"\n{options}"));
    let says = |toml: String, says: &str| (toml, says.to_owned());
    vec![
        says(
            on_top("tls_key = \"/k.pem\""),
            "`tls_key` needs `tls_certificate`",
        ),
        says(
            on_top("tls_certificate = \"/c.pem\""),
            "`tls_certificate` needs `tls_key`",
        ),
        says(
            tls(Path::new("/no/c.pem"), &shown.key),
            "/no/c.pem cannot be read",
        ),
        says(tls(&empty, &shown.key), "empty.pem holds no certificate"),
        says(tls(&shown.certificate, &root), "holds no private key"),
        says(
            tls(&shown.certificate, &other.key),
            "does not belong to the certificate",
        ),
        says(
            https("upstream_ca = \"/no/ca.pem\""),
            "/no/ca.pem cannot be read",
        ),
        says(
            https(&format!("upstream_ca = \"{}\"", empty.display())),
            "holds no certificate",
        ),
        says(
            https("upstream_h2c = true"),
            "`upstream_h2c` is HTTP/2 without TLS",
        ),
        says(
            in_route("upstream_ca = \"/ca.pem\""),
            "`upstream_ca` is for https:// handlers",
        ),
    ]
}

#[test]
fn what_the_gate_would_refuse_is_refused_in_the_same_words() {
    let ca = Certificates::new().unwrap();
    let store =
        |(url, says): (&str, &str)| (on_top(&format!("store = \"{url}\"")), says.to_owned());
    for (toml, says) in cases(&ca).into_iter().chain(STORES.map(store)) {
        let checked = check(&toml).refused();
        assert!(checked.contains(&says), "{says}: {checked}");
        assert!(!checked.contains("s3cret"), "{checked}");
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("semel.toml"), &toml).unwrap();
        let started = semel(directory.path(), "gate", &[]).refused();
        assert_eq!(started, checked, "{toml}");
    }
}

#[test]
fn a_store_is_not_a_file() {
    let toml = on_top("store = \"dir:/etc/passwd\"");
    check(&toml).refused().has("/etc/passwd is not a directory");
}

#[test]
fn good_files_are_good() {
    let ca = Certificates::new().unwrap();
    let shown = ca.issue("gate", "DNS:localhost", Validity::Now).unwrap();
    let Certificate { certificate, key } = &shown;
    let (certificate, key, root) = (certificate.display(), key.display(), ca.root());
    let root = root.display();
    let toml = on_top(&format!(
        "tls_certificate = \"{certificate}\"\ntls_key = \"{key}\"\nupstream_ca = \"{root}\"\n\
         store = \"postgres://h/d?sslmode=verify-full&sslrootcert={root}&sslcert={certificate}&sslkey={key}\""
    ))
    .replace("http://127.0.0.1:3000", "https://localhost:3443");
    check(&toml).good().lacks("out of its time");
    let expired = ca.issue("gate", "DNS:localhost", Validity::Expired);
    shown.replace_by(&expired.unwrap()).unwrap();
    let says = format!("warning  the certificate in {certificate} is out of its time");
    check(&toml).good().has(&says);
}
