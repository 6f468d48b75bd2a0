use tollgate_model::Boundary::{AddressSpaceCopy, BlockRead, BlockWrite, GuestEntry, Socket, TlbShootdown};

entries! {
    KVM "virtual machines by the processor's help";
    USER_RETURN_NOTIFIER [GuestEntry] "MSRs with the guest's values are restored on the way to the program"
        ("arch/x86/kvm/x86.c");
    MMU_NOTIFIER [AddressSpaceCopy, TlbShootdown] "each shadow of an address space hears of changes"
        ("mm/mmu_notifier.c");
    VHOST_NET "network devices of guests in the kernel";
    VFIO "devices handed to guests and programs";
    INTEL_IOMMU [BlockRead, BlockWrite, Socket]
        "where it is on, devices reach memory by tables, which are kept up" ("drivers/iommu/intel/Kconfig")
        .parameters(&["intel_iommu"]);
    INTEL_IOMMU_DEFAULT_ON "devices reach memory by tables unless intel_iommu= says otherwise";
    AMD_IOMMU [BlockRead, BlockWrite, Socket] "devices reach memory by tables, which are kept up"
        ("drivers/iommu/amd/Kconfig").parameters(&["amd_iommu"]);
    IOMMU_DEFAULT_PASSTHROUGH [BlockRead, BlockWrite, Socket] "by default devices reach memory directly"
        ("drivers/iommu/Kconfig").parameters(&["iommu.passthrough", "iommu"]);
    IOMMU_DEFAULT_DMA_STRICT [BlockRead, BlockWrite, Socket] "each unmapping is flushed at once"
        ("drivers/iommu/Kconfig").parameters(&["iommu.strict"]);
    _ => HAVE_KVM VIRTUALIZATION VHOST VIRT_DRIVERS IOMMU IOMMUFD IRQ_REMAP IRQ_BYPASS_MANAGER
        INTEL_IOMMU_SVM XEN_DOM0 XEN_BACKEND XEN_BLKDEV_BACKEND XEN_NETDEV_BACKEND XEN_PCIDEV_BACKEND MSHV
        MSHV_ROOT SWIOTLB
}
