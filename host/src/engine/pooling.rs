//! How large the instance pool is: as many instances as requests are admitted, each with what the
//! component was seen to need.

use wasmtime::{Enabled, PoolingAllocationConfig};

use super::Wasi;

/// What one instance of a component takes from the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstanceNeeds {
    pub(crate) core_instances: u32,
    pub(crate) memories: u32,
    pub(crate) tables: u32,
    pub(crate) table_elements: usize,
}

impl Default for InstanceNeeds {
    /// Enough for what the usual toolchains produce: an adapter, a shim and a fixup beside the main module.
    fn default() -> Self {
        Self {
            core_instances: 8,
            memories: 1,
            tables: 4,
            table_elements: 20_000,
        }
    }
}

impl InstanceNeeds {
    /// The larger of both in every respect.
    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            core_instances: self.core_instances.max(other.core_instances),
            memories: self.memories.max(other.memories),
            tables: self.tables.max(other.tables),
            table_elements: self.table_elements.max(other.table_elements),
        }
    }

    /// Whether a pool planned for these needs also serves `other`.
    pub(crate) fn cover(self, other: Self) -> bool {
        self.union(other) == self
    }
}

/// The size of a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolPlan {
    /// Instances at once.
    pub(crate) slots: usize,
    /// Bytes that one memory may have.
    pub(crate) memory: u64,
    /// What one instance takes.
    pub(crate) needs: InstanceNeeds,
}

impl PoolPlan {
    /// A pool for `requests` admitted requests. The rest is room for instances whose request is over
    /// and whose work is not, and for the first instance of a guest that is being loaded.
    pub(crate) fn new(requests: usize, memory: u64, needs: InstanceNeeds) -> Self {
        Self {
            slots: requests + requests / 8 + 4,
            memory,
            needs,
        }
    }

    pub(super) fn allocation(&self, wasi: Wasi) -> PoolingAllocationConfig {
        let slots = u32::try_from(self.slots).unwrap_or(u32::MAX);
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(slots)
            .total_core_instances(slots.saturating_mul(self.needs.core_instances))
            .total_memories(slots.saturating_mul(self.needs.memories))
            .total_tables(slots.saturating_mul(self.needs.tables))
            // A WASI 0.3 instance may run a second stack while one waits inside a host call.
            .total_stacks(slots.saturating_mul(if wasi == Wasi::P3 { 2 } else { 1 }))
            .total_gc_heaps(slots)
            .table_elements(self.needs.table_elements)
            .max_tables_per_module(self.needs.tables)
            .max_memories_per_module(self.needs.memories)
            .max_core_instance_size(4 << 20)
            .max_component_instance_size(4 << 20)
            .max_memory_size(usize::try_from(self.memory).unwrap_or(usize::MAX));
        keep_resident(&mut pool, self.slots);
        pool
    }
}

/// Resetting an instance by writing zeroes to its few touched pages is 3 to 4 times cheaper than giving
/// them back to the system and faulting them in again. The touched pages are found by a page map scan,
/// which must not be used where pages may be swapped out: a swapped page would be neither seen nor reset.
fn keep_resident(pool: &mut PoolingAllocationConfig, slots: usize) {
    const MIB: usize = 1 << 20;
    if swap_is_active() {
        tracing::info!(
            "the system has active swap: instances are reset without a page map scan (slower)"
        );
        return;
    }
    // What idle slots keep stays below half a GiB in all.
    let bytes = (512 * MIB / slots.max(1)).clamp(64 << 10, 2 * MIB) & !0xffff;
    pool.pagemap_scan(Enabled::Auto)
        .linear_memory_keep_resident(bytes)
        .table_keep_resident(bytes.min(MIB));
}

/// Whether any swap area is in use; where the system does not tell, it is taken to be.
fn swap_is_active() -> bool {
    std::fs::read_to_string("/proc/swaps").map_or(true, |text| text.lines().count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_cover_what_is_smaller_in_every_respect() {
        let usual = InstanceNeeds::default();
        assert!(usual.cover(InstanceNeeds {
            core_instances: 3,
            ..usual
        }));
        let many_tables = InstanceNeeds { tables: 9, ..usual };
        assert!(!usual.cover(many_tables));
        assert!(usual.union(many_tables).cover(many_tables));
    }

    #[test]
    fn the_pool_is_larger_than_what_is_admitted() {
        for requests in [1, 4, 1000] {
            let plan = PoolPlan::new(requests, 1 << 20, InstanceNeeds::default());
            assert!(plan.slots > requests);
        }
    }
}
