use tollgate_arch::counter;
use tollgate_model::Unknown;

use crate::calls;
use crate::machine::{Answer, Machine, found};

const DIRECTORY: &str = "/sys/devices/system/clocksource/clocksource0";
const AUXV: &str = "/proc/self/auxv";
const AUXILIARY: &str = "getauxval(3) AT_SYSINFO_EHDR";
/// `KVM_FEATURE_CLOCKSOURCE_STABLE_BIT` in Documentation/virt/kvm/x86/cpuid.rst.
const KVM_STABLE_CLOCK: u32 = 24;

pub(crate) fn available(machine: &Machine) -> Answer<Vec<String>> {
    Ok(machine.line(&format!("{DIRECTORY}/available_clocksource"))?.map(|text| crate::text::words(&text)))
}

/// Whether the vDSO can read the current clock source: `vdso_clock_mode` of the sources in arch/x86 and drivers/clocksource.
pub(crate) fn in_user_mode(machine: &Machine) -> Answer<bool> {
    let source = machine.line(&format!("{DIRECTORY}/current_clocksource"))?;
    let mapped = machine.or_call(vdso_in_auxv(machine), AUXILIARY, || Some(calls::has_vdso()))?;
    if !mapped.value {
        return Ok(mapped);
    }
    let because = |why: &str| format!("{} {:?}, {why}", source.source, source.value);
    match source.value.as_str() {
        "tsc" | "tsc-early" => found(source.value == "tsc", because("vDSO mode TSC")),
        // The driver leaves its mode out where an erratum of the timer applies (drivers/clocksource/arm_arch_timer.c).
        "arch_sys_counter" => found(true, because("vDSO mode ARCHTIMER unless the timer has an erratum")),
        "hyperv_clocksource_tsc_page" => found(true, because("vDSO mode HVCLOCK")),
        // The page of the paravirtual clock is used only if the host promises that all of them agree.
        "kvm-clock" => match crate::hypervisor::kvm_bit(machine, KVM_STABLE_CLOCK) {
            Some(stable) => found(stable, because("KVM's CPUID feature 24")),
            None => Err(Unknown::Absent("KVM's CPUID features were not captured".to_owned())),
        },
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "hyperv_clocksource_msr" | "pit" => {
            found(false, because("vDSO mode NONE"))
        }
        other => Err(Unknown::Absent(format!("it is unknown how {other:?} is read"))),
    }
}

/// The rate of the tick per second: the resolution of a clock that the tick updates.
pub(crate) fn tick_rate(machine: &Machine) -> Answer<i64> {
    let step = machine
        .call("clock_getres(2) CLOCK_MONOTONIC_COARSE", || calls::resolution(libc::CLOCK_MONOTONIC_COARSE));
    step.and_then(|step| {
        // CONFIG_HZ is 100 to 1000; sandbox kernels report 1 ns.
        let rate = 1_000_000_000_i64.checked_div(step.value).unwrap_or(0);
        match rate {
            10..=10_000 => found(rate, step.source),
            _ => Err(Unknown::Absent(format!("{}: {} ns is not a tick", step.source, step.value))),
        }
    })
}

/// As the firmware wrote it into CNTFRQ_EL0 (Arm ARM, D12.1.2).
pub(crate) fn counter_frequency(machine: &Machine) -> Answer<i64> {
    let ask = || Ok(counter::stated_rate().ok_or(libc::ENOSYS)? as i64);
    machine.call("MRS of CNTFRQ_EL0", ask)
}

pub(crate) fn tsc_frequency(machine: &Machine) -> Answer<i64> {
    match machine.leaves()?.tsc_frequency() {
        Some((hz, leaf)) => found(i64::try_from(hz).unwrap_or(i64::MAX), leaf),
        None => Err(Unknown::Absent("neither CPUID.15h nor CPUID.40000010h states it".to_owned())),
    }
}

