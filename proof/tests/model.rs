//! Every interleaving of a small world keeps every rule, and every wrong protocol breaks one.
#![allow(
    clippy::print_stdout,
    reason = "the numbers of states are what a reader of the report wants"
)]

use proof::faults;
use proof::model::invariant::Invariant;
use proof::model::letters::{self, LetterFault, Letters, Sender};
use proof::model::mutant::Mutant;
use proof::model::sickness::{self, Sickness, SicknessFault};
use proof::model::world::{Budget, World};
use proof::model::{Semel, Settings};
use semel::protocol::InDoubt;
use stateright::{Checker, Expectation, Model, Path};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Debug;
use std::hash::Hash;

#[test]
fn retry_keeps_every_rule() {
    check("retry", Settings::RETRY);
}

#[test]
fn park_keeps_every_rule() {
    check("park", Settings::PARK);
}

#[test]
fn two_attempts_keep_every_rule() {
    check("two attempts", Settings::TWO_ATTEMPTS);
}

#[test]
fn two_doubts_keep_every_rule() {
    check("two doubts", Settings::TWO_DOUBTS);
}

#[test]
fn probe_keeps_every_rule() {
    check("probe", Settings::PROBE);
}

#[test]
fn a_keeper_keeps_every_rule() {
    check("keeper", Settings::KEEPER);
}

#[test]
fn an_unsteady_clock_breaks_no_rule() {
    check("unsteady clock, retry", Settings::UNSTEADY_CLOCK);
    check("unsteady clock, park", unsteady_clock_and_park());
}

/// Takes minutes, so only when there is time: `SEMEL_TEST_LONG=1`.
#[test]
fn larger_worlds_keep_every_rule() {
    if std::env::var_os("SEMEL_TEST_LONG").is_none() {
        println!("larger worlds: not checked, SEMEL_TEST_LONG is not set");
        return;
    }
    for (policy, settings) in [
        ("retry", Settings::RETRY),
        ("park", Settings::PARK),
        ("two attempts", Settings::TWO_ATTEMPTS),
        ("two doubts", Settings::TWO_DOUBTS),
        ("probe", Settings::PROBE),
    ] {
        let three_workers = Settings {
            workers: 3,
            ..settings
        };
        check(&format!("three workers, {policy}"), three_workers);
        let budget = Budget {
            acts: 2,
            ..settings.budget
        };
        let two_acts = Settings { budget, ..settings };
        check(&format!("two operator's acts, {policy}"), two_acts);
        check(&format!("four grants, {policy}"), settings.with_grants(4));
    }
}

#[test]
fn every_mutant_is_convicted() {
    for (name, mutant) in faults::mutants() {
        let invariant = mutant.invariant;
        let Some(actions) = convict(mutant) else {
            panic!("{name}: not convicted of breaking {invariant} in {ACTIONS_MAX} actions");
        };
        println!("{name:36} breaks {invariant:32} actions: {actions}");
    }
}

#[test]
fn every_rule_convicts_a_mutant() {
    let convicting: BTreeSet<Invariant> = faults::mutants()
        .map(|(_, mutant)| mutant.invariant)
        .collect();
    assert_eq!(convicting, BTreeSet::from(Invariant::ALL));
}

#[test]
fn no_work_is_lost_that_reached_a_gate() {
    for sender in [Sender::Once, Sender::Uncounted, Sender::Counted] {
        for in_doubt in [InDoubt::Retry, InDoubt::Park] {
            let model = Letters {
                sender,
                in_doubt,
                fault: None,
            };
            judge(&format!("letters, {sender:?}, {in_doubt:?}"), model);
        }
    }
}

#[test]
fn every_fault_with_letters_loses_work() {
    for (sender, fault) in [
        (Sender::Once, LetterFault::AfterTheRun),
        (Sender::Uncounted, LetterFault::AfterTheRun),
        (Sender::Counted, LetterFault::NotBeforeTheLast),
        (Sender::Uncounted, LetterFault::NotWhenRefused),
        (Sender::Once, LetterFault::IdOfKeyAlone),
        (Sender::Once, LetterFault::AnySuccessCloses),
    ] {
        let model = Letters {
            sender,
            in_doubt: InDoubt::Retry,
            fault: Some(fault),
        };
        let name = format!("{fault:?}, {sender:?}");
        assert_breaks(&name, model, letters::NOTHING_IS_LOST);
    }
}

#[test]
fn only_sick_work_is_parked_for_its_doubts() {
    judge("sickness", Sickness { fault: None });
}

