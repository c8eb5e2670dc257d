//! There is no way around a protected path, although everything else is passed.

use crate::support::client::exchange;
use crate::support::{Bed, Handler, Seen, Sender, route};
use semel_gate::path::PathAllowance;
use semel_gate::settings::{Pass, Settings};
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
            let upstream = settings.routes[0].upstream.clone();
            let here = |name: &str, path: &str| {
                let mut route = route(name, path, address);
                route.upstream = upstream.clone();
                route
            };
            settings.routes = vec![
                here("charge", "/charge"),
                route("refund", "/orders/refund", address),
                here("orders", "/orders/*"),
                here("static", "/static/*"),
                here("me", "/@me"),
            ];
            settings.pass = Some(Pass {
                paths: vec!["/*".parse().unwrap()],
                upstream,
            });
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
    pub(crate) async fn post(&self, target: &[u8]) -> (String, Option<Seen>) {
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
        match must {
            Must::Protect(canonical) => {
                assert_eq!(
                    (path, protected),
                    (Some(canonical), true),
                    "{shown}: {reply}"
                );
                assert!(!is_refund, "{shown}");
            }
            Must::Refund(canonical) => {
                assert_eq!(
                    (path, protected),
                    (Some(canonical), true),
                    "{shown}: {reply}"
                );
                assert!(is_refund, "{shown}");
            }
            Must::Pass(canonical) => {
                assert_eq!(
                    (path, protected),
                    (Some(canonical), false),
                    "{shown}: {reply}"
                );
            }
            Must::Refuse => {
                assert_eq!(path, None, "{shown}: {reply}");
                assert!(reply.starts_with("HTTP/1.1 400"), "{shown}: {reply}");
                assert!(
                    reply.contains("errors.md#ambiguous-path"),
                    "{shown}: {reply}"
                );
            }
            Must::RefuseSomehow => {
                assert_eq!(path, None, "{shown}: {reply}");
                assert!(reply.starts_with("HTTP/1.1 4"), "{shown}: {reply}");
            }
        }
    }
}

