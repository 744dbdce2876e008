//! Bytes become requests and responses become bytes; nothing here knows WebAssembly. `listener` has the one
//! accept loop, `http` is the front for HTTP/1.0, 1.1 and 2, `authority` its checks of target and Host,
//! `socket` the connection's timers and its probe for vanished clients. Every front ends in `Handler::handle`.

mod authority;
mod http;
pub(crate) mod listener;
mod socket;