#[test]
fn every_fault_with_sickness_parks_wrongly() {
    for fault in [
        SicknessFault::AnyAge,
        SicknessFault::WithoutSuccess,
        SicknessFault::NoLimit,
        SicknessFault::LongRuns,
    ] {
        let model = Sickness { fault: Some(fault) };
        let name = format!("{fault:?}");
        assert_breaks(&name, model, sickness::ONLY_SICK_WORK_IS_PARKED);
    }
}

/// Worlds that are tidied alike must go on alike: walks through untidied worlds, and compares what
/// can come next with what can come next in the tidied one.
#[test]
fn tidying_loses_nothing() {
    for settings in [
        Settings::RETRY,
        Settings::PARK,
        Settings::TWO_ATTEMPTS,
        Settings::TWO_DOUBTS,
        Settings::PROBE,
        Settings::KEEPER,
        Settings::UNSTEADY_CLOCK,
        unsteady_clock_and_park(),
    ] {
        let model = Semel::real(settings);
        for seed in 0..WALKS {
            walk(&model, seed);
        }
    }
}

/// Longer counterexamples are not looked for.
const ACTIONS_MAX: usize = 11;
const WALKS: usize = 300;
const WALK_ACTIONS: usize = 40;

fn walk(model: &Semel, seed: usize) {
    let mut worlds = model.init_states();
    let mut world = worlds.swap_remove(seed % worlds.len());
    let mut random = Random(seed as u64);
    for _ in 0..WALK_ACTIONS {
        let raw = successors(model, &world);
        let here = model.canonical(world);
        let mut expected: HashSet<World> = model.next_states(&here).into_iter().collect();
        let mut reached: HashSet<World> = raw.iter().map(|w| model.canonical(w.clone())).collect();
        // To stay where one is, is to do nothing.
        expected.remove(&here);
        reached.remove(&here);
        let differing: Vec<_> = reached.symmetric_difference(&expected).collect();
        assert!(differing.is_empty(), "from {here:?} to {differing:?}");
        let next = random.below(raw.len());
        world = raw.into_iter().nth(next).expect("time can always pass");
    }
}

fn successors(model: &Semel, world: &World) -> Vec<World> {
    let mut actions = Vec::new();
    model.actions(world, &mut actions);
    actions
        .into_iter()
        .filter_map(|action| model.after(world, action))
        .collect()
}

/// Visits every world that can be reached.
fn check(name: &str, settings: Settings) {
    judge(name, Semel::real(settings));
}

fn judge<M>(name: &str, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let checker = model.checker().spawn_bfs().join();
    println!(
        "{name:32} {:9} states, {:9} transitions, {:2} actions deep",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth()
    );
    let found = checker.discoveries();
    for property in checker.model().properties() {
        match (property.expectation, found.get(property.name)) {
            (Expectation::Sometimes, Some(_)) | (Expectation::Always, None) => {}
            (Expectation::Always | Expectation::Eventually, Some(path)) => {
                panic!("{name} breaks the rule {}:\n{}", property.name, told(path));
            }
            (Expectation::Sometimes | Expectation::Eventually, None) => {
                panic!("{name}: never seen: {}", property.name);
            }
        }
    }
}

/// Looks for a way to break the rule, and says how short it is.
fn assert_breaks<M>(name: &str, model: M, rule: &'static str)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let checker = model.checker().spawn_bfs().join();
    let Some(path) = checker.discovery(rule) else {
        panic!("{name}: not convicted of breaking {rule}");
    };
    let actions = path.into_actions();
    println!("{name:36} breaks {rule:32} {actions:?}");
}

/// The number of actions of the shortest way to break the rule.
fn convict(mutant: &Mutant) -> Option<usize> {
    let model = Semel::mutant(mutant);
    (0..ACTIONS_MAX).find(|actions| {
        // The checker counts the first world, and stops before the last.
        let checker = model.checker().target_max_depth(actions + 2).spawn_bfs();
        checker.join().discovery(mutant.invariant.name()).is_some()
    })
}

fn told<S: Debug, A: Debug>(path: &Path<S, A>) -> String
where
    Path<S, A>: Clone,
{
    let steps = path.clone().into_vec();
    let told = steps
        .iter()
        .map(|(world, action)| format!("{world:#?}\n{action:?}\n"));
    told.collect()
}

fn unsteady_clock_and_park() -> Settings {
    Settings {
        in_doubt: InDoubt::Park,
        ..Settings::UNSTEADY_CLOCK
    }
}

/// A plain linear congruence: the walks are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).expect("31 bits fit") % bound
    }
}
