//! Being a virtual machine.

use super::{Entry, about, covers, moves};

pub(crate) static ENTRIES: &[Entry] = &[
    about("HYPERVISOR_GUEST", "the kernel looks for a hypervisor beneath it"),
    moves(
        "PARAVIRT",
        "context switches, TLB flushes, spinning",
        "some operations can be replaced by calls of the hypervisor, patched at boot",
        "arch/x86/kernel/paravirt.c",
    ),
    moves(
        "PARAVIRT_XXL",
        "kernel entry, page tables, under Xen PV",
        "page tables and interrupts are the hypervisor's",
        "arch/x86/Kconfig",
    ),
    moves(
        "PARAVIRT_SPINLOCKS",
        "contended locks in the kernel",
        "a waiter whose lock is held by a processor that does not run gives its own away",
        "kernel/locking/qspinlock_paravirt.h",
    )
    .parameters(&["nopvspin"]),
    moves(
        "PARAVIRT_TIME_ACCOUNTING",
        "context switches",
        "time that the hypervisor took away is read and subtracted",
        "arch/x86/Kconfig",
    ),
    moves(
        "KVM_GUEST",
        "clock, interrupts, page faults",
        "under KVM: its clock, waking by hypercall, end of interrupt without exit, faults that do not wait",
        "arch/x86/kernel/kvm.c",
    )
    .parameters(&["no_kvmclock", "no_kvmapf"]),
    moves(
        "HYPERV",
        "clock, TLB flushes, interrupts",
        "under Hyper-V: its clock, and flushes and interrupts by hypercall",
        "arch/x86/hyperv/hv_init.c",
    ),
    moves(
        "XEN",
        "clock, interrupts, page tables",
        "under Xen: its clock and event channels",
        "arch/x86/xen/Kconfig",
    )
    .parameters(&["xen_nopv"]),
    moves(
        "XEN_PV",
        "every kernel entry",
        "under Xen PV the kernel runs in ring 3 as its programs do, and every entry goes by the hypervisor",
        "arch/x86/xen/Kconfig",
    ),
    about("PVH", "the kernel can be entered without a boot loader"),
    moves(
        "INTEL_TDX_GUEST",
        "CPUID, MSRs, I/O",
        "in a trust domain they fault, and are asked of the host by a call",
        "Documentation/arch/x86/tdx.rst",
    ),
    moves(
        "AMD_MEM_ENCRYPT",
        "CPUID, MSRs, I/O",
        "in a guest with SEV-ES they fault, and are asked of the host through a shared page",
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
