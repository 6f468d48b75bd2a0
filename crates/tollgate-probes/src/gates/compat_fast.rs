//! The 32-bit program's fast way in: whatever its vDSO holds.

use crate::bench::timed::compat_loop;
use crate::bench::{Arm, Entry, Refusal, TimedLoop};
use crate::probe::{Probe, never_absent, one_case};

use super::results;

compat_loop! {
    /// Number -1 through `__kernel_vsyscall`.
    refused_vsyscall = "tollgate_compat_fast": "mov eax, -1", "call esi"
}

pub(super) static PROBE: Probe = Probe {
    name: "gates/compat-fast",
    operation: "One refused call from a 32-bit program through its vDSO, by the instruction found there.",
    instruction: "call",
    timed: TimedLoop::Compat(refused_vsyscall),
    against: None,
    cases: one_case,
    arm: |probe, _| {
        let (arm, entry) = Arm::in_compat(probe.timed, results::refused_32)?;
        match entry {
            Entry::Unknown => Err(Refusal::Skip("32-bit programs have no vDSO here (AT_SYSINFO)".to_owned())),
            entry => Ok(arm.with_notes([format!("enters by {}", entry.name())])),
        }
    },
    absence: never_absent,
};
