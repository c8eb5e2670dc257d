//! What must hold for each route and each of its sources.

use super::{Finding, Judgement, Verdict, fingerprint, named, verify};
use crate::config::Platform;
use crate::config::sources::{SenderLimit, body_bytes_max_of, deadline_max, letters_bytes_min};
use crate::config::terms::{changed_by_copy, is_renamed, needs_memory, never_sought_horizon};
use crate::config::values::written;
use semel::key::Part;
use semel::store::RESULT_BYTES_MAX;
use semel_gate::settings::{
    Caller, DEADLINE_MARGIN, LetterLimits, OnExhausted, Route, Source, Terms, Webhook,
};

/// All findings about a route.
pub(super) fn check(
    route: &Route,
    bodies_bytes_max: usize,
    platform: Option<Platform>,
) -> Vec<Finding> {
    let mut found: Vec<_> = [
        body(route, bodies_bytes_max),
        callers(route),
        literal(route),
        named::caller(route),
        verify::caller(route),
        verify::issuer(route, platform),
        verify::webhook(route),
        verify::handshake(route),
        verify::unprotected(route),
        fingerprint::ignores(route, &route.sources),
        fingerprint::reading(route, bodies_bytes_max),
        part(route, bodies_bytes_max),
    ]
    .into_iter()
    .chain(recorded(route))
    .flatten()
    .map(|(verdict, says)| Finding::route(route, None, verdict, says))
    .collect();
    for source in route.sources.iter().copied() {
        let terms = route.terms(source);
        let said = [
            some_time(terms),
            too_long(source, route),
            largest_body(source, route),
            parts(source, terms),
            whole_body(source, terms),
            named::key(route, source),
            fingerprint::unwrapped(source, route),
        ];
        let said = said.into_iter().chain(remembered(route, source)).flatten();
        found
            .extend(said.map(|(verdict, says)| Finding::route(route, Some(source), verdict, says)));
    }
    found
}

/// What holds of a route's records and letters.
fn recorded(route: &Route) -> Vec<Judgement> {
    if !route.keeps_records() {
        return Vec::new();
    }
    vec![
        answer(route),
        doubt(route),
        undone(route),
        letters(route),
        quota(route),
    ]
}

/// The same for one of its sources.
fn remembered(route: &Route, source: Source) -> Vec<Judgement> {
    if !route.keeps_records() {
        return Vec::new();
    }
    let terms = route.terms(source);
    vec![
        lease(terms),
        horizon(source, route),
        dead_lettered(source, route),
        wait(source, terms),
        Some(renewal(terms)),
        Some(fingerprint::mismatch(source, route)),
    ]
}

/// Other routers' ways to name a part of a path are plain text here.
fn literal(route: &Route) -> Judgement {
    // Angle brackets are encoded in the one spelling of a path.
    let path = route.path.to_string();
    let path = path.replace("%3C", "<").replace("%3E", ">");
    let name = path.split('/').find_map(|segment| {
        let angled = segment
            .strip_prefix('<')
            .and_then(|it| it.strip_suffix('>'));
        segment
            .strip_prefix(':')
            .or(angled)
            .map(|name| (segment, name))
    });
    let (segment, name) = name?;
    let says = format!(
        "path {path}: {segment} is taken letter by letter; for any text there write {{{name}}}"
    );
    Some((Verdict::Warning, says))
}

pub(super) const fn proved_if(holds: bool) -> Verdict {
    if holds {
        Verdict::Proved
    } else {
        Verdict::Broken
    }
}

fn some_time(terms: &Terms) -> Judgement {
    let deadline = terms.deadline?;
    let says = format!(
        "deadline {} leaves no time for an answer: it must be longer than 1s",
        written(deadline)
    );
    Verdict::Broken.when(deadline <= DEADLINE_MARGIN, says)
}

