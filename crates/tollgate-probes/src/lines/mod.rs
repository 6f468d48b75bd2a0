//! What it costs when two cores want the same cache line, and how far away the memory is.

mod topology;
