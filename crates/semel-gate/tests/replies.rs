//! Who is told what: every outcome, for every sender.

mod ran;
mod duplicates;
mod in_flight;
mod mismatched;
mod retryable;
mod for_good;
mod parked;
mod in_doubt;
mod completes;
mod invalid;
mod store;
mod full;
