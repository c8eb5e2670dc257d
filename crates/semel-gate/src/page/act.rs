//! Acts on one record: what they would do, in words before the button, and doing them.

use super::Screen;
use crate::invisible::has_visible;
use crate::operate::{Operator, Refused, Verdict};
use axum::extract::{Form, Path};
use axum::response::Response;
use semel::Key;
use semel::clock::Time;
use semel::protocol::{Fence, Record, State};
use semel::store::StoreExt;
use semel_ui::{Act, Markup, html};
use serde_json::Value;

/// A form as it was sent.
pub(super) type Fields = Form<Vec<(String, String)>>;

/// What a person has to decide before anything else happens, if there is something.
pub(super) fn decision(screen: &Screen, key: &Key, record: &Record, now: Time) -> Markup {
    let is_open = match record.state {
        State::Parked => true,
        State::Running => record.lease_until <= now,
        State::Waiting | State::Succeeded | State::Failed => false,
    };
    html! {
        @if is_open {
            section.card.decide aria-labelledby="decide" {
                h2 #decide { "What became of it?" }
                (decides(screen, key, record).hidden("seen", seen(record)).reason().form(&screen.visitor))
            }
        }
    }
}

/// What else somebody may do to this record, each with its consequence.
pub(super) fn forms(screen: &Screen, key: &Key, record: &Record) -> Markup {
    let acts = acts(screen, key, record);
    html! {
        @if !acts.is_empty() { h2 { "Act" } }
        @for act in acts {
            div.card { (act.hidden("seen", seen(record)).reason().form(&screen.visitor)) }
        }
    }
}

/// What somebody saw who decides: an act that was meant for another run, or another state, is not done.
fn seen(record: &Record) -> String {
    format!("{} with fence {}", record.state.word(), record.fence)
}

fn acts(screen: &Screen, key: &Key, record: &Record) -> Vec<Act> {
    match record.state {
        State::Parked => Vec::new(),
        State::Running => vec![releases(screen, key, record)],
        State::Waiting => vec![releases(screen, key, record), forgets(screen, key, record)],
        State::Succeeded | State::Failed => vec![forgets(screen, key, record)],
    }
}

/// An operator finds out what became of it, and says so.
fn decides(screen: &Screen, key: &Key, record: &Record) -> Act {
    let action = screen.to(&format!("records/{key}/resolve"));
    let first = html! {
        p { "Find out first, in the handler's own database or at whoever it calls: nobody here knows." }
    };
    Act::new(action, "Decide", first)
        .hidden("fence", record.fence.to_string())
        .with(html! {
            @for verdict in [Verdict::Succeeded, Verdict::Failed, Verdict::Retry] {
                label.choice {
                    input type="radio" name="as" value=(verdict.word()) required;
                    span { (says(verdict)) }
                }
            }
        })
}

/// A verdict, and what follows from it.
fn says(verdict: Verdict) -> Markup {
    match verdict {
        Verdict::Succeeded => html! {
            b { "It took effect." } " Every duplicate hears 200 without a body from now on, its letter is closed, and \
            nothing runs again."
        },
        Verdict::Failed => html! {
            b { "It did not take effect, and shall not." } " Duplicates hear that it failed for good; its letter, if \
            there is one, stays until it is redriven or discarded."
        },
        Verdict::Retry => html! {
            b { "It did not take effect, and shall: run it again." } " The next delivery runs it, or a redrive of its \
            letter. If it " em { "did" } " take effect, it takes effect " strong.hard { "twice" } ": what this route \
            promises does not hold for this key any more."
        },
    }
}

fn releases(screen: &Screen, key: &Key, record: &Record) -> Act {
    let running = record.state == State::Running;
    let consequence = html! {
        @if running {
            p { b { "The run loses its right." } " It is not stopped, but can record nothing any more; the next delivery \
                runs the work. If the old run still takes effect, it takes effect " b { "twice" } "." }
        } @else {
            p { b { "The next delivery runs it at once," } " whatever pause was left." }
        }
    };
    let action = screen.to(&format!("records/{key}/release"));
    Act::new(action, "Release", consequence).hard()
}

