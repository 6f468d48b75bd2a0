use tollgate_model::Boundary::{
    ClockSource, ContextSwitch, IdleExit, InterProcessorInterrupt, KernelCode, KernelEntry, PageFault,
    TlbShootdown, VdsoClock, VmExit,
};

entries! {
    HYPERVISOR_GUEST "the kernel looks for a hypervisor beneath it";
    PARAVIRT [ContextSwitch, TlbShootdown, KernelCode]
        "some operations can be replaced by calls of the hypervisor, patched at boot"
        ("arch/x86/kernel/paravirt.c");
    PARAVIRT_XXL [KernelEntry, PageFault] "under Xen PV page tables and interrupts are the hypervisor's"
        ("arch/x86/Kconfig");
    PARAVIRT_SPINLOCKS [KernelCode]
        "a waiter whose lock is held by a processor that does not run yields its own"
        ("kernel/locking/qspinlock_paravirt.h").parameters(&["nopvspin"]);
    PARAVIRT_TIME_ACCOUNTING [ContextSwitch] "time that the hypervisor took away is read and subtracted"
        ("arch/x86/Kconfig");
    KVM_GUEST [VdsoClock, ClockSource, InterProcessorInterrupt, IdleExit, PageFault]
        "under KVM: its clock, waking by hypercall, end of interrupt without exit, faults that do not wait"
        ("arch/x86/kernel/kvm.c").parameters(&["no_kvmclock", "no_kvmapf"]);
    HYPERV [VdsoClock, ClockSource, TlbShootdown, InterProcessorInterrupt]
        "under Hyper-V: its clock, and flushes and interrupts by hypercall" ("arch/x86/hyperv/hv_init.c");
    XEN [VdsoClock, ClockSource, InterProcessorInterrupt, PageFault]
        "under Xen: its clock and event channels" ("arch/x86/xen/Kconfig").parameters(&["xen_nopv"]);
    XEN_PV [KernelEntry]
        "under Xen PV the kernel runs in ring 3 like its programs, and every entry goes through the hypervisor"
        ("arch/x86/xen/Kconfig");
    PVH "the kernel can be entered without a boot loader";
    INTEL_TDX_GUEST [VmExit]
        "in a trust domain intercepted instructions fault, and the kernel asks the host by a call"
        ("Documentation/arch/x86/tdx.rst");
    AMD_MEM_ENCRYPT [VmExit]
        "in a guest with SEV-ES intercepted instructions fault, and the kernel asks the host through a shared page"
        ("arch/x86/coco/sev/core.c").parameters(&["mem_encrypt"]);
    _ => PARAVIRT_CLOCK ACRN_GUEST JAILHOUSE_GUEST BHYVE_GUEST VIRTIO BLK_DEV_VIRTIO VIRTIO_BLK SCSI_VIRTIO
        HW_RANDOM_VIRTIO VSOCKETS VMWARE VBOXGUEST VBOXSF HYPERVISOR SEV_GUEST TDX_GUEST_DRIVER FW_CFG_SYSFS
        X86_HV KVM_CLOCK PTP_1588_CLOCK_KVM
}
