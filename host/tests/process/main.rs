//! The process ring: the real binary with its exit codes, its stderr, its signals and its limits.
//!
//! `support` starts the binary and watches it, `client` speaks raw HTTP/1.1 to it. `start` and `address`
//! have the way up, `files` what is refused as a component, `drain` the way down, `logs` and `long_lines`
//! what the host tells, `reader` who does not listen to it, `robustness` what scarce resources do. A test
//! that covers a field case begins with its id.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is how a test tells"
)]

mod address;
mod client;
mod drain;
mod files;
mod logs;
mod long_lines;
mod reader;
mod robustness;
mod start;
mod support;
