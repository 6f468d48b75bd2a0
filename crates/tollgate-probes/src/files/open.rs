//! A file is opened.

use tollgate_model::Boundary::{KernelAllocation, KernelCode, KernelEntry, PathLookup, SystemCall};

use crate::bench::Timed;
use crate::probe::{PLAIN, Probe};

use super::names::There;
use super::place::Place;
use super::refusal::absence;
use super::single::arm;

pub(super) static PROBE: Probe = Probe {
    name: "files/open",
    operation: "One openat of a file by its name in an open directory, for reading; without the close.",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, KernelAllocation],
    timed: |_| Timed::Whole("openat(2)"),
    arm: |_, _| Ok(arm(There::opened(&Place::here()?)?)),
    absence,
    ..PLAIN
};