/// The offsets that the time namespace adds to the clocks, such as `monotonic 86400 s`.
pub(crate) fn offsets(machine: &Machine) -> Answer<Vec<String>> {
    machine.text("/proc/self/timens_offsets")?.parse("clocks with seconds and nanoseconds", offsets_in)
}

/// Parses lines `monotonic           0         0`.
fn offsets_in(text: &str) -> Option<Vec<String>> {
    let mut offsets = Vec::new();
    for line in text.lines().take(16) {
        let mut words = line.split_whitespace();
        let (clock, seconds, nanoseconds) = (words.next()?, words.next()?, words.next()?);
        let (seconds, nanoseconds): (i64, i64) = (seconds.parse().ok()?, nanoseconds.parse().ok()?);
        if seconds != 0 || nanoseconds != 0 {
            offsets.push(format!("{clock} {seconds} s {nanoseconds} ns"));
        }
    }
    Some(offsets)
}

pub(crate) fn vdso(machine: &Machine) -> Answer<bool> {
    machine.or_call(vdso_in_auxv(machine), AUXILIARY, || Some(calls::has_vdso()))
}

fn vdso_in_auxv(machine: &Machine) -> Answer<bool> {
    Ok(in_auxv(machine, libc::AT_SYSINFO_EHDR)?.map(|address| address.is_some_and(|address| address != 0)))
}

/// A value of this process's auxiliary vector, if it has that type.
pub(crate) fn in_auxv(machine: &Machine, kind: u64) -> Answer<Option<u64>> {
    let bytes = machine.bytes(AUXV)?;
    match value_in(&bytes.value, kind) {
        Some(value) => Ok(bytes.map(|_| value)),
        None => Err(Unknown::Unreadable(format!("{AUXV}: has no end"))),
    }
}

/// The value of a type in an auxiliary vector, pairs of eight bytes each up to one of type `AT_NULL`; `None` if it has no end.
fn value_in(auxv: &[u8], wanted: u64) -> Option<Option<u64>> {
    let (pairs, _) = auxv.as_chunks::<16>();
    let pairs = pairs.iter().map(|&pair| {
        let pair = u128::from_le_bytes(pair);
        (pair as u64, (pair >> 64) as u64)
    });
    let mut found = None;
    for (kind, value) in pairs {
        if kind == libc::AT_NULL {
            return Some(found);
        }
        found = Some(value).filter(|_| kind == wanted).or(found);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auxv(pairs: &[(u64, u64)]) -> Vec<u8> {
        pairs.iter().flat_map(|(kind, value)| [kind.to_le_bytes(), value.to_le_bytes()].concat()).collect()
    }

    #[test]
    fn auxiliary_vectors() {
        assert_eq!(value_in(&auxv(&[(6, 4096), (33, 0x7fff_0000), (0, 0)]), 6), Some(Some(4096)));
        assert_eq!(value_in(&auxv(&[(6, 4096), (0, 0), (33, 1)]), 33), Some(None), "the end is the end");
        assert_eq!(value_in(&auxv(&[(33, 0x7fff_0000)]), 33), None, "cut off");
        assert_eq!(value_in(b"", 33), None);
    }

    #[test]
    fn offsets_of_a_time_namespace() {
        assert_eq!(
            offsets_in("monotonic           0         0\nboottime            0         0\n"),
            Some(vec![])
        );
        let moved = offsets_in("monotonic   86400   5\nboottime 0 0\n");
        assert_eq!(moved, Some(vec!["monotonic 86400 s 5 ns".to_owned()]));
        assert_eq!(offsets_in("monotonic x 0"), None);
    }

    takes_any! {
        text in "\\PC{0,100}|([a-z]{0,9} [0-9-]{0,22} [0-9]{0,22}\n){0,4}", bytes in any::<Vec<u8>>() =>
        offsets_in(&text), value_in(&bytes, 6)
    }
}
