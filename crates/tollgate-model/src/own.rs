//! The names of the engine's own benchmarks, by which estimates and verdicts are judged.

/// The prefix of all their names.
const SUITE: &str = "bench/";

/// Whether a benchmark is the engine's own.
pub fn is_own(benchmark: &str) -> bool {
    benchmark.starts_with(SUITE)
}

/// An empty loop less an empty loop: the error of the measurement.
pub const EMPTY_LOOP: &str = "bench/empty-loop";

/// Loop overhead: an iteration of the empty loop, with nothing subtracted. It shows the processor's frequency.
pub const RAW_LOOP: &str = "bench/empty-loop-raw";

/// Timer overhead: two clock readings with nothing between.
pub const CLOCK_PAIR: &str = "bench/clock-pair";

/// The canary: the plainest system call, for a few microseconds in each round. It shows what slowed a process from outside.
pub const CANARY: &str = "bench/canary";

/// The A/A control: a second instance of its baseline's code in the same rounds. The A/A difference is the error of a
/// comparison.
pub const CONTROL: &str = "bench/control";

/// The surroundings of a timed command: a shell that does nothing, or without a shell a process that ends at once.
pub const START: &str = "bench/start";

/// Traced executions of a command, which are not among the timed ones.
pub const TRACED: &str = "bench/traced";
