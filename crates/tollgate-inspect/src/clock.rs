//! What time is read from.

use tollgate_model::{Fact, Unknown};

use crate::calls;
use crate::machine::{Answer, Machine, fact};

const DIRECTORY: &str = "/sys/devices/system/clocksource/clocksource0";
const AUXV: &str = "/proc/self/auxv";

pub(crate) fn current(machine: &Machine) -> Fact {
    fact(machine.line(&format!("{DIRECTORY}/current_clocksource")))
}

pub(crate) fn available(machine: &Machine) -> Fact {
    let line = machine.line(&format!("{DIRECTORY}/available_clocksource"));
    fact(line.map(|line| line.map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())))
}

/// Whether the kernel maps a vDSO: without one each reading of a clock is a system call.
pub(crate) fn vdso(machine: &Machine) -> Fact {
    fact(machine.or_call(told(machine), "getauxval(3)", || Some(calls::has_vdso())))
}

fn told(machine: &Machine) -> Answer<bool> {
    let bytes = machine.bytes(AUXV)?;
    match vdso_in(&bytes.value) {
        Some(present) => Ok(bytes.map(|_| present)),
        None => Err(Unknown::Unreadable(format!("{AUXV}: has no end"))),
    }
}

/// Whether an auxiliary vector, pairs of eight bytes each up to one of type `AT_NULL`, tells of a vDSO.
fn vdso_in(auxv: &[u8]) -> Option<bool> {
    let (pairs, _) = auxv.as_chunks::<16>();
    let pairs = pairs.iter().map(|&pair| {
        let pair = u128::from_le_bytes(pair);
        (pair as u64, (pair >> 64) as u64)
    });
    let mut present = false;
    for (kind, value) in pairs {
        match kind {
            libc::AT_NULL => return Some(present),
            libc::AT_SYSINFO_EHDR => present = value != 0,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn auxv(pairs: &[(u64, u64)]) -> Vec<u8> {
        pairs.iter().flat_map(|(kind, value)| [kind.to_le_bytes(), value.to_le_bytes()].concat()).collect()
    }

    #[test]
    fn auxiliary_vectors() {
        assert_eq!(vdso_in(&auxv(&[(6, 4096), (33, 0x7fff_0000), (0, 0)])), Some(true));
        assert_eq!(vdso_in(&auxv(&[(6, 4096), (0, 0), (33, 1)])), Some(false), "the end is the end");
        assert_eq!(vdso_in(&auxv(&[(33, 0), (0, 0)])), Some(false));
        assert_eq!(vdso_in(&auxv(&[(33, 0x7fff_0000)])), None, "cut off");
        assert_eq!(vdso_in(b""), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = vdso_in(&bytes);
        }
    }
}
