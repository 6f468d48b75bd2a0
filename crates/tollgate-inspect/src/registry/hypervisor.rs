//! Hypervisors, sandboxes and firmware below the kernel.

use tollgate_model::Boundary::{
    self, AddressSpaceCopy, BlockRead, BlockWrite, CompatEntry, ContextSwitch, DeviceFlush, Exception, Exec,
    FileSystem, IdleExit, InterProcessorInterrupt, IoUring, KernelCode, KernelEntry, KernelImage, PageCache,
    PageFault, PathLookup, ProcessCreation, ProcessExit, ProcessMemory, Signal, SignalSend, Socket,
    SystemCall, TlbShootdown, VmExit, WakeUp,
};

use super::{FactSpec, one};
use crate::{firmware, hypervisor, sandbox, timed};

/// Where a hypervisor may intercept.
const INTERCEPTED: &[Boundary] =
    &[VmExit, Exception, PageFault, InterProcessorInterrupt, IdleExit, BlockRead, BlockWrite, DeviceFlush];

pub(super) const FACTS: &[FactSpec] = &[
    one("hypervisor.present", hypervisor::present, "Whether CPUID reports a hypervisor.")
        .affects(INTERCEPTED, "each event that the hypervisor intercepts is a VM exit"),
    one("hypervisor.signatures", hypervisor::signatures, "The hypervisor signatures in CPUID."),
    one("hypervisor.layers", hypervisor::layers, "Every hypervisor with a mark.")
        .affects(INTERCEPTED, "each nested layer multiplies the latency of an exit"),
    one(
        "hypervisor.nesting",
        hypervisor::nesting,
        "The evidence that the hypervisor itself runs in a virtual machine.",
    )
    .affects(
        INTERCEPTED,
        "an exit goes through the outer hypervisor and back, which often takes ten times as long",
    ),
    one("machine.vendor", hypervisor::vendor, "The machine's vendor, from its firmware."),
    one("machine.product", hypervisor::product, "The machine's product name, from its firmware."),
    one("sandbox.kernel", sandbox::kernel, "The kernel that stands in for Linux, such as gVisor.").affects(
        &[
            KernelEntry,
            SystemCall,
            CompatEntry,
            IoUring,
            KernelCode,
            KernelImage,
            Exception,
            PageFault,
            Signal,
            SignalSend,
            ContextSwitch,
            WakeUp,
            ProcessCreation,
            AddressSpaceCopy,
            ProcessExit,
            ProcessMemory,
            Exec,
            PathLookup,
            PageCache,
            FileSystem,
            Socket,
        ],
        "another process or a guest handles them, not Linux",
    ),
    one(
        "hypervisor.cpuid",
        timed::execution,
        "How CPUID executes, by its time: native, exit, slow exit (nested, confidential, flushed, or a \
         program answers), translated.",
    )
    .affects(INTERCEPTED, "an exit takes at least as long as CPUID"),
    one("hypervisor.kvm_features", hypervisor::kvm_features, "The paravirtual features that KVM offers.")
        .affects(
            &[InterProcessorInterrupt, TlbShootdown, IdleExit],
            "each feature that KVM offers saves an exit",
        ),
    one("machine.firmware", firmware::tables, "The vendor of the firmware's tables."),
];
