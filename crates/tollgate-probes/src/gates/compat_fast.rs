//! The 32-bit program's fast way in: whatever its vDSO holds.

use tollgate_model::Boundary::{CompatEntry, CompatFastEntry, KernelCode, KernelEntry, SystemCall};

use crate::bench::timed::compat_loop;
use crate::bench::{Arm, Entry, Refusal, Timed, TimedLoop};
use crate::probe::{PLAIN, Probe};

use super::results;

compat_loop! {
    /// Number -1 through `__kernel_vsyscall`.
    refused_vsyscall = "tollgate_compat_fast": "mov eax, -1", "call esi"
}

pub(super) static PROBE: Probe = Probe {
    name: "gates/compat-fast",
    operation: "One refused call from a 32-bit program through its vDSO, by the instruction found there.",
    crosses: &[KernelEntry, SystemCall, KernelCode, CompatEntry, CompatFastEntry],
    timed: |_| Timed::once("call", TimedLoop::Compat(refused_vsyscall)),
    arm: |probe, params| {
        let (arm, entry) = Arm::in_compat((probe.timed)(params), results::refused_32)?;
        match entry {
            Entry::Unknown => Err(Refusal::Skip("32-bit programs have no vDSO here (AT_SYSINFO)".to_owned())),
            entry => Ok(arm.with_notes([format!("enters by {}", entry.name())])),
        }
    },
    ..PLAIN
};
