//! A key rule reads from a delivery which piece of work it is.

use semel::key::{Delivered, KeyError};
use semel::{KeyRule, Scope};
use std::error::Error;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let orders = Scope::new("shop", "orders");

    // A part of the payload, by its JSON pointer. Spacing, order and spelling of numbers do not matter.
    let rule: KeyRule = "/order_id".parse()?;
    let first = rule.key(
        &orders,
        &Delivered::payload(br#"{"order_id": 7, "attempt": 1}"#),
    )?;
    let again = rule.key(
        &orders,
        &Delivered::payload(br#"{"attempt":2,"order_id":7.0}"#),
    )?;
    let text = rule.key(&orders, &Delivered::payload(br#"{"order_id": "7"}"#))?;
    assert_eq!(first, again);
    assert_ne!(first, text, "a number and a string are not the same");

    // The same order on another route is other work.
    let refunds = Scope::new("shop", "refunds");
    assert_ne!(
        first,
        rule.key(&refunds, &Delivered::payload(br#"{"order_id": 7}"#))?
    );

    // Several parts, and values beside the payload.
    let rule = KeyRule::new(["/order_id", "header:x-line"])?;
    let line = |line: &str| {
        let delivered = Delivered::payload(br#"{"order_id": 7}"#).with("header:x-line", line);
        rule.key(&orders, &delivered)
    };
    assert_eq!(line("1")?, line("1")?);
    assert_ne!(line("1")?, line("2")?);

    // A missing part is an error that names it, never a silent default.
    let missing = rule.key(&orders, &Delivered::payload(br#"{"order_id": 7}"#));
    assert!(matches!(missing, Err(KeyError::MissingPart { part }) if part == "header:x-line"));
    Ok(())
}
