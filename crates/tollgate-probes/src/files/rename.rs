//! A file gets another name.

use tollgate_model::Boundary::{FileSystem, KernelCode, KernelEntry, PathLookup, SystemCall};

use crate::bench::Timed;
use crate::probe::{PLAIN, Probe};

use super::names::Rename;
use super::place::Place;
use super::refusal::absence;
use super::single::arm;

pub(super) static PROBE: Probe = Probe {
    name: "files/rename",
    operation: "One renameat of a file within its directory, to a name that is free.",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, FileSystem],
    timed: |_| Timed::Whole("renameat(2)"),
    arm: |_, _| Ok(arm(Rename::new(&Place::here()?)?)),
    absence,
    ..PLAIN
};
