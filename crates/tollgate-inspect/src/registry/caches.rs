use tollgate_model::Boundary::{CacheLine, MemoryAccess};

use crate::topology;

facts! {
    pub(super) FACTS
    "cache.line" Number("/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size")
        "The size of a cache line in bytes.";
    "cache.*" Family(topology::caches)
        "The size of a cache in bytes, its ways, the processors that share it, its instances over all processors (with their sizes where \
         these differ), and CPUID's answer where it differs."
        [MemoryAccess, CacheLine] "a working set that fits in a level has that level's latency";
}
