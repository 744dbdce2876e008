//! The integration ring: the library, real guests and real TCP connections on port 0, in one binary.
//!
//! A module for each behaviour; `support` holds hosts, clients and the test matrix. The guests come from
//! `make guests`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy.toml allows them in test functions; here the helpers of tests are tests, too"
)]

#[macro_use]
mod support;

mod drain;
mod failure;
mod farewell;
mod framing;
mod head;
mod hello;
mod lengths;
mod lifecycle;
mod limits;
mod load;
mod reuse;
mod streaming;
