//! A load client and a comparison of servers under the same load.
//!
//! `load` is the client: plan in, numbers out. `users` is the table of N users making M requests each.
//! `compare` starts servers (`server`) in turn, as a `scenario` says, and measures them; `external` drives other
//! clients; `report` writes down what came out.
//! The binary `cloudgo-bench` only reads the command line and prints.

pub mod address;
pub mod compare;
pub mod external;
pub mod load;
pub mod machine;
pub mod report;
pub mod scenario;
pub mod server;
pub mod users;
