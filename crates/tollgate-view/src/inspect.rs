//! The state that determines latencies, as text and as JSON.

pub mod facts;