fn lease(terms: &Terms) -> Judgement {
    let holds = terms.lease <= terms.retention;
    let (lease, retention) = (written(terms.lease), written(terms.retention));
    let says = if holds {
        format!("lease {lease} ≤ retention {retention}: no run outlives its record")
    } else {
        format!(
            "lease {lease} > retention {retention}: a run could outlive its record; lengthen retention or shorten lease"
        )
    };
    Some((proved_if(holds), says))
}

/// A sender cannot wait for longer than its own limit, so a longer deadline would prove what does not hold.
fn too_long(source: Source, route: &Route) -> Judgement {
    let (deadline, limit) = (route.terms(source).deadline?, deadline_max(source, route)?);
    let (verdict, remedy) = if limit.is_documented {
        (Verdict::Broken, "shorten it")
    } else {
        (Verdict::Warning, "make sure that yours waits that long")
    };
    let says = format!(
        "deadline {} > {}: {}; {remedy}",
        written(deadline),
        written(limit.most),
        limit.why
    );
    verdict.when(deadline > limit.most, says)
}

/// A larger body is refused before it has a name: no letter is kept of it.
fn largest_body(source: Source, route: &Route) -> Judgement {
    let one = route.body_bytes_max;
    let SenderLimit {
        most,
        is_documented,
        why,
    } = body_bytes_max_of(source)?;
    let verdict = match (route.promise, is_documented) {
        (Some(_), _) => Verdict::Broken,
        (None, true) => Verdict::Warning,
        (None, false) => Verdict::Note,
    };
    let says = format!(
        "body_bytes_max {one} < {most}: {source} may send {why}; a larger body is refused, and no letter is kept of it; raise \
         body_bytes_max to {most}"
    );
    verdict.when(one < most, says)
}

/// Clients that repeat themselves on purpose are taken for one that retries.
fn whole_body(source: Source, terms: &Terms) -> Judgement {
    let says = format!(
        "key = [\"body\"]: two equal, honest requests are one work for the retention {}; let clients send an Idempotency-Key, \
         or name the field that tells them apart",
        written(terms.retention)
    );
    Verdict::Warning.when(
        source == Source::Api && terms.key.parts() == [Part::Body],
        says,
    )
}

fn horizon(source: Source, route: &Route) -> Judgement {
    let terms = route.terms(source);
    let horizon = terms.horizon?;
    let (retention, again) = (written(terms.retention), written(horizon));
    if terms.retention >= horizon {
        let says = format!(
            "retention {retention} ≥ horizon {again}: the outcome is remembered as long as the sender may deliver again"
        );
        return Some((Verdict::Proved, says));
    }
    let verdict = if route.promise.is_some_and(needs_memory) {
        Verdict::Broken
    } else {
        Verdict::Note
    };
    let says = format!(
        "retention {retention} < horizon {again}: the sender may deliver again what was forgotten, and it would run again; \
         lengthen retention, or set {}",
        horizon_is(source, terms)
    );
    Some((verdict, says))
}

/// The sender's own settings that make its horizon shorter.
fn horizon_is(source: Source, terms: &Terms) -> String {
    let says = match source {
        Source::CloudTasks => {
            "horizon to the age at which your tasks are done or deleted, pauses of the queue included"
        }
        Source::PubSub if terms.sender_attempts.most.is_some() => {
            let never = written(never_sought_horizon(terms));
            return format!(
                "seek = \"never\" and retention to {never} if neither the subscription nor the dead-letter one is ever sought \
                 back, or horizon to the sum of their message retentions and retention to at least that"
            );
        }
        Source::PubSub => {
            "seek = \"never\" if the subscription is never sought back, or horizon to its message retention"
        }
        Source::Api | Source::CloudEvents | Source::Webhook(_) => {
            "horizon to how long the sender really tries, when that is shorter"
        }
    };
    says.into()
}

