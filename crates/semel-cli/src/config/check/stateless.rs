//! Routes without records: whether their times fit, and what nobody should expect of them.

use super::route::proved_if;
use super::{Finding, Judgement, Verdict};
use crate::config::Platform;
use crate::config::values::written;
use semel_gate::settings::{DEADLINE_MARGIN, Lands, OnInvalid, Route, Source};
use std::time::Duration;

/// All findings about a route that keeps no records.
pub(super) fn check(route: &Route, platform: Option<Platform>) -> Vec<Finding> {
    let of_route = [repeated(route), platform_unknown(route, platform)];
    let of_route = of_route.into_iter().flatten();
    let mut found: Vec<_> = of_route
        .map(|(verdict, says)| Finding::route(route, None, verdict, says))
        .collect();
    for source in route.sources.iter().copied() {
        let deadline = route.terms(source).deadline;
        let said = [
            cut_off(route, source, deadline),
            between(route, source, deadline),
            refused(route, source),
        ];
        let said = said.into_iter().flatten();
        found
            .extend(said.map(|(verdict, says)| Finding::route(route, Some(source), verdict, says)));
    }
    found
}

/// What a reader of `record = "none"` must know.
fn repeated(route: &Route) -> Judgement {
    let says = "record = \"none\": every delivery runs the handler, repeats included; a bill, a mail or a charge would \
                happen as often as it is delivered; if whatever is behind the handler drops repeats of Semel-Key, declare \
                downstream = \"deduplicates\"";
    let is_called = route
        .land
        .as_ref()
        .is_none_or(|rule| rule.lands == Lands::Answer);
    Verdict::Warning.when(is_called && route.downstream.is_none(), says)
}

/// Nobody would hear of a run that outlasts its sender.
fn cut_off(route: &Route, source: Source, deadline: Option<Duration>) -> Judgement {
    let deadline = deadline?;
    let timeout = route.terms(source).timeout;
    let holds = timeout.saturating_add(DEADLINE_MARGIN) <= deadline;
    let (timeout, given_up) = (written(timeout), written(deadline));
    let says = if holds {
        format!(
            "timeout {timeout} + 1s ≤ deadline {given_up}: the handler is cut off before its sender gives up"
        )
    } else {
        format!(
            "timeout {timeout} + 1s > deadline {given_up}: without a record nobody hears of a run that outlasts its sender, \
             and it would run again meanwhile; shorten timeout, or keep records"
        )
    };
    Some((proved_if(holds), says))
}

/// The platform must not cut a request before the gate does, nor hold it when its sender has gone.
fn between(route: &Route, source: Source, deadline: Option<Duration>) -> Judgement {
    let platform = route.platform_timeout?;
    let timeout = route.terms(source).timeout;
    let (cut, own) = (written(platform), written(timeout));
    if timeout.saturating_add(DEADLINE_MARGIN) > platform {
        let says = format!(
            "timeout {own} + 1s > platform_timeout {cut}: the platform would answer for the gate, whatever the handler did; \
             shorten timeout, or lengthen the platform's"
        );
        return Some((Verdict::Broken, says));
    }
    match deadline {
        Some(deadline) if platform > deadline => {
            let says = format!(
                "platform_timeout {cut} > deadline {}: the platform would hold a request whose sender has given up; shorten \
                 the platform's, or lengthen the sender's deadline",
                written(deadline)
            );
            Some((Verdict::Broken, says))
        }
        Some(_) | None => {
            let says = format!(
                "timeout {own} + 1s ≤ platform_timeout {cut}: the gate answers before the platform does"
            );
            Some((Verdict::Proved, says))
        }
    }
}

fn platform_unknown(route: &Route, platform: Option<Platform>) -> Judgement {
    let says = "platform_timeout is not given: Cloud Run ends requests after a timeout of its own (300s unless set), and \
                then nobody hears the handler's answer; write the service's timeout";
    let unknown = platform == Some(Platform::CloudRun) && route.platform_timeout.is_none();
    Verdict::Warning.when(unknown, says)
}

/// Where no letters are kept, only the sender can keep what is invalid.
fn refused(route: &Route, source: Source) -> Judgement {
    let remedy = if source == Source::PubSub {
        "let it keep what it gives up (a dead-letter topic), and write dead_letter_topic = true"
    } else {
        "it keeps nothing that it gives up; keep records, which keep letters"
    };
    let says = format!(
        "an invalid delivery is refused with 400, and its sender repeats it until it gives up: {remedy}"
    );
    let lost =
        source.is_broker() && route.on_invalid == OnInvalid::Reject && !route.dead_letter_topic;
    Verdict::Warning.when(lost, says)
}
