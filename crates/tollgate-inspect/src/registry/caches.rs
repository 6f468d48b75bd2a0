//! Caches.

use tollgate_model::Boundary::{CacheLine, MemoryAccess};

use super::{FactSpec, family, one};
use crate::topology;

pub(super) const FACTS: &[FactSpec] = &[
    one("cache.line", topology::cache_line, "The size of a cache line in bytes."),
    family(
        "cache.*",
        topology::caches,
        "The size of a cache in bytes, the processors that share it, and CPUID's answer where it differs.",
    )
    .affects(&[MemoryAccess, CacheLine], "a working set that fits in a level has that level's latency"),
];
