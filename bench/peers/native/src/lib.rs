//! What the two native peers share: the routes' content, streamed bodies, and how they start.
//!
//! The answers are those of `guest/fixtures/work-logic`, byte for byte; `bench/peers/check` compares them.

pub mod body;
pub mod content;
pub mod start;
