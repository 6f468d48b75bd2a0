//! A file is looked at.

use tollgate_model::Boundary::{KernelCode, KernelEntry, PathLookup, SystemCall, UserCopy};

use crate::bench::Timed;
use crate::probe::{PLAIN, Probe};

use super::names::There;
use super::place::Place;
use super::refusal::absence;
use super::single::arm;

pub(super) static PROBE: Probe = Probe {
    name: "files/stat",
    operation: "One newfstatat of a file by its name in an open directory.",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, UserCopy],
    timed: |_| Timed::Whole("newfstatat(2)"),
    arm: |_, _| Ok(arm(There::looked_at(&Place::here()?)?)),
    absence,
    ..PLAIN
};
