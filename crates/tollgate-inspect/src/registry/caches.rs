//! Caches.

use tollgate_model::Boundary::{CacheLine, MemoryAccess};

use super::{FactSpec, family, one};
use crate::topology;

pub(super) const FACTS: &[FactSpec] = &[
    one("cache.line", topology::cache_line, "The size of a cache line in bytes."),
    family(
        "cache.*",
        topology::caches,
        "A cache's size in bytes, the processors that share it, and what CPUID says where that differs.",
    )
    .affects(&[MemoryAccess, CacheLine], "a working set that fits in a level has that level's latency"),
];
