//! `semel._native`: the core of the Python package. The core decides, Python runs: a call is claimed here, its function
//! runs on the caller's own thread, and what became of it is recorded here, while the lease is renewed on a thread of
//! this module's runtime that never needs the interpreter.

mod error;
mod terms;
mod payload;
mod home;
mod store;
mod wait;
mod run;
mod step;
mod driven;
mod ended;
mod letters;
mod functions;
mod command;

#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::command::main;
    #[pymodule_export]
    use crate::ended::Ended;
    #[pymodule_export]
    use crate::functions::{Delivery, Reply, Route};
    #[pymodule_export]
    use crate::home::Home;
    #[pymodule_export]
    use crate::payload::encode;
    #[pymodule_export]
    use crate::run::Run;
    #[pymodule_export]
    use crate::step::Step;
    #[pymodule_export]
    use crate::terms::Terms;
    #[pymodule_export]
    use crate::wait::{close_callbacks, forget_callbacks};
}
