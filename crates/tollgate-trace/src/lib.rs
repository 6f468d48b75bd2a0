//! Follows a command and all that it starts, and says where the time went: real, user, sys and waiting, and each system call with
//! what it passed its time with.
//!
//! [`trace`] is all there is to call, and [`end_like`] to end as the command did. The rooms:
//! - [`request`]: what to follow, how closely, and by whom. [`followed`]: what came of it.
//! - `launch`: the command as a process that waits to be let go, and ends as it would have ended alone. `course`: from there to its end.
//! - `bpf`: programs of ours at the kernel's tracepoints. `ptrace`: for everybody who may not load them.
//! - [`calls`]: the kernel's tables of system calls. `operations`: what they do with files.

#![deny(unsafe_code)]

mod bpf;
pub mod calls;
mod course;
pub mod followed;
mod launch;
mod operations;
mod ptrace;
pub mod request;

pub use course::{calibrate, trace};
pub use followed::{Calibration, Event, Trace, TraceError};
pub use launch::ending::end_like;
pub use request::{Choice, Request};
