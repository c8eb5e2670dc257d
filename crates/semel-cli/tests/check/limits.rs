//! What `semel check` says of times without end, of a gate that is its own handler, of bodies that are
//! large for their room, and of headers that name nobody.

use super::{Said, Says, check};

/// Lines of the top level, and of one route.
fn check_route(top: &str, route: &str) -> Said {
    check(&format!(
        "{top}\n[[route]]\nname = \"charge\"\npath = \"/charge\"\n{route}\n"
    ))
}

const UPSTREAM: &str = "upstream = \"http://127.0.0.1:3000\"";

#[test]
fn no_time_is_longer_than_a_record_is_kept() {
    for field in [
        "timeout",
        "lease",
        "deadline",
        "wait",
        "retention",
        "horizon",
        "max_backoff",
        "backoff",
    ] {
        for long in ["367d", "213503982334d", "18446744073709551615ms"] {
            let line = format!("{field} = {long:?}");
            let says = format!("`{field}`: {long:?} is too long: write 366d at the most");
            check_route(UPSTREAM, &line).ends(64, &says);
        }
    }
    check_route(&format!("{UPSTREAM}\ngrace = \"367d\""), "")
        .ends(64, "`grace`: \"367d\" is too long");
    check_route(&format!("{UPSTREAM}\ncache_ms = 9223372036854775807"), "")
        .ends(64, "`cache_ms` must be 31622400000 (366d) at the most");
}

#[test]
fn a_gate_is_not_its_own_handler() {
    let top = |listen: &str, upstream: &str| {
        format!("listen = \"{listen}\"\nupstream = \"http://{upstream}\"")
    };
    for (listen, upstream) in [
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("127.0.0.1:8080", "localhost:8080"),
        ("127.0.0.1:8080", "0.0.0.0:8080"),
        ("0.0.0.0:8080", "127.0.0.1:8080"),
        ("[::]:8080", "[::1]:8080"),
        ("127.0.0.1:80", "127.0.0.1"),
    ] {
        let says = format!("`upstream` leads to the gate's own `listen` {listen}");
        check_route(&top(listen, upstream), "").ends(64, &says);
    }
    let admin = format!("{UPSTREAM}\nadmin = \"127.0.0.1:3000\"");
    check_route(&admin, "").ends(64, "leads to the gate's own `admin` 127.0.0.1:3000");
    let of_a_route = "upstream = \"http://localhost:8080\"";
    check_route(UPSTREAM, of_a_route).ends(64, "the gate's own `listen`");
    check_route(&top("127.0.0.1:8080", "127.0.0.2:8080"), "").good();
    check_route(&top("0.0.0.0:8080", "handler:8080"), "").good();
}

#[test]
fn bodies_that_are_large_for_their_room_are_warned_of() {
    let says = "one connection, or one address, may hold more than a quarter";
    let room = |bytes: &str| format!("{UPSTREAM}\nbodies_bytes_max = {bytes}");
    let said = check_route(&room("1599"), "body_bytes_max = 100").good();
    said.has(says);
    let said = check_route(&room("1600"), "body_bytes_max = 100").good();
    said.lacks(says);
    assert!(!check_route(UPSTREAM, "").good().contains(says));
}

#[test]
fn headers_that_name_nobody_are_refused() {
    for caller in [
        "idempotency-key",
        "connection",
        "Content-Length",
        "Semel-Key",
    ] {
        let lines = format!("source = \"api\"\ncaller = \"header:{caller}\"");
        check_route(UPSTREAM, &lines).ends(64, "tells no callers apart: ");
    }
    for name in ["transfer-encoding", "content-length", "te", "semel-attempt"] {
        let says = format!("header:{name} cannot be part of a key: ");
        let lines = format!("source = \"pubsub\"\nkey = \"header:{name}\"");
        check_route(UPSTREAM, &lines).ends(64, &says);
    }
    let lines = "source = \"api\"\ncaller = \"header:x-client\"\nkey = \"header:x-order\"";
    check_route(UPSTREAM, lines).good();
}

#[test]
fn a_gate_is_not_called_as_an_act_is() {
    for name in ["release", "redrive", "resolve", "park", "release by night"] {
        let top = format!("{UPSTREAM}\nname = \"{name}\"");
        check_route(&top, "").ends(64, "`name` is the word of an operator's act");
    }
    for name in ["release-gate", "gate-7", "parking"] {
        let top = format!("{UPSTREAM}\nname = \"{name}\"");
        check_route(&top, "").ends(0, "");
    }
}
