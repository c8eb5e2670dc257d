//! Letters: whole deliveries that were acknowledged without success, kept in the store until an operator or a
//! later success closes them.

mod stored;
pub(crate) mod keep;
pub(crate) mod unfinished;
mod id;
pub(crate) mod status;
mod latest_run;
pub(crate) mod quota;
pub(crate) mod reconcile;

pub(crate) use stored::is_credential;
pub use stored::{Head, StoredDelivery};
