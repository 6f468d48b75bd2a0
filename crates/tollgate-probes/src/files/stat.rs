//! A file is looked at.

use crate::bench::Timed;
use crate::probe::{PLAIN, Probe};

use super::names::There;
use super::place::Place;
use super::refusal::absence;
use super::single::arm;

pub(super) static PROBE: Probe = Probe {
    name: "files/stat",
    operation: "One newfstatat of a file by its name in an open directory.",
    timed: |_| Timed::Whole("newfstatat(2)"),
    arm: |_, _| Ok(arm(There::looked_at(&Place::here()?)?)),
    absence,
    ..PLAIN
};
