use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/mmap",
    operation: "mmap and munmap of 128 MiB of private memory that is not touched, by each thread or process.",
    avoid: "Keep mappings, and let an allocator hand out parts of them.",
    source: "mmap(2); will-it-scale, mmap1.c; Documentation/mm/process_addrs.rst",
    crosses: &[KernelEntry, SystemCall, KernelCode, KernelAllocation, CacheLine],
    timed: |_| Timed::Whole("mmap(2), munmap(2)"),
    kind: Kind::Instance(|_, params, context| {
        instance(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(_: Seat) -> io::Result<Box<dyn Work>> {
    const BYTES: usize = 128 << 20;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let failed = || -i64::from(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO));
    calls(move || {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return failed();
        }
        // SAFETY: the mapping is new, and nothing refers to it.
        unsafe { call(libc::SYS_munmap, [address as u64, BYTES as u64, 0, 0]) }
    })
}