/// The copy in a dead-letter topic has another key, so it would be other work beside the letter of the first.
fn dead_lettered(source: Source, route: &Route) -> Judgement {
    let terms = route.terms(source);
    let part = changed_by_copy(source, terms)?;
    let says = format!(
        "on_exhausted = \"nack\" leaves exhausted messages to a dead-letter topic, and the key has {part}: the copy has \
         another one and would run again; key it by what it is about (key = \"/order_id\" or \"attribute:NAME\")"
    );
    // Not every sender of CloudEvents has such a topic.
    let has_topic = source == Source::PubSub || is_renamed(source, terms);
    Verdict::Broken.when(has_topic && route.on_exhausted == OnExhausted::Nack, says)
}

fn wait(source: Source, terms: &Terms) -> Judgement {
    let deadline = match source {
        Source::Api => return None,
        Source::CloudTasks | Source::PubSub | Source::CloudEvents | Source::Webhook(_) => {
            terms.deadline?
        }
    };
    let holds = terms.wait < deadline;
    let (wait, given_up) = (written(terms.wait), written(deadline));
    let says = if holds {
        format!("wait {wait} < deadline {given_up}: a waiting duplicate is answered in time")
    } else {
        format!(
            "wait {wait} ≥ deadline {given_up}: a waiting duplicate would be given up; shorten wait"
        )
    };
    Some((proved_if(holds), says))
}

fn renewal(terms: &Terms) -> (Verdict, String) {
    let until = written(terms.timeout.saturating_add(terms.lease));
    let says = format!(
        "renewal stops at timeout + lease: a handler that hangs holds its key for {until} at the most"
    );
    (Verdict::Note, says)
}

fn body(route: &Route, bodies_bytes_max: usize) -> Judgement {
    let one = route.body_bytes_max;
    let holds = one <= bodies_bytes_max;
    let says = if holds {
        format!("body_bytes_max {one} ≤ bodies_bytes_max {bodies_bytes_max}: the largest body fits")
    } else {
        format!(
            "body_bytes_max {one} > bodies_bytes_max {bodies_bytes_max}: the largest body would never find room; raise bodies_bytes_max"
        )
    };
    Some((proved_if(holds), says))
}

/// A part of the room is never less than four of the largest bodies.
fn part(route: &Route, bodies_bytes_max: usize) -> Judgement {
    let one = route.body_bytes_max;
    let needed = one.saturating_mul(16);
    let says = format!(
        "body_bytes_max {one} × 16 > bodies_bytes_max {bodies_bytes_max}: one connection, or one address, may hold more \
         than a quarter of the room, because four of the largest bodies must fit; raise bodies_bytes_max to {needed}, \
         or lower body_bytes_max"
    );
    Verdict::Warning.when(needed > bodies_bytes_max && one <= bodies_bytes_max, says)
}

/// An outcome is its body and a head with a few headers.
fn answer(route: &Route) -> Judgement {
    const HEAD_BYTES_MAX: usize = 64 * 1024;
    const KEPT_BYTES_MAX: usize = RESULT_BYTES_MAX - HEAD_BYTES_MAX;
    let one = route.answer_bytes_max;
    let says = format!(
        "answer_bytes_max {one} > {KEPT_BYTES_MAX}: stores keep no larger answer; a larger one reaches its first caller all the same"
    );
    Verdict::Broken.when(one > KEPT_BYTES_MAX, says)
}

fn callers(route: &Route) -> Judgement {
    match (&route.caller, route.sources.contains(&Source::Api)) {
        (Some(Caller::Header(name)), _) if name == "authorization" => {
            let says = "caller = \"header:authorization\" is for static API keys only: a rotated credential is a new caller, and its retry runs again";
            Verdict::Warning.when(true, says)
        }
        (Some(_), false) => {
            let says = "caller tells API clients apart, and this route takes none of their requests: name \"api\" in \
                        source, or leave caller out";
            Verdict::Warning.when(true, says)
        }
        (None, _) => {
            let says = "requests of API clients are refused, because no caller is named; deliveries of brokers are taken";
            Verdict::Note.when(route.sources.len() > 1, says)
        }
        (Some(Caller::Shared | Caller::Header(_) | Caller::Claim(_)), true) => {
            let says = "only requests of API clients are taken: a delivery of a broker is read as one of theirs; to take \
                        both, name them: source = [\"api\", \"pubsub\"]";
            Verdict::Note.when(route.sources == [Source::Api], says)
        }
    }
}

