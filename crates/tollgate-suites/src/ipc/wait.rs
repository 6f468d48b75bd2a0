//! The wait for one of many descriptors: select(2), poll(2) and epoll(7).
//!
//! One descriptor is ready in each call, so no call sleeps. In lmbench's lat_select all descriptors are ready for writing, and no
//! call waits either. So both show the time that the call needs for each descriptor that it checks.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex};

use super::endpoint::{Subject, Verified};
use crate::descriptor::{eventfd, owned};
use crate::prelude::*;

timed_loop! {
    /// poll(2) with a timeout of 0. Words: 0: the array; 1: its length; 2: the sum of the results; 3 and 4: the time for ppoll(2),
    /// which poll(3) calls on arm64.
    poll: called
        "mov rdi, [r13]", "mov rsi, [r13 + 8]", "xor edx, edx", "mov eax, 7",
        "syscall",
        "add [r13 + 16], rax";
    aarch64
        "ldr x0, [x20]", "ldr x1, [x20, #8]", "add x2, x20, #24", "mov x3, 0", "mov x4, 0", "mov x8, 73",
        "svc 0",
        "ldr x9, [x20, #16]", "add x9, x9, x0", "str x9, [x20, #16]"
}

timed_loop! {
    /// select(2) for reading, with a timeout of 0; pselect6(2) on arm64. Words: 0: the highest descriptor plus one; 1: the set, which is kept; 2: its
    /// copy, from which the kernel removes descriptors that are not ready; 3: the timeout; 4: the sum of the results.
    select: called
        // Copies all 128 bytes of an fd_set, as programs do.
        "mov rbx, [r13 + 8]", "mov rsi, [r13 + 16]",
        "mov rax, [rbx]", "mov [rsi], rax", "mov rax, [rbx + 8]", "mov [rsi + 8], rax",
        "mov rax, [rbx + 16]", "mov [rsi + 16], rax", "mov rax, [rbx + 24]", "mov [rsi + 24], rax",
        "mov rax, [rbx + 32]", "mov [rsi + 32], rax", "mov rax, [rbx + 40]", "mov [rsi + 40], rax",
        "mov rax, [rbx + 48]", "mov [rsi + 48], rax", "mov rax, [rbx + 56]", "mov [rsi + 56], rax",
        "mov rax, [rbx + 64]", "mov [rsi + 64], rax", "mov rax, [rbx + 72]", "mov [rsi + 72], rax",
        "mov rax, [rbx + 80]", "mov [rsi + 80], rax", "mov rax, [rbx + 88]", "mov [rsi + 88], rax",
        "mov rax, [rbx + 96]", "mov [rsi + 96], rax", "mov rax, [rbx + 104]", "mov [rsi + 104], rax",
        "mov rax, [rbx + 112]", "mov [rsi + 112], rax", "mov rax, [rbx + 120]", "mov [rsi + 120], rax",
        "mov rdi, [r13]", "xor edx, edx", "xor r10d, r10d", "mov r8, [r13 + 24]", "mov eax, 23",
        "syscall",
        "add [r13 + 32], rax";
    aarch64
        "ldr x9, [x20, #8]", "ldr x1, [x20, #16]",
        "ldp q0, q1, [x9, 0]", "stp q0, q1, [x1, 0]", "ldp q0, q1, [x9, 32]", "stp q0, q1, [x1, 32]",
        "ldp q0, q1, [x9, 64]", "stp q0, q1, [x1, 64]", "ldp q0, q1, [x9, 96]", "stp q0, q1, [x1, 96]",
        "ldr x0, [x20]", "mov x2, 0", "mov x3, 0", "ldr x4, [x20, #24]", "mov x5, 0", "mov x8, 72",
        "svc 0",
        "ldr x9, [x20, #32]", "add x9, x9, x0", "str x9, [x20, #32]"
}

