//! From the first signal to the last request: `signals` says when, `drain` does it.

pub(crate) mod drain;
pub mod signals;
