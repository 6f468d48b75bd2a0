//! Whether software executes the instructions of a machine that has no CPUID to name it. As in [`timed`](crate::timed), the times are
//! a fact, not a latency: they lie far apart.

#![allow(unsafe_code)]

use std::sync::OnceLock;

use tollgate_arch::software::IS_SOFTWARE;

use crate::calls;
use crate::machine::Machine;

pub(crate) const CALL: &str = "an FRSQRTE takes more than 128 times as long as an ADD";

/// The evidence, if there is some.
pub(crate) fn evidence(machine: &Machine) -> Option<String> {
    static IS: OnceLock<Result<bool, i32>> = OnceLock::new();
    if machine.leaves().is_ok() {
        return None;
    }
    let is = machine.call(CALL, || *IS.get_or_init(by_times)).ok()?;
    is.value.then_some(is.source)
}

fn by_times() -> Result<bool, i32> {
    let is_software = IS_SOFTWARE.ok_or(libc::ENOSYS)?;
    calls::expect_tsc()?;
    // SAFETY: the process may read the counter.
    Ok(unsafe { is_software() })
}
