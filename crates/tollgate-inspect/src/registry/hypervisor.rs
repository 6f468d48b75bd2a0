//! What is below the kernel.

use super::{FactSpec, one};
use crate::{firmware, hypervisor, sandbox, timed};

pub(super) const FACTS: &[FactSpec] = &[
    one("hypervisor.present", hypervisor::present, "Whether the processor says that a hypervisor is there.")
        .moves("traps, CPUID, page faults and devices: what the hypervisor intercepts is an exit"),
    one("hypervisor.signatures", hypervisor::signatures, "The names that hypervisors sign CPUID with."),
    one("hypervisor.layers", hypervisor::layers, "Every hypervisor that left a mark.")
        .moves("traps, CPUID, page faults and devices: each nested layer multiplies the price of an exit"),
    one(
        "hypervisor.nesting",
        hypervisor::nesting,
        "What hints at a hypervisor that is itself in a virtual machine.",
    )
    .moves(
        "traps and page faults: an exit goes through the outer hypervisor and back, often ten \
         times the price",
    ),
    one("machine.vendor", hypervisor::vendor, "Who made the machine, as its firmware says."),
    one("machine.product", hypervisor::product, "What the machine is, as its firmware says."),
    one("sandbox.kernel", sandbox::kernel, "The kernel that plays Linux's part in user space.").moves(
        "every system call, trap and fault: they are handled by another process or a guest, \
         not by Linux",
    ),
    one(
        "hypervisor.cpuid",
        timed::execution,
        "What executing CPUID amounts to, by its time: native, exit, dear exit (nested, \
         confidential, flushed, or a program answers), translated.",
    )
    .moves(
        "traps, CPUID, page faults and devices: what this instruction costs is what an exit \
         costs at the least",
    ),
    one("hypervisor.kvm_features", hypervisor::kvm_features, "What KVM offers to spare its guests exits.")
        .moves(
            "interrupts between processors, TLB shootdown and waking: each is an exit less where \
         it is offered",
        ),
    one("machine.firmware", firmware::tables, "Who made the firmware's tables."),
];
