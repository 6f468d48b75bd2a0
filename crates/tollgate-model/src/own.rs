//! The names of what the bench measures of itself: it writes them, and prices and verdicts are judged by them.

/// What all their names begin with; no price of a place does.
pub const SUITE: &str = "bench/";

/// An empty loop against an empty loop: what it measures is the error of measuring.
pub const EMPTY_LOOP: &str = "bench/empty-loop";

/// The empty loop's own cost per iteration, not subtracted from anything: the pace of the processor.
pub const RAW_LOOP: &str = "bench/empty-loop-raw";

/// Two readings of the clock with nothing between.
pub const CLOCK_PAIR: &str = "bench/clock-pair";

/// The same code as the benchmark it is held against, as a second arm of the same rounds: what it differs by is the
/// error of a comparison.
pub const CONTROL: &str = "bench/control";
