//! The servers that can be compared.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A server program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// This repository's host.
    Cloudgo,
    /// `wasmtime serve`.
    Wasmtime,
    /// hyper 1, native.
    Hyper,
    /// axum, native.
    Axum,
    /// Go with fasthttp, native.
    Fasthttp,
    /// nginx, which answers statically.
    Nginx,
}

impl Kind {
    /// In the order of reports.
    pub const ALL: [Self; 6] = [
        Self::Cloudgo,
        Self::Wasmtime,
        Self::Hyper,
        Self::Axum,
        Self::Fasthttp,
        Self::Nginx,
    ];

    /// The program's file name.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Cloudgo => "cloudgo-host",
            Self::Wasmtime => "wasmtime",
            Self::Hyper => "peer-hyper",
            Self::Axum => "peer-axum",
            Self::Fasthttp => "peer-fasthttp",
            Self::Nginx => "nginx",
        }
    }

    /// Whether it serves WebAssembly components.
    #[must_use]
    pub fn takes_guests(self) -> bool {
        matches!(self, Self::Cloudgo | Self::Wasmtime)
    }

    /// What brings the program when it is missing.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::Cloudgo => "`make build` builds it",
            Self::Nginx => "install nginx",
            Self::Wasmtime | Self::Hyper | Self::Axum | Self::Fasthttp => {
                "`make bench-peers` builds it"
            }
        }
    }

    /// What stands in a line of its standard error before its address.
    pub(super) fn ready_mark(self) -> &'static str {
        match self {
            Self::Nginx => "start worker process ",
            _ => "http://",
        }
    }

    /// The argument that makes it print its version.
    #[must_use]
    pub fn version_flag(self) -> &'static str {
        match self {
            Self::Nginx => "-v",
            _ => "--version",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.program())
    }
}
