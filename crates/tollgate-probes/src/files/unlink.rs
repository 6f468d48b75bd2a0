//! A file is taken away.

use tollgate_model::Boundary::{FileSystem, KernelCode, KernelEntry, PageCache, PathLookup, SystemCall};

use crate::bench::Timed;
use crate::probe::{PLAIN, Probe};

use super::names::Unlink;
use super::place::Place;
use super::refusal::absence;
use super::single::arm;

pub(super) static PROBE: Probe = Probe {
    name: "files/unlink",
    operation: "One unlinkat of a file of 4 KiB that was just written and closed: its pages and blocks go with it.",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, FileSystem, PageCache],
    timed: |_| Timed::Whole("unlinkat(2)"),
    arm: |_, _| Ok(arm(Unlink::new(&Place::here()?)?)),
    absence,
    ..PLAIN
};
