//! Whether a guest runs under KVM. On some machines KVM emulates the guest's ring 0: booting Linux there would take hours,
//! and its times would be the emulator's. So a loop is timed in ring 0 first, as the lab does (`tollgate_kvm::Calibration`).

use std::sync::OnceLock;

use tollgate_kvm::Kvm;

use super::settings::{Accel, Vm};
use crate::error::{EnvironmentError, unusable};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    pub accel: Accel,
    /// A sentence that says why it is not KVM, if its name chose neither.
    pub remark: Option<String>,
}

/// Chooses what executes the code of a guest of this name. Fails if it asks for KVM and KVM cannot be used.
pub(super) fn choose(spec: &Vm) -> Result<Chosen, EnvironmentError> {
    choose_unless(spec, || match spec.arch.is_here() {
        true => refusal(),
        false => Some("KVM executes only programs of this machine's architecture"),
    })
}

fn choose_unless(spec: &Vm, refusal: impl Fn() -> Option<&'static str>) -> Result<Chosen, EnvironmentError> {
    let plain = |accel| Ok(Chosen { accel, remark: None });
    match spec.accel {
        _ if spec.exact => plain(Accel::Tcg),
        Some(Accel::Tcg) => plain(Accel::Tcg),
        Some(Accel::Kvm) => match refusal() {
            None => plain(Accel::Kvm),
            Some(why) => Err(unusable!(
                "vm: accel=kvm: {why}; omit accel=kvm to use QEMU's translator, which counts instructions"
            )),
        },
        None => match refusal() {
            None => plain(Accel::Kvm),
            Some(why) => Ok(Chosen {
                accel: Accel::Tcg,
                remark: Some(format!("vm: {why}; using QEMU's translator, which counts instructions")),
            }),
        },
    }
}

/// Why KVM cannot be used for Linux here, in a clause. It is determined once, in some milliseconds.
pub(super) fn refusal() -> Option<&'static str> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    FOUND.get_or_init(find).as_deref()
}

fn find() -> Option<String> {
    match Kvm::open() {
        Err(error) => Some(error.to_string()),
        Ok(kvm) => {
            let calibration = kvm.calibrate();
            calibration.is_emulated().then(|| format!("KVM emulates ring 0 here ({calibration})"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::EnvironmentKind;

    fn chosen(name: &str, refusal: Option<&'static str>) -> Result<Chosen, String> {
        let spec = Vm::read(name.strip_prefix("vm:")).unwrap();
        choose_unless(&spec, || refusal).map_err(|error| error.to_string())
    }

    #[test]
    fn kvm_is_taken_where_it_executes_ring_0() {
        let kvm = Ok(Chosen { accel: Accel::Kvm, remark: None });
        let tcg = Ok(Chosen { accel: Accel::Tcg, remark: None });
        for name in ["vm", "vm:accel=kvm"] {
            assert_eq!(chosen(name, None), kvm);
        }
        for name in ["vm:accel=tcg", "vm:exact"] {
            assert_eq!((chosen(name, None), chosen(name, Some("no"))), (tcg.clone(), tcg.clone()));
        }
    }

    #[test]
    fn the_translator_is_taken_with_a_reason_and_not_in_place_of_what_was_asked_for() {
        let taken = chosen("vm", Some("KVM emulates ring 0 here (a loop)")).unwrap();
        assert_eq!(taken.accel, Accel::Tcg);
        let why = "vm: KVM emulates ring 0 here (a loop); using QEMU's translator, which counts instructions";
        assert_eq!(taken.remark.as_deref(), Some(why));
        let why = chosen("vm:accel=kvm", Some("KVM emulates ring 0 here (a loop)")).unwrap_err();
        assert!(why.starts_with("vm: accel=kvm: KVM emulates ring 0 here (a loop); omit accel=kvm"), "{why}");
    }

    #[test]
    fn the_answer_of_this_machine_is_that_of_the_timed_loop() {
        let is_executed = Kvm::open().is_ok_and(|kvm| !kvm.calibrate().is_emulated());
        match refusal() {
            None => assert!(is_executed),
            Some(why) => assert!(!is_executed && why.contains("KVM") && !why.contains('\n'), "{why}"),
        }
    }
}
