//! The interrupt gate from a real 32-bit program.

use tollgate_model::Boundary::{CompatEntry, Exception, KernelCode, KernelEntry, SystemCall};

use crate::bench::timed::compat_loop;
use crate::bench::{Arm, Timed, TimedLoop};
use crate::probe::{PLAIN, Probe};

use super::results;

compat_loop! {
    /// Number -1 by INT 80h.
    refused_interrupt = "tollgate_compat_int80": "mov eax, -1", "int 0x80"
}

pub(super) static PROBE: Probe = Probe {
    name: "gates/compat-int80",
    operation: "One INT 80h with number -1, which the kernel refuses, from a 32-bit program.",
    crosses: &[KernelEntry, SystemCall, KernelCode, CompatEntry, Exception],
    timed: |_| Timed::once("int", TimedLoop::Compat(refused_interrupt)),
    arm: |probe, params| Arm::in_compat((probe.timed)(params), results::refused_32).map(|(arm, _)| arm),
    ..PLAIN
};
