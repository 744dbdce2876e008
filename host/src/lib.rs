//! A host for WebAssembly components that people put on a port and trust.
//!
//! [`Host::start`] turns a [`config::Config`] into a [`RunningHost`]. `ARCHITECTURE.md` describes the rooms
//! behind it and the path that a request takes through them.

mod capability;
mod component;
pub mod config;
mod dispatch;
mod engine;
pub mod error;
mod guest;
mod handler;
mod host;
pub mod lifecycle;
mod limits;
mod respond;
mod server;
mod task;
pub mod telemetry;

pub use host::{Host, RunningHost};
pub use lifecycle::drain::Drained;
