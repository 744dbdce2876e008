//! What one instance may grow to.

use wasmtime::{StoreLimits, StoreLimitsBuilder};

use crate::config::GuestLimits;

/// A limiter for one store: `memory.grow` and `table.grow` beyond it return -1 to the guest.
pub(crate) fn store_limits(limits: &GuestLimits) -> StoreLimits {
    StoreLimitsBuilder::new()
        .memory_size(usize::try_from(limits.memory).unwrap_or(usize::MAX))
        .table_elements(limits.table_elements)
        .build()
}
