//! Support for running virtual machines.

use tollgate_model::Boundary::{AddressSpaceCopy, BlockRead, BlockWrite, GuestEntry, Socket, TlbShootdown};

use super::{Entry, about, affects, covers};

pub(crate) static ENTRIES: &[Entry] = &[
    about("KVM", "virtual machines by the processor's help"),
    affects(
        "USER_RETURN_NOTIFIER",
        &[GuestEntry],
        "MSRs with the guest's values are restored on the way to the program",
        "arch/x86/kvm/x86.c",
    ),
    affects(
        "MMU_NOTIFIER",
        &[AddressSpaceCopy, TlbShootdown],
        "each shadow of an address space hears of changes",
        "mm/mmu_notifier.c",
    ),
    about("VHOST_NET", "network devices of guests in the kernel"),
    about("VFIO", "devices handed to guests and programs"),
    affects(
        "INTEL_IOMMU",
        &[BlockRead, BlockWrite, Socket],
        "where it is on, devices reach memory by tables, which are kept up",
        "drivers/iommu/intel/Kconfig",
    )
    .parameters(&["intel_iommu"]),
    about("INTEL_IOMMU_DEFAULT_ON", "devices reach memory by tables unless intel_iommu= says otherwise"),
    affects(
        "AMD_IOMMU",
        &[BlockRead, BlockWrite, Socket],
        "devices reach memory by tables, which are kept up",
        "drivers/iommu/amd/Kconfig",
    )
    .parameters(&["amd_iommu"]),
    affects(
        "IOMMU_DEFAULT_PASSTHROUGH",
        &[BlockRead, BlockWrite, Socket],
        "by default devices reach memory directly",
        "drivers/iommu/Kconfig",
    )
    .parameters(&["iommu.passthrough", "iommu"]),
    affects(
        "IOMMU_DEFAULT_DMA_STRICT",
        &[BlockRead, BlockWrite, Socket],
        "each unmapping is flushed at once",
        "drivers/iommu/Kconfig",
    )
    .parameters(&["iommu.strict"]),
    covers("HAVE_KVM"),
    covers("VIRTUALIZATION"),
    covers("VHOST"),
    covers("VIRT_DRIVERS"),
    covers("IOMMU"),
    covers("IOMMUFD"),
    covers("IRQ_REMAP"),
    covers("IRQ_BYPASS_MANAGER"),
    covers("INTEL_IOMMU_SVM"),
    covers("XEN_DOM0"),
    covers("XEN_BACKEND"),
    covers("XEN_BLKDEV_BACKEND"),
    covers("XEN_NETDEV_BACKEND"),
    covers("XEN_PCIDEV_BACKEND"),
    covers("MSHV"),
    covers("MSHV_ROOT"),
    covers("SWIOTLB"),
];