fn forgets(screen: &Screen, key: &Key, record: &Record) -> Act {
    let consequence = html! {
        @if record.state == State::Succeeded {
            p { "This work has taken effect. Forgetting it lets the next delivery " b { "run again" } "." }
        } @else {
            p { "Forgetting it ends this record: the next delivery is new work, and " b { "runs" } "." }
        }
        p { "Label, history and answer go with it." }
    };
    let action = screen.to(&format!("records/{key}/forget"));
    let letters = html! {
        label.field {
            input type="checkbox" name="letters" value="yes";
            " Discard its letters, too: their deliveries are gone for good."
        }
    };
    Act::new(action, "Forget", consequence).with(letters).hard()
}

// === Doing ===

pub(super) async fn release(
    screen: Screen,
    Path(key): Path<String>,
    Form(fields): Fields,
) -> Response {
    let act = async |operator: Operator, key: &Key| operator.release(key).await;
    done(&screen, &key, &fields, act).await
}

pub(super) async fn forget(
    screen: Screen,
    Path(key): Path<String>,
    Form(fields): Fields,
) -> Response {
    let act = async |operator: Operator, key: &Key| match field(&fields, "letters") {
        "yes" => operator.forget_with_letters(key).await,
        _ => operator.forget(key).await,
    };
    done(&screen, &key, &fields, act).await
}

pub(super) async fn resolve(
    screen: Screen,
    Path(key): Path<String>,
    Form(fields): Fields,
) -> Response {
    let act = async |operator: Operator, key: &Key| {
        let mistaken = |why: String| Refused::mistaken(why, "go back; nothing was done");
        let verdict: Verdict = field(&fields, "as").parse().map_err(mistaken)?;
        let text = field(&fields, "fence");
        let fence = text.parse().map(Fence);
        let fence = fence.map_err(|_| mistaken(format!("{text:?} is not a fence")))?;
        operator.resolve(key, verdict, Some(fence)).await
    };
    done(&screen, &key, &fields, act).await
}

/// Does it, for a reason, and leads back to the record, whose history then has it.
async fn done(
    screen: &Screen,
    key: &str,
    fields: &[(String, String)],
    act: impl AsyncFnOnce(Operator, &Key) -> Result<Value, Refused>,
) -> Response {
    let told = async {
        let key = read_key(key)?;
        let operator = screen.operator(reason(fields)?);
        let found = screen.state.store().look(&key).await?;
        let found = found.as_ref().map_or("not there any more".into(), seen);
        match field(fields, "seen") {
            seen if seen == found => act(operator, &key).await,
            seen => Err(Refused::conflict(
                format!("the record is {found}; what you decided about was {seen}"),
                "look at the record again, then decide; nothing was done",
            )),
        }
    };
    match told.await {
        Ok(_) => screen.lead_to(&format!("records/{key}?done=1")),
        Err(why) => screen.refuse("doubt", &why),
    }
}

/// The value of a field; empty when there is none.
pub(super) fn field<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    let found = fields.iter().find(|(it, _)| it == name);
    found.map_or("", |(_, value)| value)
}

/// Why somebody acts. An act without a reason is not done.
pub(super) fn reason(fields: &[(String, String)]) -> Result<&str, Refused> {
    match field(fields, "reason").trim() {
        why if has_visible(why) => Ok(why),
        _ => Err(Refused::mistaken(
            "an act needs a reason",
            "go back and say why, in characters that can be seen: it is for the audit; nothing was done",
        )),
    }
}

/// A key as it stands in an address.
pub(super) fn read_key(text: &str) -> Result<Key, Refused> {
    text.parse().map_err(|error: semel::key::KeyError| {
        Refused::mistaken(error.to_string(), "copy the whole key, or search for it")
    })
}
