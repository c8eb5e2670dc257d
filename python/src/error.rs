//! What goes wrong, as the exceptions of `semel._errors`.

use pyo3::prelude::*;
use pyo3::types::PyType;
use semel::Error;
use semel::key::KeyError;
use semel::work::{Failure, FailureKind};

/// Makes `semel._errors.NAME(message, extra)`.
fn raise<'py, A>(py: Python<'py>, name: &str, args: A) -> PyErr
where
    A: pyo3::call::PyCallArgs<'py>,
{
    let made = py
        .import("semel._errors")
        .and_then(|module| module.getattr(name))
        .and_then(|class| class.cast_into::<PyType>().map_err(Into::into))
        .and_then(|class| class.call1(args));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// A store that did not answer before anything ran.
pub(crate) fn of_store(py: Python<'_>, error: &Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Unavailable(_) | Error::Denied(_) => raise(py, "StoreUnavailable", (message,)),
        Error::Invalid(_) => raise(py, "ConfigError", (message,)),
        Error::Corrupt(_) | Error::Bug(_) => raise(py, "Error", (message,)),
    }
}

/// A call that has no key.
pub(crate) fn of_key(py: Python<'_>, error: &KeyError) -> PyErr {
    raise(py, "KeyRefused", (error.to_string(), error.code()))
}

/// An argument that has no place in a payload: its path, and why.
pub(crate) fn of_argument(py: Python<'_>, code: &str, message: String) -> PyErr {
    raise(py, "KeyRefused", (message, code))
}

/// A setting that makes no sense.
pub(crate) fn of_setting(py: Python<'_>, message: &str) -> PyErr {
    raise(py, "ConfigError", (message,))
}

/// A step that could not be begun or recorded.
pub(crate) fn of_step(py: Python<'_>, failure: &Failure) -> PyErr {
    let message = String::from_utf8_lossy(&failure.outcome.body_bytes()).into_owned();
    let is_final = failure.kind == FailureKind::Final;
    raise(py, "StepRefused", (message, is_final))
}
