//! Caches.

use super::{FactSpec, family, one};
use crate::topology;

pub(super) const FACTS: &[FactSpec] = &[
    one("cache.line", topology::cache_line, "The size of a cache line in bytes."),
    family(
        "cache.*",
        topology::caches,
        "A cache's size in bytes, the processors that share it, and what CPUID says where that differs.",
    )
    .moves("lines and memory: what fits in a level costs that level's latency"),
];
