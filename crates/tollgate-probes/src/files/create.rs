//! A file is made.

use tollgate_model::Boundary::{
    FileSystem, KernelAllocation, KernelCode, KernelEntry, PathLookup, SystemCall,
};

use crate::bench::Timed;
use crate::probe::{PLAIN, Probe};

use super::names::Create;
use super::place::Place;
use super::refusal::absence;
use super::single::arm;

pub(super) static PROBE: Probe = Probe {
    name: "files/create",
    operation: "One openat that makes an empty file (O_CREAT, O_EXCL); without the close and the unlink.",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, FileSystem, KernelAllocation],
    timed: |_| Timed::Whole("openat(2)"),
    arm: |_, _| Ok(arm(Create::new(&Place::here()?)?)),
    absence,
    ..PLAIN
};
