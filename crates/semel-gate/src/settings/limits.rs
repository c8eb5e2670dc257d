//! Limits of patience and of shares: what keeps one sender from taking all of a gate.

use std::time::Duration;

/// What a connection and a body may take. Each default has its reason; tests shorten them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a connection may take to send the head of a request, counted from its first moment
    /// (silence and half a preface included) or, in HTTP/1, from the end of the last answer.
    /// 10 s: a head is one packet; a phone on a bad line needs one or two retransmissions.
    pub head_within: Duration,
    /// How long a connection may be kept without a request in hand. 60 s: load balancers and clients
    /// that reuse connections do so within a minute.
    pub idle_max: Duration,
    /// How long a client may leave the next piece of its answer (64 KiB at the most) unread. 30 s:
    /// about 2 KiB/s, less than any line that carried the request.
    pub answer_idle_max: Duration,
    /// How often an HTTP/2 client is asked whether it is still there, and how long it may take to say
    /// so: a client that vanished must not hold its streams until its handlers end.
    pub ping_every: Duration,
    /// See `ping_every`.
    pub ping_within: Duration,
    /// How long a sender may keep the next piece of a body to itself.
    pub body_idle_max: Duration,
    /// How long a sender may take over a whole body. 120 s: the largest one by default, 16 MiB, at a
    /// little over 1 Mbit/s.
    pub body_within: Duration,
    /// The bytes per second that a body must come with, once `body_slow_for` is used up. 1 KiB/s:
    /// slower than a modem, and 1000 times faster than an attack by single bytes.
    pub body_bytes_per_second_min: u32,
    /// How long a body may be slower than that.
    pub body_slow_for: Duration,
    /// How long a handler may neither take nor say anything about a request that is passed on: before the head
    /// of its answer, and between two pieces of it. Protected runs have their `timeout` instead, up to where an
    /// answer is larger than what is kept. 60 s: what
    /// common proxies allow; a client that hung up may be invisible, and holds its place no longer than this.
    pub handler_silence_max: Duration,
    /// How long a body may wait for room before it is refused: as long as other bodies usually stay,
    /// and well below any sender's deadline.
    pub room_within: Duration,
    /// One connection, and one address, may hold one part in so many of what all share.
    /// 4: an attacker needs four addresses to slow others down, and a client behind a NAT still has
    /// a quarter of everything.
    pub parts: usize,
    /// The most connections at once to the admin address: health checks, Prometheus, operators. They
    /// are counted apart, so that a flood of deliveries leaves them their place.
    pub admin_connections_max: usize,
    /// The most connections at once for steps: handlers in hand, a few each.
    pub steps_connections_max: usize,
    /// How long fetching an issuer's key set may take. 5 s: a document of a few KiB.
    pub keys_within: Duration,
    /// How often a key set is fetched at the most, once there is one. 60 s: tokens with made-up key ids cost the issuer
    /// one request a minute, and a new key is found within that time.
    pub keys_every: Duration,
    /// How often it is asked for while there is none.
    pub keys_retry_every: Duration,
    /// How long a key set is used after it was fetched while no other can be had. 24 h: an outage of the issuer stops
    /// nobody, and a key that was withdrawn is not trusted for longer than a day.
    pub keys_kept_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_within: Duration::from_secs(10),
            idle_max: Duration::from_secs(60),
            answer_idle_max: Duration::from_secs(30),
            ping_every: Duration::from_secs(20),
            ping_within: Duration::from_secs(10),
            body_idle_max: Duration::from_secs(10),
            body_within: Duration::from_secs(120),
            body_bytes_per_second_min: 1024,
            body_slow_for: Duration::from_secs(10),
            handler_silence_max: Duration::from_secs(60),
            room_within: Duration::from_secs(2),
            parts: 4,
            admin_connections_max: 64,
            steps_connections_max: 256,
            keys_within: Duration::from_secs(5),
            keys_every: Duration::from_secs(60),
            keys_retry_every: Duration::from_secs(1),
            keys_kept_max: Duration::from_secs(24 * 3600),
        }
    }
}

impl Limits {
    /// The part of `all` that one connection or one address may hold.
    pub(crate) fn part(&self, all: usize) -> usize {
        (all / self.parts.max(1)).max(1)
    }
}
