//! Hypervisors, sandboxes and firmware below the kernel.

use tollgate_model::Boundary::{
    self, AddressSpaceCopy, BlockRead, BlockWrite, CompatEntry, ContextSwitch, DeviceFlush, Exception, Exec,
    FileSystem, IdleExit, InterProcessorInterrupt, IoUring, KernelCode, KernelEntry, KernelImage, PageCache,
    PageFault, PathLookup, ProcessCreation, ProcessExit, ProcessMemory, Signal, SignalSend, Socket,
    SystemCall, TlbShootdown, VmExit, WakeUp,
};

use crate::{firmware, hypervisor, sandbox, timed};

/// Boundaries that a hypervisor may intercept.
const INTERCEPTED: &[Boundary] =
    &[VmExit, Exception, PageFault, InterProcessorInterrupt, IdleExit, BlockRead, BlockWrite, DeviceFlush];

facts! {
    pub(super) FACTS
    "hypervisor.present" Of(hypervisor::is_present) "Whether CPUID reports a hypervisor; on arm64, whether a file names one."
        @INTERCEPTED "each event that the hypervisor intercepts is a VM exit";
    "hypervisor.signatures" X86(hypervisor::signatures) "The hypervisor signatures in CPUID.";
    "hypervisor.layers" Of(hypervisor::layers) "Every hypervisor with a mark."
        @INTERCEPTED "each nested layer multiplies the latency of an exit";
    "hypervisor.nesting" Of(hypervisor::nesting)
        "The evidence that the hypervisor itself runs in a virtual machine."
        @INTERCEPTED "an exit goes through the outer hypervisor and back, which often takes ten times as long";
    "machine.vendor" Line("/sys/class/dmi/id/sys_vendor") "The machine's vendor, from its firmware.";
    "machine.product" Line("/sys/class/dmi/id/product_name") "The machine's product name, from its firmware.";
    "sandbox.kernel" Of(sandbox::name) "The kernel that stands in for Linux, such as gVisor."
        [KernelEntry, SystemCall, CompatEntry, IoUring, KernelCode, KernelImage, Exception, PageFault, Signal,
         SignalSend, ContextSwitch, WakeUp, ProcessCreation, AddressSpaceCopy, ProcessExit, ProcessMemory, Exec,
         PathLookup, PageCache, FileSystem, Socket]
        "another process or a guest handles them, not Linux";
    "hypervisor.cpuid" X86(timed::execution)
        "How CPUID executes, by its time: native, exit, slow exit (nested, confidential, flushed, or a \
         program answers), translated."
        @INTERCEPTED "an exit takes at least as long as CPUID";
    "hypervisor.kvm_features" X86(hypervisor::kvm_features) "The paravirtual features that KVM offers."
        [InterProcessorInterrupt, TlbShootdown, IdleExit] "each feature that KVM offers saves an exit";
    "machine.firmware" Of(firmware::table_maker) "The vendor of the firmware's tables.";
}
