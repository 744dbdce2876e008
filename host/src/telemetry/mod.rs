//! What the host tells: its log, the guests' output (`guest_log`), one line for each request (`access_log`),
//! and the progress of a compilation (`progress`). Start with [`log::install`].

pub(crate) mod access_log;
pub(crate) mod guest_log;
pub mod log;
pub(crate) mod progress;
pub(crate) mod request_id;