const TABLE: &[(&[u8], Must)] = &[
    (b"/charge", Must::Protect("/charge")),
    (b"/%63harge", Must::Protect("/charge")),
    (b"/%63%68%61%72%67%65", Must::Protect("/charge")),
    (b"/charge?", Must::Protect("/charge?")),
    (
        b"/charge?a=%63&b=;/../",
        Must::Protect("/charge?a=%63&b=;/../"),
    ),
    (b"/charge#x", Must::Protect("/charge")),
    (b"http://gate/charge", Must::Protect("/charge")),
    (b"http://gate/%63harge?x", Must::Protect("/charge?x")),
    (b"/%40me", Must::Refuse),
    (b"/@me", Must::Protect("/@me")),
    (b"/charge/", Must::Refuse),
    (b"/charge//", Must::Refuse),
    (b"/charge/.", Must::Refuse),
    (b"/charge/x/..", Must::Refuse),
    (b"/charge;x=1", Must::Refuse),
    (b"/charge%3bx=1", Must::Refuse),
    (b"/;x/charge", Must::Refuse),
    (b"/x/..;/charge", Must::Refuse),
    (b"/x/%2e%2e;/charge", Must::Refuse),
    (b"/x/..%3b/charge", Must::Refuse),
    (b"/x/../charge", Must::Refuse),
    (b"/x/%2E./charge", Must::Refuse),
    (b"/x/..%2fcharge", Must::Refuse),
    (b"/x/..\\charge", Must::Refuse),
    (b"/x/..%5Ccharge", Must::Refuse),
    (b"/./charge", Must::Refuse),
    (b"/.%00./charge", Must::Refuse),
    (b"//charge", Must::Refuse),
    (b"///charge", Must::Refuse),
    (b"//gate/charge", Must::Refuse),
    (b"/\\charge", Must::Refuse),
    (b"\\charge", Must::RefuseSomehow),
    (b"/CHARGE", Must::Refuse),
    (b"/Charge", Must::Refuse),
    (b"/%43harge", Must::Refuse),
    (b"/charge%2f", Must::Refuse),
    (b"/charge%2Fx", Must::Refuse),
    (b"/%2fcharge", Must::Refuse),
    (b"/charge%5c", Must::Refuse),
    (b"/charge%00", Must::Refuse),
    (b"/charge%00.svg", Must::Refuse),
    (b"/charge%0a", Must::Refuse),
    (b"/charge%09", Must::Refuse),
    (b"/charge%20", Must::Refuse),
    (b"/%20charge", Must::Refuse),
    (b"/charge.", Must::Refuse),
    (b"/charge%2e", Must::Refuse),
    (b"/charge%3Fx", Must::Refuse),
    (b"/charge%23x", Must::Refuse),
    (b"/charge%", Must::Refuse),
    (b"/charge%zz", Must::Refuse),
    (b"/%u0063harge", Must::Refuse),
    (b"/%2563harge", Must::Refuse),
    (b"/%25%36%33harge", Must::Refuse),
    (b"/charge%C0%80", Must::Refuse),
    (b"/%C1%A3harge", Must::Refuse),
    (b"/%E0%81%A3harge", Must::Refuse),
    (b"/charge%FF", Must::Refuse),
    (b"/charge%C2%A0", Must::Refuse),
    ("/\u{FF43}harge".as_bytes(), Must::Refuse),
    (b"/%EF%BD%83harge", Must::Refuse),
    (b"/%EF%BC%8Fcharge", Must::Refuse),
    (b"/charge\t", Must::RefuseSomehow),
    (b"/charge\0", Must::RefuseSomehow),
    (b"/char\xE7e", Must::RefuseSomehow),
    (b"charge", Must::RefuseSomehow),
    (b"*", Must::RefuseSomehow),
    (b"?x", Must::RefuseSomehow),
    (b"gate:80", Must::RefuseSomehow),
    (b"http://elsewhere/charge", Must::RefuseSomehow),
    (b"http://user@gate/charge", Must::RefuseSomehow),
    // Other routes.
    (b"/orders/refund", Must::Refund("/orders/refund")),
    (b"/orders/%72efund", Must::Refund("/orders/refund")),
    (b"/orders/Refund", Must::Refuse),
    (b"/orders/refund/", Must::Refuse),
    (b"/orders/refund;x", Must::Refuse),
    (b"/orders/7", Must::Protect("/orders/7")),
    (b"/%6Frders/7", Must::Protect("/orders/7")),
    (b"/orders/caf%c3%a9", Must::Protect("/orders/caf%C3%A9")),
    (
        "/orders/caf\u{e9}".as_bytes(),
        Must::Protect("/orders/caf%C3%A9"),
    ),
    (b"/orders/a%20b", Must::Protect("/orders/a%20b")),
    (b"/orders/%7bid%7d", Must::Protect("/orders/%7Bid%7D")),
    (b"/orders/{id}", Must::Protect("/orders/%7Bid%7D")),
    (b"/orders/", Must::Protect("/orders/")),
    (b"/orders", Must::Refuse),
    (b"/Orders/x", Must::Refuse),
    (b"/ORDERS", Must::Refuse),
    (b"/orders;v=1/x", Must::Refuse),
    (b"/orders%2Fx", Must::Refuse),
    (b"/orders%5Cx", Must::Refuse),
    (b"/orders//x", Must::Refuse),
    (b"/orders/a%2Fb", Must::Refuse),
    (b"/orders/%2e%2e/charge", Must::Refuse),
    ("/\u{17F}tatic/x".as_bytes(), Must::Refuse),
    (b"/%C5%BFtatic/x", Must::Refuse),
    (b"/STATIC/x", Must::Refuse),
    // What is passed is canonical, too.
    (b"/", Must::Pass("/")),
    (b"http://gate", Must::Pass("/")),
    (b"http://gate?x=1", Must::Pass("/?x=1")),
    (b"/charges", Must::Pass("/charges")),
    (b"/%63harges?q=%63", Must::Pass("/charges?q=%63")),
    (b"/health%2dz", Must::Pass("/health-z")),
    (b"/a%c3%a9/b", Must::Pass("/a%C3%A9/b")),
    (b"/a;b", Must::Refuse),
    (b"/a//b", Must::Refuse),
    (b"/a%2fb", Must::Refuse),
    (b"/a/../b", Must::Refuse),
];

#[tokio::test]
async fn no_spelling_leads_around_a_protected_path() {
    let gate = Surrounded::new().await;
    for (target, must) in TABLE {
        gate.must(target, *must).await;
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
        (&b"/orders/a%2Fb"[..], Must::Protect("/orders/a%2Fb")),
        (b"/orders/a%5cb", Must::Protect("/orders/a%5Cb")),
        (b"/orders/a;v=1", Must::Protect("/orders/a;v=1")),
        (b"/orders//a", Must::Protect("/orders//a")),
        (b"/orders/what%3f", Must::Protect("/orders/what%3F")),
        // But never another route, never out of it, and nobody else.
        (b"/orders/refund;x", Must::Refuse),
        (b"/orders/refund%2F", Must::Refuse),
        (b"/orders//refund", Must::Refuse),
        (b"/orders/refund%3Fx", Must::Refuse),
        (b"/orders/..%2Fcharge", Must::Refuse),
        (b"/orders/..;/charge", Must::Refuse),
        (b"/orders/x%2f..%2f..%2fcharge", Must::Refuse),
        (b"/orders/%252e%252e/charge", Must::Refuse),
        (b"/orders;x/a", Must::Refuse),
        (b"/static/a;v=1", Must::Refuse),
        (b"/other/a;v=1", Must::Refuse),
    ] {
        gate.must(target, must).await;
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
    gate.must(b"/orders", Must::Pass("/orders")).await;
    gate.must(b"/Orders", Must::Refuse).await;
    // One path is another matter: it is always the route's.
    gate.must(b"/charge/", Must::Refuse).await;
}

#[tokio::test]
async fn a_method_that_a_route_does_not_take_is_passed_in_any_spelling() {
    let gate = Surrounded::with(|settings| {
        settings.routes[0].methods = vec![http::Method::PUT];
    })
    .await;
    gate.must(b"/charge", Must::Pass("/charge")).await;
    gate.must(b"/charge/", Must::Pass("/charge/")).await;
}
