//! Bounds on what clients and guests may take: places (`admission`), time (`deadline`), bytes of a request
//! body (`body`) and of an instance's memory (`memory`). Nothing here knows HTTP servers or guests.
//! Every permit and count is released by `Drop`.

pub(crate) mod admission;
pub(crate) mod body;
pub(crate) mod deadline;
pub(crate) mod memory;
