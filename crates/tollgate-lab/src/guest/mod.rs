//! The guest: a kernel of a few hundred instructions that crosses the rings by every mechanism, one experiment after the other,
//! and reports the outcomes over a serial port.
//!
//! It is written in assembly. Read it in this order: `entry.s` (from the loader to 64-bit mode), `tables.s` (GDT, IDT, TSS and
//! MSRs, and the reasons for their layout), `handlers.s` (the targets of the crossings), `program.s` (the code of ring 3),
//! `pieces.s` (the measured pieces in ring 0), `experiments.s` (the list), `wrong.s` (setups that are refused), `dispatch.s` (the
//! sequence of a run), `records.s` and `dump.s` (the output). The same image runs programs: `system/layout.s` and the files that
//! it names. It is assembled into read-only data of this program, where nothing executes it, and copied into a machine's memory.

mod experiments;
mod image;
mod outcome;
mod parameters;
pub(crate) mod preempted;
mod record;

pub use experiments::{EXPERIMENTS, Expected, Experiment, Feature, Group, Origin};
pub use image::{BASE, Code, Image};
pub(crate) use image::{LockWords, entry_of, lock_programs, system_state};
pub use outcome::{Ending, Outcome, Outcomes};
pub use parameters::{Chosen, Command, Parameters};
pub use record::{Complaint, Fault, Maker, Record, Report, Round, Serial, Text, Thread, ThreadState};
