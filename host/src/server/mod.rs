//! Bytes become requests and responses become bytes; nothing here knows WebAssembly. `listener` has the one
//! accept loop, `http` is the front for HTTP/1.0, 1.1 and 2, `authority` its checks of target and Host,
//! `connection` the phases of one and the probe for vanished clients, `watchdog` its timer, `socket` its bytes,
//! `stream` a response on its way. Every front ends in `Handler::handle`.

mod authority;
mod connection;
mod http;
pub(crate) mod listener;
mod socket;
mod stream;
mod watchdog;
