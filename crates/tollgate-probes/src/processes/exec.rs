//! A process that becomes another program.

use tollgate_model::Boundary::{Exec, KernelAllocation, KernelCode, PageFault, Tlb};

use crate::bench::Timed;
use crate::probe::{PLAIN, Probe, each_word, word};

use super::creation::{LINKS, What};
use super::image::{IMAGES, Image};
use super::stage::arm;

pub(super) static PROBE: Probe = Probe {
    name: "processes/exec",
    operation: "One execve, by which a process becomes a program that executes the next: a chain of five less a chain \
                of one, divided by four.",
    crosses: &[Exec, PageFault, Tlb, KernelAllocation, KernelCode],
    timed: |_| Timed::Whole("execve(2)"),
    cases: || each_word("image", &IMAGES.map(|(name, _)| name)),
    arm: |_, params| Ok(arm(What::Exec(Image::of(word(params, "image"))), params)?.with_ops(LINKS as u64)),
    ..PLAIN
};
