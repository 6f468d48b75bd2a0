use std::os::fd::{AsRawFd, OwnedFd};

use crate::prelude::*;

timed_loop! {
    /// A call with three arguments. Words: 0: its number; 1: the descriptor; 2: an address; 3: a length.
    call_of_three: called
        "mov rax, [r13]", "mov rdi, [r13 + 8]", "mov rsi, [r13 + 16]", "mov rdx, [r13 + 24]", "syscall";
    aarch64 "ldr x8, [x20]", "ldr x0, [x20, #8]", "ldr x1, [x20, #16]", "ldr x2, [x20, #24]", "svc 0"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/short-call",
    operation: "One read of a byte of /dev/zero, write of a byte to /dev/null, or fstat of /dev/null: the least that a call on a descriptor takes.",
    avoid: "Do more in each call: larger buffers, readv, io_uring.",
    source: "read(2); write(2); fstat(2); lmbench, lat_syscall.c; drivers/char/mem.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy],
    crossed_in: |params, boundary| boundary != UserCopy || word(params, "call") != "write",
    timed: |_| Timed::once("syscall/svc", TimedLoop::Long(call_of_three)),
    cases: |_| each_word("call", Call::WORDS),
    in_everything: |_, _| false,
    kind: Kind::Instance(|timed, params, _| {
        let (path, number, length) = Call::try_from(params)?.value();
        let file = std::fs::File::options().read(true).write(true).open(path);
        let file: OwnedFd = file.map_err(|error| Refusal::new(&format!("{path} is refused"), &error))?.into();
        // Room for a struct stat.
        let mut memory = Box::new([0_u64; size_of::<libc::stat>() / 8]);
        let words = [number as u64, file.as_raw_fd() as u64, memory.as_mut_ptr() as u64, length, 0, 0, 0];
        let check = move |result: u64| {
            if result == length {
                Ok(())
            } else {
                Err(format!("the call returned {} instead of {length}", result as i64))
            }
        };
        // SAFETY: the kernel reads or writes a byte, or a struct stat, of memory that the instance owns.
        Ok(unsafe { Loop::new(timed, words, Some(Box::new((file, memory))), check) }?.here())
    }),
    absence: &[KILLED_BY_FILTER],
    ..PLAIN
};

words! {
    enum Call("call"): (&'static str, i64, u64) {
        Read = "read" => ("/dev/zero", libc::SYS_read, 1),
        Write = "write" => ("/dev/null", libc::SYS_write, 1),
        Fstat = "fstat" => ("/dev/null", libc::SYS_fstat, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ready;

    #[test]
    fn each_call_does_what_it_says() {
        for case in (BENCHMARK.cases)(&Topology::default()) {
            let Kind::Instance(make) = BENCHMARK.kind else { panic!("it has instances") };
            let made = make((BENCHMARK.timed)(&case), &case, &mut Context::here());
            let Some(mut instance) = ready(&case, made) else { continue };
            assert!(instance.batch(Clock::Kernel, Order::new(10)).is_ok(), "{case:?}");
        }
    }
}
