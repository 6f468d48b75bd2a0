//! The ways into the kernel that this environment offers.

use tollgate_model::{Fact, FactValue};

use crate::ring3::{Attempt, Ring3};
use crate::{machine::Machine, registry::spec};

/// A way into the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Mechanism {
    /// The instruction, or its substitute, and the programs that use it.
    pub name: &'static str,
    /// Whether it is offered here, with the source.
    pub offered: Fact,
}

/// Finds all ways on this machine. `seen` has the results of INT with each vector, if that was tried.
pub fn mechanisms(machine: &Machine, seen: Option<&Ring3>) -> Vec<Mechanism> {
    let vdso = || Mechanism { name: "vDSO, without a crossing", offered: fact(machine, "vdso.present") };
    if machine.is_arm64() {
        let offered = Fact::known(true, "Arm ARM, C6.2, SVC");
        return vec![Mechanism { name: "svc", offered }, vdso()];
    }
    let has = |feature: &str| fact(machine, feature).value().and_then(FactValue::as_flag) == Some(true);
    let (has_syscall, has_sysenter) = (has("cpu.feature.syscall"), has("cpu.feature.sep"));
    let vendor = fact(machine, "cpu.vendor");
    let vendor = vendor.value().and_then(FactValue::as_text);
    let is_amd = vendor.is_some_and(|vendor| ["AuthenticAMD", "HygonGenuine"].contains(&vendor));
    let of_32_bit = |instruction: bool, bit: &str, maker: bool, whose: &str| match fact(machine, "abi.ia32") {
        _ if !maker => Fact::known(false, format!("{whose} processors have none in compatibility mode")),
        _ if !instruction => Fact::known(false, bit),
        Fact::Known { value, source } => {
            let is_enabled = value.as_text().is_some_and(|text| !text.starts_with("disabled"));
            Fact::known(is_enabled, format!("{bit}, {source}"))
        }
        unknown => unknown,
    };
    vec![
        Mechanism { name: "syscall", offered: Fact::known(has_syscall, "CPUID.80000001h:EDX[11]") },
        Mechanism {
            name: "sysenter, 32-bit programs",
            offered: of_32_bit(has_sysenter, "CPUID.1:EDX[11]", !is_amd, "AMD"),
        },
        Mechanism {
            name: "syscall, 32-bit programs",
            offered: of_32_bit(has_syscall, "CPUID.80000001h:EDX[11]", is_amd, "Intel"),
        },
        Mechanism { name: "int 80h", offered: int_80(seen) },
        vdso(),
        Mechanism { name: "FRED instead of the IDT", offered: fred(machine) },
    ]
}

fn fact(machine: &Machine, name: &str) -> Fact {
    let read = spec(name).and_then(|spec| spec.read(machine).into_iter().next());
    read.map_or_else(|| Fact::absent(format!("{name} is not a fact here")), |(_, fact)| fact)
}

fn int_80(seen: Option<&Ring3>) -> Fact {
    const SOURCE: &str = "tried";
    match seen.and_then(|seen| seen.vectors.get(0x80)) {
        Some(Attempt::Done(answered)) => Fact::known(*answered, SOURCE),
        Some(Attempt::Signal { .. } | Attempt::Killed(_)) => Fact::known(false, SOURCE),
        Some(Attempt::NotTried) | None => Fact::refused("it could not be tried"),
    }
}

fn fred(machine: &Machine) -> Fact {
    match fact(machine, "kernel.entry_features") {
        Fact::Known { value: FactValue::List(used), source } => {
            Fact::known(used.iter().any(|feature| feature == "fred"), source)
        }
        unknown => unknown,
    }
}

#[cfg(test)]
mod tests {
    use tollgate_arch::architecture::HERE;

    use super::*;

    #[test]
    fn this_program_came_in_by_one_of_them() {
        let here = mechanisms(&Machine::here(), crate::ring3().ok().as_ref());
        for mechanism in &here {
            println!("{}: {:?}", mechanism.name, mechanism.offered);
        }
        let is_offered = |name: &str| {
            let found = here.iter().find(|mechanism| mechanism.name == name);
            found.and_then(|mechanism| mechanism.offered.value()?.as_flag())
        };
        assert_eq!(is_offered(HERE.spelling("syscall/svc")), Some(true));
        let both = ["sysenter, 32-bit programs", "syscall, 32-bit programs"].map(is_offered);
        assert_ne!(both, [Some(true), Some(true)], "of the two no processor has both in compatibility mode");
    }
}
