//! Arguments and results as canonical JSON (RFC 8785), by one walk over the objects.
//!
//! What has no place in JSON goes to Python's `semel._payload.simplify`, which knows dates, decimals and data classes
//! and raises for everything else. A refusal names the argument by its path.

use crate::error;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::fmt::Write;

/// Deeper than any payload that is meant, and far from the end of the stack. Where a key's reader has to follow, it says
/// how deep it goes, and that is less.
const DEPTH_MAX: usize = 128;

/// From here on a double is no 64-bit integer, on either side of zero.
const INTEGERS_END: f64 = 9_223_372_036_854_775_808.0;

/// From here on RFC 8785 itself writes an exponent.
const EXPONENTS_BEGIN: f64 = 1e21;

struct Encoder<'py> {
    py: Python<'py>,
    simplify: Bound<'py, PyAny>,
    /// Where the walk is: names and positions from the outside.
    path: Vec<String>,
    /// How many arrays and objects it is in, and how many it may be in.
    levels: usize,
    levels_max: usize,
    out: String,
}

/// The canonical JSON of a value. `simplify(value, path)` turns what JSON does not know into what it does.
#[pyfunction]
#[pyo3(signature = (value, simplify, levels_max=DEPTH_MAX))]
pub(crate) fn encode<'py>(
    py: Python<'py>,
    value: &Bound<'py, PyAny>,
    simplify: Bound<'py, PyAny>,
    levels_max: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut encoder = Encoder {
        py,
        simplify,
        path: Vec::new(),
        levels: 0,
        levels_max,
        out: String::with_capacity(128),
    };
    encoder.value(value)?;
    Ok(PyBytes::new(py, encoder.out.as_bytes()))
}

// === impl Encoder ===

impl<'py> Encoder<'py> {
    fn value(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        // Exact types: subclasses (an IntEnum, a str with a meaning of its own) are for Python to simplify.
        if let Ok(text) = value.cast_exact::<PyString>() {
            self.text(text)
        } else if value.is_none() {
            self.out.push_str("null");
            Ok(())
        } else if let Ok(truth) = value.cast_exact::<PyBool>() {
            self.out
                .push_str(if truth.is_true() { "true" } else { "false" });
            Ok(())
        } else if let Ok(number) = value.cast_exact::<PyInt>() {
            self.integer(number)
        } else if let Ok(number) = value.cast_exact::<PyFloat>() {
            self.float(number.value())
        } else if let Ok(members) = value.cast_exact::<PyDict>() {
            self.level(|encoder| encoder.object(members))
        } else if let Ok(items) = value.cast_exact::<PyList>() {
            self.level(|encoder| encoder.array(items.iter()))
        } else if let Ok(items) = value.cast_exact::<PyTuple>() {
            self.level(|encoder| encoder.array(items.iter()))
        } else {
            let path = self.place();
            let simpler = self.simplify.call1((value, path))?;
            self.deeper("", |encoder| encoder.value(&simpler))
        }
    }

    fn text(&mut self, text: &Bound<'py, PyString>) -> PyResult<()> {
        // Half a surrogate pair has no UTF-8.
        let Ok(text) = text.to_cow() else {
            return Err(self.refuse(
                "lone_surrogate",
                "holds half a surrogate pair, which is not text",
            ));
        };
        write_string(&mut self.out, &text);
        Ok(())
    }

    fn integer(&mut self, number: &Bound<'py, PyInt>) -> PyResult<()> {
        let in_range = number.extract::<i64>().map(|small| small.to_string());
        let digits = in_range.or_else(|_| number.extract::<u64>().map(|large| large.to_string()));
        let Ok(digits) = digits else {
            let what = "is an integer that does not fit 64 bits: pass it as a string";
            return Err(self.refuse("wide_integer", what));
        };
        self.out.push_str(&digits);
        Ok(())
    }

    fn float(&mut self, number: f64) -> PyResult<()> {
        if !number.is_finite() {
            let what =
                format!("is {number}, which equals nothing and has no JSON: pass another value");
            return Err(self.refuse("not_finite", &what));
        }
        // RFC 8785 writes these as integers, and integers beyond 64 bits are refused by every reader of keys.
        if number.trunc().abs() >= INTEGERS_END && number.abs() < EXPONENTS_BEGIN {
            write!(self.out, "{number:e}").expect("a String takes everything");
        } else {
            self.out
                .push_str(ryu_js::Buffer::new().format_finite(number));
        }
        Ok(())
    }

    fn array(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<()> {
        self.out.push('[');
        for (position, item) in items.enumerate() {
            if position > 0 {
                self.out.push(',');
            }
            self.deeper(&position.to_string(), |encoder| encoder.value(&item))?;
        }
        self.out.push(']');
        Ok(())
    }

    fn object(&mut self, members: &Bound<'py, PyDict>) -> PyResult<()> {
        let mut sorted = Vec::with_capacity(members.len());
        for (name, value) in members {
            let Ok(text) = name.cast::<PyString>() else {
                let what = format!(
                    "has the member name {}, and only strings can be names: json would make 1 and \"1\" one name",
                    name.repr()?
                );
                return Err(self.refuse("member_name", &what));
            };
            let Ok(name) = text.to_cow() else {
                let what = "has a member name with half a surrogate pair, which is not text";
                return Err(self.refuse("lone_surrogate", what));
            };
            sorted.push((name.into_owned(), value));
        }
        sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
        self.out.push('{');
        for (position, (name, value)) in sorted.iter().enumerate() {
            if position > 0 {
                self.out.push(',');
            }
            write_string(&mut self.out, name);
            self.out.push(':');
            self.deeper(name, |encoder| encoder.value(value))?;
        }
        self.out.push('}');
        Ok(())
    }

    /// Inside one array or object more.
    fn level(&mut self, then: impl FnOnce(&mut Self) -> PyResult<()>) -> PyResult<()> {
        self.levels += 1;
        if self.levels > self.levels_max {
            return Err(self.too_deep(self.levels_max));
        }
        then(self)?;
        self.levels -= 1;
        Ok(())
    }

    fn deeper(&mut self, name: &str, then: impl FnOnce(&mut Self) -> PyResult<()>) -> PyResult<()> {
        if self.path.len() >= DEPTH_MAX {
            return Err(self.too_deep(DEPTH_MAX));
        }
        self.path.push(name.to_owned());
        then(self)?;
        self.path.pop();
        Ok(())
    }

    /// Where the walk is, for people: `order.lines.0`.
    fn place(&self) -> String {
        let names = self.path.iter().filter(|name| !name.is_empty());
        names.cloned().collect::<Vec<_>>().join(".")
    }

    fn too_deep(&self, levels: usize) -> PyErr {
        let what = format!("is nested deeper than {levels} levels, or contains itself");
        self.refuse("too_deep", &what)
    }

    fn refuse(&self, code: &str, what: &str) -> PyErr {
        let place = self.place();
        let subject = if place.is_empty() {
            "the value"
        } else {
            &place
        };
        let message = format!("{subject} {what}; a retry of the same call fails again");
        error::of_argument(self.py, code, message)
    }
}

/// As RFC 8785 escapes.
fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control if control < ' ' => {
                write!(out, "\\u{:04x}", u32::from(control)).expect("a String takes everything");
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
