//! There is no way around a protected path, although everything else is passed.

use crate::support::prelude::*;
use crate::support::wire::RawReply;
use Must::{Pass, Protect, Refund, Refuse, RefuseSomehow};
use semel_gate::path::PathAllowance;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A gate that protects some paths and passes all others to the same handler.
pub(crate) struct Surrounded {
    pub(crate) bed: Bed,
    /// The handler of `/orders/refund` only.
    refunds: Handler,
    sent: AtomicUsize,
}

/// What must become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Must {
    /// Protected, and forwarded with this target.
    Protect(&'static str),
    /// The same, on the route of `/orders/refund`.
    Refund(&'static str),
    /// Passed with this target.
    Pass(&'static str),
    /// Refused as ambiguous.
    Refuse,
    /// Refused, by whoever finds it first.
    RefuseSomehow,
}

// === impl Surrounded ===

impl Surrounded {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let refunds = Handler::start().await;
        let address = refunds.address;
        let bed = Bed::with(|settings| {
            pass(settings, &["/*"]);
            let here = |name: &str, path: &str| Route {
                upstream: settings.routes[0].upstream.clone(),
                ..route(name, path, address)
            };
            settings.routes = vec![
                here("charge", "/charge"),
                route("refund", "/orders/refund", address),
                here("orders", "/orders/*"),
                here("static", "/static/*"),
                here("me", "/@me"),
            ];
            change(settings);
        })
        .await;
        Self {
            bed,
            refunds,
            sent: AtomicUsize::new(0),
        }
    }

    /// Sends a delivery with this target, byte for byte; the reply, and what the handler saw.
    pub(crate) async fn post(&self, target: &[u8]) -> (RawReply, Option<Seen>) {
        let name = self.sent.fetch_add(1, Ordering::SeqCst);
        let before = (self.bed.runs(), self.refunds.count());
        let head = format!(
            " HTTP/1.1\r\nhost: gate\r\nx-cloudtasks-queuename: q\r\nx-cloudtasks-taskname: {name}\r\n\
             content-length: 2\r\n\r\n{{}}"
        );
        let raw = [b"POST ", target, head.as_bytes()].concat();
        let reply = exchange(self.bed.gate, &raw).await;
        let seen = if self.bed.runs() > before.0 {
            Some(self.bed.handler.arrived().await)
        } else if self.refunds.count() > before.1 {
            Some(self.refunds.arrived().await)
        } else {
            None
        };
        (reply, seen)
    }

    async fn must(&self, target: &[u8], must: Must) {
        let refunds = self.refunds.count();
        let (reply, seen) = self.post(target).await;
        let shown = target.escape_ascii();
        let is_refund = self.refunds.count() > refunds;
        let path = seen.as_ref().map(|seen| seen.path.as_str());
        let protected = seen
            .as_ref()
            .is_some_and(|seen| seen.header("semel-key").is_some());
        let expected = match must {
            Protect(canonical) => (Some(canonical), true, false),
            Refund(canonical) => (Some(canonical), true, true),
            Pass(canonical) => (Some(canonical), false, is_refund),
            Refuse | RefuseSomehow => (None, false, false),
        };
        let seen = (path, protected, is_refund);
        assert_eq!(seen, expected, "{shown}: {reply}");
        if must == Refuse {
            reply.is_problem(shown, 400, "ambiguous-path");
        } else if must == RefuseSomehow {
            assert!(reply.starts_with("HTTP/1.1 4"), "{shown}: {reply}");
        }
    }
}

const TABLE: &[(&[u8], Must)] = &[
    (b"/charge", Protect("/charge")),
    (b"/%63harge", Protect("/charge")),
    (b"/%63%68%61%72%67%65", Protect("/charge")),
    (b"/charge?", Protect("/charge?")),
    (b"/charge?a=%63&b=;/../", Protect("/charge?a=%63&b=;/../")),
    (b"/charge#x", Protect("/charge")),
    (b"http://gate/charge", Protect("/charge")),
    (b"http://gate/%63harge?x", Protect("/charge?x")),
    (b"/@me", Protect("/@me")),
    (b"\\charge", RefuseSomehow),
    ("/\u{FF43}harge".as_bytes(), Refuse),
    (b"/charge\t", RefuseSomehow),
    (b"/charge\0", RefuseSomehow),
    (b"/char\xE7e", RefuseSomehow),
    (b"charge", RefuseSomehow),
    (b"*", RefuseSomehow),
    (b"?x", RefuseSomehow),
    (b"gate:80", RefuseSomehow),
    (b"http://elsewhere/charge", RefuseSomehow),
    (b"http://user@gate/charge", RefuseSomehow),
    // Other routes.
    (b"/orders/refund", Refund("/orders/refund")),
    (b"/orders/%72efund", Refund("/orders/refund")),
    (b"/orders/7", Protect("/orders/7")),
    (b"/%6Frders/7", Protect("/orders/7")),
    (b"/orders/caf%c3%a9", Protect("/orders/caf%C3%A9")),
    ("/orders/caf\u{e9}".as_bytes(), Protect("/orders/caf%C3%A9")),
    (b"/orders/a%20b", Protect("/orders/a%20b")),
    (b"/orders/%7bid%7d", Protect("/orders/%7Bid%7D")),
    (b"/orders/{id}", Protect("/orders/%7Bid%7D")),
    (b"/orders/", Protect("/orders/")),
    ("/\u{17F}tatic/x".as_bytes(), Refuse),
    // What is passed is canonical, too.
    (b"/", Pass("/")),
    (b"http://gate", Pass("/")),
    (b"http://gate?x=1", Pass("/?x=1")),
    (b"/charges", Pass("/charges")),
    (b"/%63harges?q=%63", Pass("/charges?q=%63")),
    (b"/health%2dz", Pass("/health-z")),
    (b"/a%c3%a9/b", Pass("/a%C3%A9/b")),
];

/// Paths that some handler could read as a protected one, or read in two ways.
const REFUSED: &str = r"
    /%40me /charge/ /charge// /charge/. /charge/x/.. /charge;x=1 /charge%3bx=1 /;x/charge
    /x/..;/charge /x/%2e%2e;/charge /x/..%3b/charge /x/../charge /x/%2E./charge /x/..%2fcharge
    /x/..\charge /x/..%5Ccharge /./charge /.%00./charge //charge ///charge //gate/charge
    /\charge /CHARGE /Charge /%43harge /charge%2f /charge%2Fx /%2fcharge /charge%5c /charge%00
    /charge%00.svg /charge%0a /charge%09 /charge%20 /%20charge /charge. /charge%2e /charge%3Fx
    /charge%23x /charge% /charge%zz /%u0063harge /%2563harge /%25%36%33harge /charge%C0%80
    /%C1%A3harge /%E0%81%A3harge /charge%FF /charge%C2%A0 /%EF%BD%83harge /%EF%BC%8Fcharge
    /orders/Refund /orders/refund/ /orders/refund;x /orders /Orders/x /ORDERS /orders;v=1/x
    /orders%2Fx /orders%5Cx /orders//x /orders/a%2Fb /orders/%2e%2e/charge /%C5%BFtatic/x
    /STATIC/x /a;b /a//b /a%2fb /a/../b
";

#[tokio::test]
async fn no_spelling_leads_around_a_protected_path() {
    let gate = Surrounded::new().await;
    for (target, must) in TABLE {
        gate.must(target, *must).await;
    }
    for target in REFUSED.split_whitespace() {
        gate.must(target.as_bytes(), Refuse).await;
    }
}

#[tokio::test]
async fn two_spellings_of_one_path_are_one_piece_of_work() {
    let gate = Surrounded::new().await;
    let ask = |path: &str| Sender::Api.sends("k", "{}").path(path);
    gate.bed.ask(ask("/orders/caf%C3%A9?x=1")).await.is(200);
    for same in ["/orders/caf%c3%a9?x=1", "/%6Frders/c%61f%c3%A9?x=1"] {
        gate.bed.ask(ask(same)).await.is_replay(200);
    }
    let other = gate.bed.ask(ask("/orders/cafe?x=1")).await;
    other.is_problem(422, "mismatched");
    assert_eq!(gate.bed.runs(), 1);
}

#[tokio::test]
async fn options_of_the_whole_server_belong_to_no_route() {
    let gate = Surrounded::new().await;
    let reply = exchange(gate.bed.gate, b"OPTIONS * HTTP/1.1\r\nhost: gate\r\n\r\n").await;
    assert!(reply.contains("errors.md#unknown-path"), "{reply}");
    assert_eq!(gate.bed.runs(), 0);
}

#[tokio::test]
async fn a_route_below_a_path_may_allow_what_stays_below_it() {
    let gate = Surrounded::with(|settings| {
        settings.routes[2].path_allows = PathAllowance::ALL.to_vec();
    })
    .await;
    for (target, must) in [
        (&b"/orders/a%2Fb"[..], Protect("/orders/a%2Fb")),
        (b"/orders/a%5cb", Protect("/orders/a%5Cb")),
        (b"/orders/a;v=1", Protect("/orders/a;v=1")),
        (b"/orders//a", Protect("/orders//a")),
        (b"/orders/what%3f", Protect("/orders/what%3F")),
    ] {
        gate.must(target, must).await;
    }
    // But never another route, never out of it, and nobody else.
    let refused = r"
        /orders/refund;x /orders/refund%2F /orders//refund /orders/refund%3Fx
        /orders/..%2Fcharge /orders/..;/charge /orders/x%2f..%2f..%2fcharge
        /orders/%252e%252e/charge /orders;x/a /static/a;v=1 /other/a;v=1
    ";
    for target in refused.split_whitespace() {
        gate.must(target.as_bytes(), Refuse).await;
    }
}

#[tokio::test]
async fn what_is_passed_by_its_very_name_is_passed() {
    let gate = Surrounded::with(|settings| {
        let paths = &mut settings.pass.as_mut().unwrap().paths;
        paths.push("/orders".parse().unwrap());
        paths.push("/charge/".parse().unwrap());
    })
    .await;
    gate.must(b"/orders", Pass("/orders")).await;
    gate.must(b"/Orders", Refuse).await;
    // One path is another matter: it is always the route's.
    gate.must(b"/charge/", Refuse).await;
}

#[tokio::test]
async fn a_method_that_a_route_does_not_take_is_passed_in_any_spelling() {
    let gate = Surrounded::with(|settings| {
        settings.routes[0].methods = vec![http::Method::PUT];
    })
    .await;
    gate.must(b"/charge", Pass("/charge")).await;
    gate.must(b"/charge/", Pass("/charge/")).await;
}

#[tokio::test]
async fn a_name_in_braces_takes_one_name_and_no_other_spelling_leads_around_it() {
    let gate = Surrounded::with(|settings| {
        let upstream = settings.routes[0].upstream.clone();
        let open = |name: &str, path: &str| Route {
            upstream: upstream.clone(),
            ..route(name, path, ([127, 0, 0, 1], 9).into())
        };
        settings.routes.insert(0, open("pay", "/users/{id}/pay"));
        settings.routes.push(open("files", "/files/{id}/*"));
        settings.routes[3].path_allows = PathAllowance::ALL.to_vec();
    })
    .await;
    for (target, must) in [
        (&b"/users/7/pay"[..], Protect("/users/7/pay")),
        (b"/users/a%20b/pay?x=1", Protect("/users/a%20b/pay?x=1")),
        (b"/users/{id}/pay", Protect("/users/%7Bid%7D/pay")),
        (b"/%75sers/%37/p%61y", Protect("/users/7/pay")),
        (b"/users/7", Pass("/users/7")),
        (b"/users/7/8/pay", Pass("/users/7/8/pay")),
        (b"/users/pay", Pass("/users/pay")),
        (b"/files/7/", Protect("/files/7/")),
        (b"/files/7/a/b", Protect("/files/7/a/b")),
    ] {
        gate.must(target, must).await;
    }
    let refused = r"
        /users/7/pay/ /users/7/PAY /USERS/7/pay /users/7/pay. /users/7;x/pay /users/7%2Fpay /users//7/pay
        /users/7/8/../pay /users/7/pay%20 /users/7/pay%3Fx /users/a%2Fb/pay /Files/7/a /files/7
    ";
    for target in refused.split_whitespace() {
        gate.must(target.as_bytes(), Refuse).await;
    }
}