timed_loop! {
    /// epoll_wait(2) for at most eight events, timeout 0; epoll_pwait(2) without a mask on arm64. Words: 0: the epoll instance; 1: the events; 2: the sum of results.
    epoll_wait: called
        "mov rdi, [r13]", "mov rsi, [r13 + 8]", "mov edx, 8", "xor r10d, r10d", "mov eax, 232",
        "syscall",
        "add [r13 + 16], rax";
    aarch64
        "ldr x0, [x20]", "ldr x1, [x20, #8]", "mov x2, 8", "mov x3, 0", "mov x4, 0", "mov x5, 8", "mov x8, 22",
        "svc 0",
        "ldr x9, [x20, #16]", "add x9, x9, x0", "str x9, [x20, #16]"
}

words! {
    enum Method("by") { Select = "select", Poll = "poll", Epoll = "epoll" }
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "ipc/wait",
    operation: "One call that asks which of this many eventfds can be read, of which the last can; it does not sleep.",
    avoid: "Use epoll, which is told of each descriptor once; take several events with each call.",
    source: "select(2); poll(2); epoll_wait(2); lmbench, lat_select.c; fs/select.c, fs/eventpoll.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy],
    crossed_in: |params, boundary| boundary != UserCopy || Method::try_from(params) != Ok(Method::Epoll),
    timed: |params| match Method::try_from(params) {
        Ok(method) => Timed::once("syscall/svc", TimedLoop::Long(method.code())),
        Err(_) => NOT_TIMED,
    },
    cases: |_| rows(&[10, 100, 1000]),
    // More than an fd_set has bits, and more than a process may open by default.
    thorough_cases: |_| rows(&[4000]),
    in_everything: |params, _| number(params, "descriptors") == 100,
    kind: Kind::Instance(|timed, params, _| {
        let (method, count) = (Method::try_from(params)?, number(params, "descriptors") as usize);
        let made = Arc::new(Mutex::new(None));
        let waits = Waits { made: Arc::clone(&made), words: [0; 7] };
        // SAFETY: the words are those that `Asked` makes for this loop, and it lives as long as the hooks.
        let timed = unsafe { Loop::new(timed, [0; 7], None, any) }?.with_hooks(Verified::new(waits));
        timed.in_thread(move || {
            own_table()?;
            *locked(&made) = Some(Asked::new(method, count)?);
            Ok(())
        })
    }),
    absence: &[KILLED_BY_FILTER],
    ..PLAIN
};

impl Method {
    fn code(self) -> LongLoop {
        match self {
            Self::Select => select,
            Self::Poll => poll,
            Self::Epoll => epoll_wait,
        }
    }
}

fn rows(numbers: &[u64]) -> Vec<Params> {
    let case = |by: &str, count: u64| params(&[("by", by.into()), ("descriptors", count.into())]);
    Method::WORDS.iter().flat_map(|by| numbers.iter().map(move |&count| case(by, count))).collect()
}

/// Gives the thread its own empty descriptor table: select(2) needs low numbers, which other instances use too.
fn own_table() -> Result<()> {
    // SAFETY: this thread has used no descriptors.
    unsafe { tollgate_os::descriptors::own_table() }
        .or_refused("a private table of descriptors is not available (close_range(2), Linux 5.9)")
}

struct Asked {
    files: Vec<OwnedFd>,
    call: Call,
}

enum Call {
    Select { kept: Box<Set>, asked: Box<Set>, time: Box<libc::timeval> },
    Poll(Vec<libc::pollfd>),
    Epoll { instance: OwnedFd, events: Box<[libc::epoll_event; 8]> },
}

type Set = [u64; libc::FD_SETSIZE / 64];

impl Asked {
    /// Makes `count` descriptors, of which only the last is readable.
    fn new(method: Method, count: usize) -> Result<Self> {
        let mut files = Vec::with_capacity(count);
        for number in 1..=count {
            let ready = libc::c_uint::from(number == count);
            let file = eventfd(ready, libc::EFD_NONBLOCK).map_err(|error| refused(count, &error))?;
            files.push(file);
        }
        let call = match method {
            Method::Select => Call::select(&files)?,
            Method::Poll => Call::Poll(files.iter().map(|file| asked(file.as_raw_fd())).collect()),
            Method::Epoll => Call::epoll(&files)?,
        };
        Ok(Self { files, call })
    }

    fn ready(&self) -> Result<RawFd> {
        self.files.last().map(AsRawFd::as_raw_fd).ok_or_else(|| fail!("there is no descriptor"))
    }

