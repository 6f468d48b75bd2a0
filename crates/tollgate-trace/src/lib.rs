//! Traces a command and all that it starts, and reports where the time went: real, user, sys, waiting, and by system call.
//!
//! [`trace`] traces a command, and [`end_like`] ends as it did; [`attach`](attach()) traces running processes. The modules:
//! - [`request`]: what to trace, how closely, and by which backend. [`outcome`]: the result. `attach`: running processes.
//! - `launch`: the command as a process that waits to be released, and ends as without a tracer. `run`: its execution.
//! - [`keys`]: a command on a terminal of its own, to which recorded keys are typed, and its delay for each.
//! - `bpf`: BPF programs at the kernel's tracepoints. `ptrace`: for users who may not load them.
//! - [`calls`]: the kernel's tables of system calls. `operations`: their operations on files. `direct`: refused direct I/O.
//! - [`log`]: a log of strace(1), read as a trace. [`output`]: a traced command as text and as JSON.

#![deny(unsafe_code)]

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/takes_any.rs"]
mod takes_any;

mod attach;
mod bpf;
mod clock;
mod descendants;
mod direct;
pub mod keys;
mod launch;
pub mod log;
mod operations;
pub mod outcome;
pub mod output;
mod ptrace;
pub mod request;
mod run;
mod symbols;

pub use tollgate_os::calls;

pub use attach::{Interval, attach};
pub use launch::ending::end_like;
pub use outcome::{Calibration, Event, Trace, TraceError, Used};
pub use request::{Choice, Group, Request, Running};
pub use run::{calibrate, trace, trace_nothing};
pub use symbols::{UserCode, UserFunction};
