//! Changes to the descriptors that epoll(7) watches: perf bench epoll ctl.

use std::os::fd::{AsRawFd, OwnedFd};

use super::endpoint::{Subject, Verified};
use crate::descriptor::{eventfd, owned};
use crate::prelude::*;

// Words of both loops: 0: the epoll instance; 1: the descriptor; 2: the struct epoll_event; 4: the results, combined by OR.

timed_loop! {
    /// epoll_ctl(2), EPOLL_CTL_MOD with the same events.
    modify: called
        "mov rdi, [r13]", "mov esi, 3", "mov rdx, [r13 + 8]", "mov r10, [r13 + 16]", "mov eax, 233",
        "syscall",
        "or [r13 + 32], rax";
    aarch64
        "ldr x0, [x20]", "mov x1, 3", "ldr x2, [x20, #8]", "ldr x3, [x20, #16]", "mov x8, 21",
        "svc 0",
        "ldr x9, [x20, #32]", "orr x9, x9, x0", "str x9, [x20, #32]"
}

timed_loop! {
    /// epoll_ctl(2) twice, EPOLL_CTL_ADD and EPOLL_CTL_DEL.
    add_and_delete: called
        "mov rdi, [r13]", "mov esi, 1", "mov rdx, [r13 + 8]", "mov r10, [r13 + 16]", "mov eax, 233",
        "syscall",
        "or [r13 + 32], rax",
        "mov rdi, [r13]", "mov esi, 2", "mov rdx, [r13 + 8]", "mov r10, [r13 + 16]", "mov eax, 233",
        "syscall",
        "or [r13 + 32], rax";
    aarch64
        "ldr x0, [x20]", "mov x1, 1", "ldr x2, [x20, #8]", "ldr x3, [x20, #16]", "mov x8, 21",
        "svc 0",
        "ldr x9, [x20, #32]", "orr x9, x9, x0", "str x9, [x20, #32]",
        "ldr x0, [x20]", "mov x1, 2", "ldr x2, [x20, #8]", "ldr x3, [x20, #16]", "mov x8, 21",
        "svc 0",
        "ldr x9, [x20, #32]", "orr x9, x9, x0", "str x9, [x20, #32]"
}

const RESULTS: usize = 4;
/// Number of other descriptors of the instance: perf bench's default.
const OTHERS: usize = 64;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "ipc/epoll-ctl",
    operation: "One change of an epoll instance that has 64 other eventfds: EPOLL_CTL_MOD of one, or EPOLL_CTL_ADD and EPOLL_CTL_DEL of it.",
    avoid: "Add a descriptor once; use EPOLLET or EPOLLEXCLUSIVE instead of EPOLLONESHOT, which must be armed again.",
    source: "epoll_ctl(2); perf bench epoll ctl; fs/eventpoll.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, KernelAllocation, UserCopy],
    crossed_in: |params, boundary| {
        boundary != KernelAllocation || Change::try_from(params) != Ok(Change::Modify)
    },
    timed: |params| match Change::try_from(params) {
        Ok(change) => {
            let (code, times) = change.code();
            Timed::Loop { code: TimedLoop::Long(code), instruction: "syscall/svc", times }
        }
        Err(_) => NOT_TIMED,
    },
    cases: |_| each_word("op", Change::WORDS),
    in_everything: |_, _| false,
    kind: Kind::Instance(|timed, params, _| {
        let watched = Watched::new(Change::try_from(params)? == Change::Modify)?;
        let words = watched.words();
        // SAFETY: the kernel reads the event, which lies in a box that the hooks keep.
        let timed = unsafe { Loop::new(timed, words, None, any) }?;
        Ok(timed.with_hooks(Verified::new(watched)).here())
    }),
    absence: &[KILLED_BY_FILTER],
    ..PLAIN
};

words! {
    enum Change("op") { Modify = "modify", AddDelete = "add-delete" }
}

impl Change {
    fn code(self) -> (LongLoop, usize) {
        match self {
            Self::Modify => (modify, 1),
            Self::AddDelete => (add_and_delete, 2),
        }
    }
}

struct Watched {
    instance: OwnedFd,
    /// The changed descriptor first, then the others.
    files: Vec<OwnedFd>,
    event: Box<libc::epoll_event>,
    /// True if the instance watches the changed descriptor between two operations.
    is_there: bool,
}

impl Watched {
    fn new(is_there: bool) -> Result<Self> {
        let eventfd = |_| eventfd(0, libc::EFD_NONBLOCK);
        let files = (0..=OTHERS).map(eventfd).collect::<std::io::Result<Vec<_>>>();
        // SAFETY: epoll_create1(2) takes a number.
        let instance = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) });
        let watched = Self {
            instance: instance.or_refused("epoll_create1(2) is refused")?,
            files: files.or_refused("eventfd2(2) is refused")?,
            event: Box::new(libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 }),
            is_there,
        };
        for file in watched.files.iter().skip(usize::from(!is_there)) {
            let added = watched.control(libc::EPOLL_CTL_ADD, file);
            added.or_refused("epoll_ctl(2) is refused (fs.epoll.max_user_watches)")?;
        }
        Ok(watched)
    }

    fn control(&self, operation: libc::c_int, file: &OwnedFd) -> std::io::Result<usize> {
        let mut event = *self.event;
        // SAFETY: the event is valid for reading.
        checked(unsafe {
            libc::epoll_ctl(self.instance.as_raw_fd(), operation, file.as_raw_fd(), &mut event)
        })
    }

    fn words(&self) -> [u64; 7] {
        let file = self.files.first().map_or(-1, AsRawFd::as_raw_fd);
        [self.instance.as_raw_fd() as u64, file as u64, &raw const *self.event as u64, 0, 0, 0, 0]
    }
}

impl Subject for Watched {
    fn before(&mut self, context: &mut LoopContext) -> Result<()> {
        context.words[RESULTS] = 0;
        Ok(())
    }

    fn after(&mut self, context: &LoopContext, iterations: u64) -> Result<()> {
        if context.words[RESULTS] != 0 {
            return Err(fail!("epoll_ctl(2) failed in one of {iterations} operations"));
        }
        let Some(file) = self.files.first() else { return Err(fail!("there is no descriptor")) };
        let is_there = self.control(libc::EPOLL_CTL_MOD, file).is_ok();
        if is_there == self.is_there {
            Ok(())
        } else {
            Err(fail!("the descriptor was left in the instance, or is no longer in it"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ready;

    #[test]
    fn the_instance_is_as_before_and_a_failed_change_fails() {
        for case in (BENCHMARK.cases)(&Topology::default()) {
            let change = Change::try_from(&case).expect("a change");
            let (is_there, (code, _)) = (change == Change::Modify, change.code());
            let Some(mut watched) = ready(&case, Watched::new(is_there)) else { continue };
            let mut context = LoopContext { words: watched.words(), result: 0 };
            // SAFETY: the words are those of the loop.
            unsafe { code.run(10, &mut context) };
            assert_eq!(watched.after(&context, 10), Ok(()), "{case:?}");
            let other = if is_there { libc::EPOLL_CTL_DEL } else { libc::EPOLL_CTL_ADD };
            watched.control(other, &watched.files[0]).expect("changed");
            assert!(watched.after(&context, 10).is_err(), "{case:?}");
            // SAFETY: as above.
            unsafe { code.run(1, &mut context) };
            assert!(watched.after(&context, 1).is_err(), "{case:?}");
        }
    }
}
