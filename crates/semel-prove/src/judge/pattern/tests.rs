mod keys;
mod lost;
mod twice;

use super::catalogue::KnownMistake;
use super::*;
use crate::judge::samples::{answered, counted, event, says, says_with, sent, unanswered};
use crate::judge::timeline::What;
use Attack::{AtOnce, BadKey, CrashSweep, OtherPayload, Pause, Repeat, TwoProcesses};
use BreachKind::{Died, EffectLost, EffectTwice, OldWins, Stuck};

const UNRECOGNISED: &str = "";

fn broken(how: BreachKind, timeline: Vec<Event>) -> Broken {
    Broken {
        how,
        seen: "what was seen".to_owned(),
        timeline,
        pattern: None,
    }
}

fn named(clues: &Clues, attack: Attack) -> &'static str {
    name(attack, clues).map_or(UNRECOGNISED, |pattern| pattern.name)
}

/// What an attack is called that does not exist yet, or whose name does not matter.
fn named_by(clues: &Clues, fault: Fault, how: BreachKind, timeline: &[Event]) -> &'static str {
    let attack = BrokenAttack {
        fault,
        how,
        seen: "what was seen",
        timeline,
        clues,
    };
    attack.named().map_or(UNRECOGNISED, |pattern| pattern.name)
}

fn one(attack: Attack, how: BreachKind, timeline: Vec<Event>) -> Clues {
    Clues {
        broken: vec![(attack, broken(how, timeline))],
        ..Clues::default()
    }
}

/// Clues by which a plain repeat is recognised.
fn repeat_held(mut clues: Clues) -> Clues {
    clues.held.push(Repeat);
    clues
}

/// One attempt after the other, each with what it asks.
fn attempts(asked: &[&[Event]]) -> Vec<Event> {
    let turns = (1..).zip(asked);
    let turns = turns.flat_map(|(n, asked)| {
        let mut turn = vec![sent("a1", n)];
        turn.extend_from_slice(asked);
        turn.push(answered("a1", n, 200));
        turn
    });
    turns.collect()
}

/// A first attempt that is killed, and a second one.
fn crash(before: &[&str], after: &[&str]) -> Vec<Event> {
    let asked = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| says(true, text))
            .collect::<Vec<_>>()
    };
    let mut timeline = vec![sent("a1", 1)];
    timeline.extend(asked(before));
    timeline.extend([
        event(What::Killed),
        unanswered("a1", 1),
        event(What::Started),
        sent("a1", 2),
    ]);
    timeline.extend(asked(after));
    timeline.push(answered("a1", 2, 200));
    timeline
}

fn baseline(clues: Clues, said: &[&str]) -> Clues {
    let baseline = said.iter().map(|&said| said.to_owned()).collect();
    Clues { baseline, ..clues }
}

#[test]
fn documentation_names_every_pattern() {
    let documentation = include_str!("../../../../../docs/prove.md");
    for KnownMistake { name, .. } in CATALOGUE {
        assert!(documentation.contains(&format!("| {name} |")), "{name}");
    }
}

#[test]
fn what_held_has_no_pattern() {
    assert_eq!(name(Repeat, &Clues::default()), None);
}

#[test]
fn keys_that_last_or_cover_too_little_are_told_apart() {
    let repeated = attempts(&[&[], &[]]);
    let known = repeat_held(Clues::default());
    for (fault, how, mistake) in [
        (Fault::Late, EffectTwice, "key forgotten too soon"),
        (Fault::Others, EffectTwice, "key forgotten too soon"),
        (Fault::LostAnswer, EffectTwice, "key forgotten too soon"),
        (
            Fault::Republished,
            EffectTwice,
            "key changes between attempts",
        ),
        (
            Fault::OtherPayload,
            EffectTwice,
            "key changes between attempts",
        ),
    ] {
        assert_eq!(named_by(&known, fault, how, &repeated), mistake);
        // Unless a plain repeat is recognised, nothing is known of the key.
        assert_eq!(
            named_by(&Clues::default(), fault, how, &repeated),
            UNRECOGNISED
        );
    }
    assert_eq!(
        named_by(&known, Fault::Others, EffectLost, &repeated),
        "key too narrow"
    );
    assert_eq!(
        named_by(&known, Fault::Race, EffectLost, &repeated),
        UNRECOGNISED
    );
    assert_eq!(
        named_by(&known, Fault::Reorder, OldWins, &repeated),
        "old overwrites new"
    );
    assert_eq!(
        named(&one(OtherPayload, EffectTwice, Vec::new()), OtherPayload),
        UNRECOGNISED
    );
    assert_eq!(
        named(&one(BadKey, EffectTwice, Vec::new()), BadKey),
        "no key"
    );
}