    fn words(&mut self) -> Result<[u64; 7]> {
        let highest = self.ready()? as u64 + 1;
        Ok(match &mut self.call {
            Call::Select { kept, asked, time } => {
                let (kept, asked) = (kept.as_ptr() as u64, asked.as_mut_ptr() as u64);
                [highest, kept, asked, &raw mut **time as u64, 0, 0, 0]
            }
            Call::Poll(array) => [array.as_mut_ptr() as u64, array.len() as u64, 0, 0, 0, 0, 0],
            Call::Epoll { instance, events } => {
                [instance.as_raw_fd() as u64, events.as_mut_ptr() as u64, 0, 0, 0, 0, 0]
            }
        })
    }

    fn clear(&mut self) {
        match &mut self.call {
            Call::Select { asked, .. } => asked.fill(0),
            Call::Poll(array) => array.iter_mut().for_each(|asked| asked.revents = 0),
            Call::Epoll { events, .. } => events.fill(libc::epoll_event { events: 0, u64: 0 }),
        }
    }

    /// Checks that each call named the last descriptor and no other.
    fn check(&mut self, words: &[u64; 7], calls: u64) -> Result<()> {
        let ready = self.ready()?;
        let (results, is_right) = match &mut self.call {
            Call::Select { asked, .. } => (words[4], **asked == bits([ready])?),
            Call::Poll(array) => {
                let right =
                    |asked: &libc::pollfd| asked.revents == if asked.fd == ready { libc::POLLIN } else { 0 };
                (words[2], array.iter().all(right))
            }
            Call::Epoll { events, .. } => (words[2], { events[0].u64 } == ready as u64),
        };
        if results != calls {
            return Err(fail!(
                "the results of {calls} calls are {} in sum and should be {calls}",
                results as i64
            ));
        }
        if is_right {
            Ok(())
        } else {
            Err(fail!("a call did not name the descriptor that is ready, or named another one"))
        }
    }
}

impl Call {
    fn select(files: &[OwnedFd]) -> Result<Self> {
        let kept = Box::new(bits(files.iter().map(AsRawFd::as_raw_fd))?);
        let time = libc::timeval { tv_sec: 0, tv_usec: 0 };
        Ok(Self::Select { kept, asked: Box::new(Set::default()), time: Box::new(time) })
    }

    fn epoll(files: &[OwnedFd]) -> Result<Self> {
        // SAFETY: epoll_create1(2) takes a number.
        let instance = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) });
        let instance = instance.map_err(|error| refused(files.len(), &error))?;
        for file in files {
            let file = file.as_raw_fd();
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: file as u64 };
            // SAFETY: the event is valid for reading.
            let added =
                unsafe { libc::epoll_ctl(instance.as_raw_fd(), libc::EPOLL_CTL_ADD, file, &mut event) };
            checked(added).or_refused("epoll_ctl(2) is refused (fs.epoll.max_user_watches)")?;
        }
        Ok(Self::Epoll { instance, events: Box::new([libc::epoll_event { events: 0, u64: 0 }; 8]) })
    }
}

