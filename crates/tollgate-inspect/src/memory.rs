use tollgate_arch::memory;
use tollgate_model::Unknown;

use crate::calls;
use crate::clock::in_auxv;
use crate::machine::{Answer, Machine};
use crate::text::{keyed, kilobytes};

const MEMINFO: &str = "/proc/meminfo";

/// In bytes.
pub(crate) fn total(machine: &Machine) -> Answer<i64> {
    let ask = || calls::sysinfo().map(|info| info.memory);
    machine.or_call(listed(machine, "MemTotal"), "sysinfo(2) totalram", ask)
}

/// In bytes: the kernel's estimate of memory available without swapping, or free memory if it has none.
pub(crate) fn available(machine: &Machine) -> Answer<i64> {
    let ask = || calls::sysinfo().map(|info| info.free);
    machine.or_call(listed(machine, "MemAvailable"), "sysinfo(2) freeram", ask)
}

/// In bytes.
pub(crate) fn page_size(machine: &Machine) -> Answer<i64> {
    let listed = in_auxv(machine, libc::AT_PAGESZ).and_then(|found| match found.value.map(i64::try_from) {
        Some(Ok(bytes)) => Ok(found.map(|_| bytes)),
        _ => Err(Unknown::Absent(format!("{} has no size of a page", found.source))),
    });
    machine.or_call(listed, "getauxval(3) AT_PAGESZ", || i64::try_from(memory::page_size()).ok())
}

pub(crate) fn listed(machine: &Machine, key: &str) -> Answer<i64> {
    let value = machine.text(MEMINFO)?.part(key, |text| keyed(text, key).map(str::to_owned))?;
    value.parse("an amount in kB", kilobytes)
}
