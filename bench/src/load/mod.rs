//! The load client: a `Plan` in, an `Outcome` out.
//!
//! `run` starts the threads and adds up. A `worker` is one connection or stream in a closed or an open loop; its
//! `line` opens connections and replaces them, over `http1` (our own) or `http2` (hyper's). `mix` prepares the
//! requests, `answer` compares what comes back, `guard` ends what takes too long, `ticker` keeps the schedule of the
//! open loop, `record` takes down. `idle` holds connections that do nothing.

mod answer;
mod clock;
mod descriptors;
mod error;
mod failure;
mod guard;
mod http1;
mod http2;
pub mod idle;
mod line;
mod mix;
mod outcome;
mod plan;
mod progress;
mod record;
mod run;
mod ticker;
mod worker;

pub use error::LoadError;
pub use failure::Failure;
pub use outcome::{Outcome, PERCENTILES};
pub use plan::{Expect, ExpectBody, Pace, Plan, Protocol, Template};
pub use progress::Progress;
pub use run::run;
