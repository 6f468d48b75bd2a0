use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/fork",
    operation: "A child that exits at once, and the wait for it, by each thread or process: on its processor.",
    avoid: "Keep workers, and start programs by posix_spawn.",
    source: "clone(2); wait4(2); kernel/fork.c",
    crosses: &[
        KernelEntry,
        SystemCall,
        ProcessCreation,
        AddressSpaceCopy,
        ProcessExit,
        ContextSwitch,
        CacheLine,
    ],
    timed: |_| Timed::Whole("clone(2), exit_group(2), wait4(2)"),
    // A child copies the page tables of everything that the threads of its process have mapped.
    company: Company::Own,
    kind: Kind::Instance(|_, params, context| {
        instance(&Operation { prepare, switches: true }, params, context)
    }),
    ..SCALED
};

fn prepare(_: Seat) -> io::Result<Box<dyn Work>> {
    calls(|| {
        // SAFETY: the child has a copy of the memory and makes one system call, which ends it, without the C library.
        let child = unsafe { call(libc::SYS_clone, [libc::SIGCHLD as u64, 0, 0, 0]) };
        if child == 0 {
            loop {
                // SAFETY: the call ends this process.
                unsafe { call(libc::SYS_exit_group, [0; 4]) };
            }
        }
        if child < 0 {
            return child;
        }
        let mut status = 0_i32;
        // SAFETY: the status is valid for writing, and the child belongs to this process.
        let waited = unsafe { call(libc::SYS_wait4, [child as u64, &raw mut status as u64, 0, 0]) };
        match (waited == child, status) {
            (true, 0) => 0,
            (true, _) => -i64::from(libc::ECHILD),
            (false, _) => waited.min(-1),
        }
    })
}
