#![allow(unsafe_code)] // Memory that is given to a guest.

use kvm_bindings::{CpuId, kvm_sregs, kvm_userspace_memory_region};
use kvm_ioctls::{VcpuFd, VmFd};

use crate::KvmError;
use crate::memory::Memory;
use crate::refused::{failed, failed_io, unavailable};
use crate::state::registers;

/// The pages that KVM itself may take and those of the local APIC lie above this, below 4 GiB.
const MAX_MEMORY: usize = 3 << 30;
/// Intel processors without "unrestricted guest" need three pages below 4 GiB and one for their page table
/// (KVM_SET_TSS_ADDR, KVM_SET_IDENTITY_MAP_ADDR). The addresses are QEMU's.
const TSS_ADDRESS: usize = 0xfeff_d000;
const IDENTITY_MAP_ADDRESS: u64 = 0xfeff_c000;

/// A virtual machine with one processor, without interrupt controller or device. Fields are dropped in order: the
/// memory must be last.
#[derive(Debug)]
pub(super) struct Vm {
    pub vcpu: VcpuFd,
    /// Keeps the machine that `memory` was given to.
    _vm: VmFd,
    pub memory: Memory,
}

impl Vm {
    pub fn new(kvm: &kvm_ioctls::Kvm, cpuid: &CpuId, bytes: usize) -> Result<Self, KvmError> {
        if bytes > MAX_MEMORY {
            return Err(unavailable(format!("more than 3 GiB of memory requested: {bytes} bytes")));
        }
        let memory = Memory::new(bytes).map_err(failed_io("no memory for the guest"))?;
        let vm = kvm.create_vm().map_err(failed("KVM_CREATE_VM"))?;
        vm.set_identity_map_address(IDENTITY_MAP_ADDRESS).map_err(failed("KVM_SET_IDENTITY_MAP_ADDR"))?;
        vm.set_tss_address(TSS_ADDRESS).map_err(failed("KVM_SET_TSS_ADDR"))?;
        let region = kvm_userspace_memory_region {
            slot: 0,
            flags: 0,
            guest_phys_addr: 0,
            memory_size: memory.bytes as u64,
            userspace_addr: memory.address(),
        };
        // SAFETY: the mapping is `memory.bytes` long. No reference into it exists, so the guest may write to it. It
        // outlives the machine: it is dropped after both of its descriptors, and no other process has them.
        unsafe { vm.set_user_memory_region(region) }.map_err(failed("KVM_SET_USER_MEMORY_REGION"))?;
        let vcpu = vm.create_vcpu(0).map_err(failed("KVM_CREATE_VCPU"))?;
        vcpu.set_cpuid2(cpuid).map_err(failed("KVM_SET_CPUID2"))?;
        Ok(Self { vcpu, _vm: vm, memory })
    }

    pub fn load(&mut self, image: &[u8], base: u64) -> Result<(), KvmError> {
        if self.memory.write(base, image) {
            return Ok(());
        }
        Err(KvmError::TooLarge { image: image.len(), base, memory: self.memory.bytes })
    }

    pub fn enter(&mut self, entry: u64, set: impl Fn(&mut kvm_sregs)) -> Result<(), KvmError> {
        let mut sregs = self.vcpu.get_sregs().map_err(failed("KVM_GET_SREGS"))?;
        set(&mut sregs);
        self.vcpu.set_sregs(&sregs).map_err(failed("KVM_SET_SREGS"))?;
        self.vcpu.set_regs(&registers(entry)).map_err(failed("KVM_SET_REGS"))
    }
}
