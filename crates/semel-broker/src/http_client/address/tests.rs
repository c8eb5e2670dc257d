use super::*;

#[test]
fn private_and_loopback_addresses_are_called() {
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "8.8.8.8",
        "169.253.255.255",
        "169.255.0.0",
        "::1",
        "::ffff:127.0.0.1",
        "fd00::1",
        "fd12:3456::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "64:ff9b::808:808",
    ] {
        assert_eq!(refuse(address.parse().unwrap()), None, "{address}");
    }
}

#[test]
fn each_refusal_has_its_reason() {
    for (address, refused) in [
        ("169.254.0.0", Refused::LinkLocal),
        ("169.254.255.255", Refused::LinkLocal),
        ("febf:ffff::1", Refused::LinkLocal),
        ("100.100.100.200", Refused::Metadata),
        ("fd00:ec2::254", Refused::Metadata),
        ("fd20:ce::254", Refused::Metadata),
        ("0.0.0.0", Refused::Unspecified),
        ("::", Refused::Unspecified),
        ("239.255.255.255", Refused::Multicast),
        ("ff02::1", Refused::Multicast),
        ("255.255.255.255", Refused::Broadcast),
    ] {
        assert_eq!(refuse(address.parse().unwrap()), Some(refused), "{address}");
    }
}

#[test]
fn names_are_refused_in_any_spelling() {
    for name in [
        "metadata",
        "METADATA.",
        "Metadata.Google.Internal.",
        "metadata.goog",
    ] {
        assert_eq!(refuse_name(name), Some(Refused::Metadata), "{name}");
    }
    for name in ["localhost", "metadata.example.com", "my-metadata", "."] {
        assert_eq!(refuse_name(name), None, "{name}");
    }
}
