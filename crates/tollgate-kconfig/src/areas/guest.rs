//! Support for running as a virtual machine.

use tollgate_model::Boundary::{
    ClockSource, ContextSwitch, IdleExit, InterProcessorInterrupt, KernelCode, KernelEntry, PageFault,
    TlbShootdown, VdsoClock, VmExit,
};

use super::{Entry, about, affects, covers};

pub(crate) static ENTRIES: &[Entry] = &[
    about("HYPERVISOR_GUEST", "the kernel looks for a hypervisor beneath it"),
    affects(
        "PARAVIRT",
        &[ContextSwitch, TlbShootdown, KernelCode],
        "some operations can be replaced by calls of the hypervisor, patched at boot",
        "arch/x86/kernel/paravirt.c",
    ),
    affects(
        "PARAVIRT_XXL",
        &[KernelEntry, PageFault],
        "under Xen PV page tables and interrupts are the hypervisor's",
        "arch/x86/Kconfig",
    ),
    affects(
        "PARAVIRT_SPINLOCKS",
        &[KernelCode],
        "a waiter whose lock is held by a processor that does not run yields its own",
        "kernel/locking/qspinlock_paravirt.h",
    )
    .parameters(&["nopvspin"]),
    affects(
        "PARAVIRT_TIME_ACCOUNTING",
        &[ContextSwitch],
        "time that the hypervisor took away is read and subtracted",
        "arch/x86/Kconfig",
    ),
    affects(
        "KVM_GUEST",
        &[VdsoClock, ClockSource, InterProcessorInterrupt, IdleExit, PageFault],
        "under KVM: its clock, waking by hypercall, end of interrupt without exit, faults that do not wait",
        "arch/x86/kernel/kvm.c",
    )
    .parameters(&["no_kvmclock", "no_kvmapf"]),
    affects(
        "HYPERV",
        &[VdsoClock, ClockSource, TlbShootdown, InterProcessorInterrupt],
        "under Hyper-V: its clock, and flushes and interrupts by hypercall",
        "arch/x86/hyperv/hv_init.c",
    ),
    affects(
        "XEN",
        &[VdsoClock, ClockSource, InterProcessorInterrupt, PageFault],
        "under Xen: its clock and event channels",
        "arch/x86/xen/Kconfig",
    )
    .parameters(&["xen_nopv"]),
    affects(
        "XEN_PV",
        &[KernelEntry],
        "under Xen PV the kernel runs in ring 3 as its programs do, and every entry goes through the hypervisor",
        "arch/x86/xen/Kconfig",
    ),
    about("PVH", "the kernel can be entered without a boot loader"),
    affects(
        "INTEL_TDX_GUEST",
        &[VmExit],
        "in a trust domain intercepted instructions fault, and the kernel asks the host by a call",
        "Documentation/arch/x86/tdx.rst",
    ),
    affects(
        "AMD_MEM_ENCRYPT",
        &[VmExit],
        "in a guest with SEV-ES intercepted instructions fault, and the kernel asks the host through a shared page",
        "arch/x86/coco/sev/core.c",
    )
    .parameters(&["mem_encrypt"]),
    covers("PARAVIRT_CLOCK"),
    covers("ACRN_GUEST"),
    covers("JAILHOUSE_GUEST"),
    covers("BHYVE_GUEST"),
    covers("VIRTIO"),
    covers("BLK_DEV_VIRTIO"),
    covers("VIRTIO_BLK"),
    covers("SCSI_VIRTIO"),
    covers("HW_RANDOM_VIRTIO"),
    covers("VSOCKETS"),
    covers("VMWARE"),
    covers("VBOXGUEST"),
    covers("VBOXSF"),
    covers("HYPERVISOR"),
    covers("SEV_GUEST"),
    covers("TDX_GUEST_DRIVER"),
    covers("FW_CFG_SYSFS"),
    covers("X86_HV"),
    covers("KVM_CLOCK"),
    covers("PTP_1588_CLOCK_KVM"),
];