/// What an answer from the handler means where doubt is parked.
fn doubt(route: &Route) -> Judgement {
    let listed = match (
        route.undone_statuses.is_empty(),
        route.final_statuses.is_empty(),
    ) {
        (true, true) => "and `undone` and `final` list none",
        (true, false) => "except those in `final`, which fail for good; `undone` lists none",
        (false, _) => {
            "except those in `undone`, which may run again, and in `final`, which fail for good"
        }
    };
    let says = format!(
        "in_doubt = \"park\": an answer from the handler that is not a success may have taken effect and parks the work, \
         {listed}"
    );
    Verdict::Note.when(route.parks_doubt(), says)
}

fn undone(route: &Route) -> Judgement {
    let idle = !route.undone_statuses.is_empty() && !route.doubts_failures();
    let says = "undone has no effect here: only under in_doubt = \"park\" or \"probe\" is an answer that is not a success in \
                doubt, and never where the handler completes by itself";
    Verdict::Warning.when(idle, says)
}

/// A letter is a delivery and a head with its headers.
fn letters(route: &Route) -> Judgement {
    let (one, all, needed) = (
        route.body_bytes_max,
        route.letters.bytes_max,
        letters_bytes_min(route),
    );
    let says = format!(
        "body_bytes_max {one} and its headers > half of letters_bytes_max {all}: the largest body that cannot be named could \
         never be kept, and its sender would hear 409 for ever; raise letters_bytes_max to {needed}"
    );
    Verdict::Warning.when(all < needed, says)
}

/// The outage that the quota holds: each piece of work that cannot finish takes one letter.
fn quota(route: &Route) -> Judgement {
    const RATES: [u64; 3] = [1, 10, 100];
    if !route.sources.iter().any(|source| source.is_broker()) {
        return None;
    }
    let LetterLimits {
        count_max,
        bytes_max,
    } = route.letters;
    let of_all = |all: u64| all - all / 4;
    let held = of_all(count_max);
    let times = RATES.map(|rate| {
        let seconds = held / rate;
        format!("{} at {rate}/s", roughly(seconds))
    });
    let says = format!(
        "letters_max {count_max}: an outage may leave {held} unfinished pieces of work, or {} bytes of them ({}); the rest is \
         kept for attempts that may be the last; beyond them work may be lost, `semel_work_unkept_total` counts it, and the \
         promise ends",
        of_all(bytes_max),
        times.join(", ")
    );
    Some((Verdict::Note, says))
}

/// A time in its largest unit that leaves at least two of it.
fn roughly(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A part that deliveries of this source never carry.
fn parts(source: Source, terms: &Terms) -> Judgement {
    let lacking = |part: &&Part| match part {
        Part::Named(name) => !carries(source, name),
        Part::Pointer(_) | Part::Form(_) | Part::Body => false,
    };
    let part = terms.key.parts().iter().find(lacking)?;
    let says = format!("{part} is never in a delivery of {source}: each would be invalid");
    Some((Verdict::Warning, says))
}

fn carries(source: Source, name: &str) -> bool {
    let kind = name.split_once(':').map_or(name, |(kind, _)| kind);
    match kind {
        "task-name" | "queue" => source == Source::CloudTasks,
        "subscription" | "attribute" => source == Source::PubSub,
        "ce" => matches!(source, Source::PubSub | Source::CloudEvents),
        "message-id" => match source {
            Source::PubSub | Source::CloudEvents => true,
            Source::Webhook(webhook) => webhook != Webhook::Stripe,
            Source::Api | Source::CloudTasks => false,
        },
        _ => true,
    }
}