fn asked(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

fn bits(descriptors: impl IntoIterator<Item = RawFd>) -> Result<Set> {
    let mut set = Set::default();
    for descriptor in descriptors {
        let Some(word) = set.get_mut(descriptor as usize / 64) else {
            let size = libc::FD_SETSIZE;
            return Err(skip!(
                "select(2) takes descriptors below FD_SETSIZE ({size}), and one of these is {descriptor}"
            ));
        };
        *word |= 1 << (descriptor % 64);
    }
    Ok(set)
}

fn refused(count: usize, error: &io::Error) -> Refusal {
    if error.raw_os_error() != Some(libc::EMFILE) {
        return Refusal::new("eventfd2(2) is refused", error);
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is valid for writing.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    let allowed = limit.rlim_cur;
    skip!("{count} descriptors and a few more are needed, and RLIMIT_NOFILE allows {allowed}")
}

/// Hooks of the loop. The thread that runs it makes `made`, since it has its own descriptors.
struct Waits {
    made: Arc<Mutex<Option<Asked>>>,
    /// The loop's words before the batch.
    words: [u64; 7],
}

impl Subject for Waits {
    fn before(&mut self, context: &mut LoopContext) -> Result<()> {
        let mut made = locked(&self.made);
        let asked = made.as_mut().ok_or_else(|| fail!("the descriptors are not there"))?;
        asked.clear();
        self.words = asked.words()?;
        context.words = self.words;
        Ok(())
    }

    fn after(&mut self, context: &LoopContext, iterations: u64) -> Result<()> {
        let mut made = locked(&self.made);
        let asked = made.as_mut().ok_or_else(|| fail!("the descriptors are not there"))?;
        asked.check(&context.words, iterations)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use super::*;
    use crate::processes::raw::tests::in_a_process_of_its_own;
    use crate::testing::ready;

    fn instance(case: &Params) -> Result<Instance> {
        let Kind::Instance(make) = BENCHMARK.kind else { panic!("it has instances") };
        make((BENCHMARK.timed)(case), case, &mut Context::here())
    }

    fn limit(descriptors: u64) -> bool {
        let limit = libc::rlimit { rlim_cur: descriptors, rlim_max: descriptors };
        // SAFETY: the limit is valid for reading.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) == 0 }
    }

    #[test]
    fn each_method_finds_the_one_that_is_ready_and_closes_all() {
        in_a_process_of_its_own(|| {
            let open = || std::fs::read_dir("/proc/self/fd").map(Iterator::count).ok();
            let before = open();
            for case in rows(&[10, 1000]) {
                let Some(mut instance) = ready(&case, instance(&case)) else { continue };
                let batch = instance.batch(Clock::Kernel, Order::new(20));
                assert!(batch.is_ok_and(|batch| batch.work > 0), "{case:?}");
                // The descriptors are in the table of the instance's thread.
                assert_eq!(open(), before, "{case:?}");
            }
        });
    }

    #[test]
    fn another_descriptor_that_is_ready_or_none_fails() {
        for by in [Method::Select, Method::Poll, Method::Epoll] {
            let Some(mut asked) = ready(by, Asked::new(by, 10)) else { continue };
            let words = asked.words().expect("words");
            let mut context = LoopContext { words, result: 0 };
            let mut run = |asked: &mut Asked| {
                asked.clear();
                context.words = words;
                // SAFETY: the words are those of the loop.
                unsafe { by.code().run(3, &mut context) };
                asked.check(&context.words, 3)
            };
            assert_eq!(run(&mut asked), Ok(()), "{by:?}");
            assert!(asked.check(&words, 3).is_err(), "{by:?}: no call was made");
            let file = |at: usize| File::from(asked.files[at].try_clone().expect("a descriptor"));
            let (other, last) = (file(4), file(9));
            (&other).write_all(&1_u64.to_ne_bytes()).expect("written");
            assert!(run(&mut asked).is_err(), "{by:?}");
            for mut file in [&other, &last] {
                assert_eq!(file.read(&mut [0; 8]).expect("read"), 8);
            }
            assert!(run(&mut asked).is_err(), "{by:?}: none is ready");
        }
    }

    #[test]
    fn a_set_has_no_room_for_high_descriptors() {
        assert!(bits([0, 1023]).is_ok());
        let Err(Refusal::Skip(why)) = bits([3, 1024]) else { panic!("no room") };
        assert!(why.contains("FD_SETSIZE (1024)") && why.ends_with("is 1024"), "{why}");
        in_a_process_of_its_own(|| {
            let case = params(&[("by", "select".into()), ("descriptors", 4000.into())]);
            if limit(5000) {
                assert!(instance(&case).is_err_and(|refusal| refusal.why().contains("FD_SETSIZE")))
            } else {
                eprintln!("skipped: RLIMIT_NOFILE cannot be raised here")
            }
        });
    }

    #[test]
    fn the_limit_of_descriptors_is_honoured_and_named() {
        in_a_process_of_its_own(|| {
            assert!(limit(50));
            for case in rows(&[100]) {
                let Err(Refusal::Skip(why)) = instance(&case) else { panic!("{case:?} is refused") };
                assert!(why.ends_with("RLIMIT_NOFILE allows 50"), "{why}");
            }
            for case in rows(&[10]) {
                ready(&case, instance(&case));
            }
        });
    }
}
