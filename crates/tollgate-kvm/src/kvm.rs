//! Opening KVM, and running a guest.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use kvm_bindings::{CpuId, KVM_API_VERSION, KVM_MAX_CPUID_ENTRIES};
use kvm_ioctls::Cap;
use tollgate_model::text::plainly;

use crate::alarm::Alarm;
use crate::refused::{failed, failed_io, unavailable};
use crate::vm::Vm;
use crate::{Calibration, Guest, KvmError, Left, ring0, run, state};

/// An open /dev/kvm.
#[derive(Debug)]
pub struct Kvm {
    kvm: kvm_ioctls::Kvm,
    /// The answer of KVM_GET_SUPPORTED_CPUID: all features that this processor and this KVM can give a guest.
    cpuid: CpuId,
    calibration: OnceLock<Calibration>,
}

impl Kvm {
    /// Opens /dev/kvm and checks that it offers what a guest needs.
    ///
    /// # Errors
    /// [`KvmError::Unavailable`] if it is absent, may not be opened, or has another interface than the known one.
    pub fn open() -> Result<Self, KvmError> {
        let kvm = kvm_ioctls::Kvm::new().map_err(|error| unavailable(not_opened(error.errno())))?;
        let version = kvm.get_api_version();
        if u32::try_from(version) != Ok(KVM_API_VERSION) {
            return Err(unavailable(format!("its API has version {version}, not {KVM_API_VERSION}")));
        }
        for (cap, name) in [(Cap::UserMemory, "KVM_CAP_USER_MEMORY"), (Cap::ExtCpuid, "KVM_CAP_EXT_CPUID")] {
            if !kvm.check_extension(cap) {
                return Err(unavailable(format!("it does not offer {name}")));
            }
        }
        let cpuid =
            kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES).map_err(failed("KVM_GET_SUPPORTED_CPUID"))?;
        Ok(Self { kvm, cpuid, calibration: OnceLock::new() })
    }

    /// Returns whether the processor itself executes a guest's ring 0. The first call measures it, in milliseconds.
    pub fn calibrate(&self) -> &Calibration {
        self.calibration.get_or_init(|| {
            let ran = self.with_vm(ring0::MEMORY, ring0::PATIENCE, ring0::calibrate);
            ran.unwrap_or_else(|error| Calibration::Failed { why: error.to_string() })
        })
    }

    /// Runs a guest on the host's processor, in a thread that inherits the caller's affinity: a pinned caller pins it too.
    ///
    /// # Errors
    /// [`KvmError`] if the guest could not be run at all. A guest that was stopped is not an error.
    pub fn run(&self, guest: Guest<'_>) -> Result<Left, KvmError> {
        self.with_vm(guest.memory, guest.patience, |vm, alarm| {
            vm.load(guest.image, guest.base)?;
            vm.enter(guest.entry, state::protected)?;
            let mut serial = Vec::new();
            let cut_short = run::run(vm, alarm, &mut serial);
            // Memory comes in whole pages; the guest gets the requested size.
            let mut memory = vm.memory.copy();
            memory.truncate(guest.memory);
            Ok(Left { serial, memory, cut_short })
        })
    }

    /// Makes a virtual machine with `memory` bytes in a thread of its own, where `work` may use it for as long as
    /// `patience` lasts. The thread handles no signals; a signal that is sent to it is gone when the thread ends.
    fn with_vm<T: Send>(
        &self,
        memory: usize,
        patience: Duration,
        work: impl FnOnce(&mut Vm, &Alarm) -> Result<T, KvmError> + Send,
    ) -> Result<T, KvmError> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("vcpu".to_owned()).spawn_scoped(scope, || {
                let alarm = Alarm::after(patience)
                    .map_err(|error| unavailable(format!("no timer: {}", plainly(&error))))?;
                let mut vm = Vm::new(&self.kvm, &self.cpuid, memory)?;
                alarm.reaches(&vm.vcpu).map_err(failed_io("KVM_SET_SIGNAL_MASK"))?;
                work(&mut vm, &alarm)
            });
            let thread = thread.map_err(failed_io("no thread"))?;
            thread.join().unwrap_or_else(|_| Err(unavailable("its thread has died".to_owned())))
        })
    }
}

fn not_opened(errno: i32) -> String {
    let error = plainly(&io::Error::from_raw_os_error(errno));
    match errno {
        libc::ENOENT => {
            "/dev/kvm does not exist: the hardware has no virtualization, or the module is not loaded"
                .to_owned()
        }
        libc::EACCES | libc::EPERM => {
            format!("/dev/kvm may not be opened ({error}): usually the group kvm may")
        }
        libc::ENODEV | libc::ENXIO => format!("no kernel module serves /dev/kvm ({error})"),
        _ => format!("/dev/kvm could not be opened ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_it_is_not_opened_is_said() {
        assert!(not_opened(libc::ENOENT).starts_with("/dev/kvm does not exist"));
        assert!(not_opened(libc::EACCES).contains("(Permission denied)"));
        assert!(not_opened(libc::EBUSY).ends_with("could not be opened (Device or resource busy)"));
    }
}
