//! A file is closed after it was written.

use tollgate_model::Boundary::{FileSystem, KernelCode, KernelEntry, SystemCall};

use crate::bench::Timed;
use crate::probe::{PLAIN, Probe};

use super::names::Close;
use super::place::Place;
use super::refusal::absence;
use super::single::arm;

pub(super) static PROBE: Probe = Probe {
    name: "files/close-after-write",
    operation: "One close of a file in which 4 KiB were just written.",
    crosses: &[KernelEntry, SystemCall, KernelCode, FileSystem],
    timed: |_| Timed::Whole("close(2)"),
    arm: |_, _| Ok(arm(Close::new(&Place::here()?)?)),
    absence,
    ..PLAIN
};
