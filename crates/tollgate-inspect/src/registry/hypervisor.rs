//! What is below the kernel.

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
    one("hypervisor.present", hypervisor::present, "Whether the processor says that a hypervisor is there.")
        .affects(INTERCEPTED, "each event that the hypervisor intercepts is a VM exit"),
    one("hypervisor.signatures", hypervisor::signatures, "The names that hypervisors sign CPUID with."),
    one("hypervisor.layers", hypervisor::layers, "Every hypervisor that left a mark.")
        .affects(INTERCEPTED, "each nested layer multiplies the latency of an exit"),
    one(
        "hypervisor.nesting",
        hypervisor::nesting,
        "What hints at a hypervisor that is itself in a virtual machine.",
    )
    .affects(
        INTERCEPTED,
        "an exit goes through the outer hypervisor and back, which often takes ten times as long",
    ),
    one("machine.vendor", hypervisor::vendor, "Who made the machine, as its firmware says."),
    one("machine.product", hypervisor::product, "What the machine is, as its firmware says."),
    one("sandbox.kernel", sandbox::kernel, "The kernel that plays Linux's part in user space.").affects(
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
        "What executing CPUID amounts to, by its time: native, exit, dear exit (nested, \
         confidential, flushed, or a program answers), translated.",
    )
    .affects(INTERCEPTED, "the time of CPUID is the least that an exit takes"),
    one("hypervisor.kvm_features", hypervisor::kvm_features, "What KVM offers to spare its guests exits.")
        .affects(
            &[InterProcessorInterrupt, TlbShootdown, IdleExit],
            "each feature that KVM offers saves an exit",
        ),
    one("machine.firmware", firmware::tables, "Who made the firmware's tables."),
];
