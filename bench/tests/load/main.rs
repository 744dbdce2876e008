//! The load client against small servers on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod counts;
mod failures;
mod pace;
mod server;
