//! Traces a command and all that it starts, and says where the time went: real, user, sys and waiting, and each system call with
//! how its time passed.
//!
//! [`trace`] traces a command, and [`end_like`] ends as it did; [`attach`](attach()) traces processes that run already. The modules:
//! - [`request`]: what to trace, how closely, and by which backend. [`outcome`]: the result.
//! - `attach`: processes that run already.
//! - `launch`: the command as a process that waits to be let go, and ends as it would have ended alone. `run`: from there to its end.
//! - [`keys`]: a command on a terminal of its own, to which recorded keys are typed, and its delay for each.
//! - `bpf`: our programs at the kernel's tracepoints. `ptrace`: for users who may not load them.
//! - [`calls`]: the kernel's tables of system calls. `operations`: their operations on files. `direct`: direct I/O that was refused.
//! - [`log`]: a log of strace(1), read as a trace.
//! - [`output`]: what a traced command looks like, as text and as JSON.

#![deny(unsafe_code)]

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
