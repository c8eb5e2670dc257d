//! Every example runs, and what it asserts holds. `axum` is tried in `tests/tower.rs`.

#[path = "../examples/duplicates.rs"]
mod duplicates;
#[path = "../examples/in_doubt.rs"]
mod in_doubt;
#[path = "../examples/key_rules.rs"]
mod key_rules;
#[path = "../examples/limits.rs"]
mod limits;
#[path = "../examples/own_store.rs"]
mod own_store;
#[path = "../examples/retry.rs"]
mod retry;
#[path = "../examples/steps.rs"]
mod steps;

#[test]
fn duplicates_are_answered_from_the_record() {
    duplicates::main().unwrap();
}

#[test]
fn doubt_is_parked_until_it_is_resolved() {
    in_doubt::main().unwrap();
}

#[test]
fn key_rules_tell_work_apart() {
    key_rules::main().unwrap();
}

#[test]
fn limits_turn_work_away() {
    limits::main().unwrap();
}

#[test]
fn a_wrapper_sees_every_operation() {
    own_store::main().unwrap();
}

#[test]
fn failures_say_whether_to_try_again() {
    retry::main().unwrap();
}

#[test]
fn finished_steps_are_not_repeated() {
    steps::main().unwrap();
}
