//! A call that a seccomp filter passes to a supervisor in user mode (perf bench sched seccomp-notify).

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::{io, mem::offset_of};

use crate::descriptor::owned;
use crate::prelude::*;
use crate::server::Server;

// include/uapi/linux/seccomp.h
const SECCOMP_FILTER_FLAG_NEW_LISTENER: libc::c_ulong = 1 << 3;
const SECCOMP_RET_USER_NOTIF: u32 = 0x7fc0_0000;
const SECCOMP_IOCTL_NOTIF_RECV: libc::c_ulong = 0xc050_2100;
const SECCOMP_IOCTL_NOTIF_SEND: libc::c_ulong = 0xc018_2101;

/// The supervisor's answer. No process can have it as parent (PID_MAX_LIMIT is 2^22).
const ANSWER: u64 = 0x7467_7467;

timed_loop! {
    getppid: called call SYS_getppid()
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/seccomp-notify",
    operation: "One getppid that a seccomp filter hands to a supervisor, a thread on the same processor, which answers it: poll, SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND.",
    avoid: "Let the filter itself decide, and hand over only rare calls.",
    source: "seccomp_unotify(2); perf bench sched seccomp-notify; kernel/seccomp.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, SeccompFilter, UserCopy, WakeUp, ContextSwitch],
    timed: |_| Timed::once("syscall/svc", TimedLoop::Long(getppid)),
    counts: Some("notifications"),
    in_everything: |_, _| false,
    kind: Kind::Instance(|timed, _, _| {
        let supervised = Arc::new(Mutex::new(None));
        let hooks = Supervision(Arc::clone(&supervised));
        let timed = Loop::without_context(timed, answered)?.with_hooks(hooks);
        timed.in_thread(move || {
            *locked(&supervised) = Some(Supervisor::start()?);
            Ok(())
        })
    }),
    ..PLAIN
};

fn answered(result: u64) -> Result<(), String> {
    match result {
        ANSWER => Ok(()),
        other => Err(format!("the call returned {} and not the supervisor's answer", other as i64)),
    }
}

#[repr(C)]
#[derive(Default)]
struct Notification {
    id: u64,
    pid: u32,
    flags: u32,
    data: [u64; 8],
}

#[repr(C)]
struct Response {
    id: u64,
    value: u64,
    error: i32,
    flags: u32,
}

// The ioctl numbers encode these sizes.
const _: () = {
    assert!(size_of::<Notification>() == 0x50 && size_of::<Response>() == 0x18);
    assert!(offset_of!(Notification, data) == 16);
};

struct Supervisor {
    answered: Arc<AtomicU64>,
    _server: Server,
}

impl Supervisor {
    fn start() -> Result<Self> {
        let answered = Arc::new(AtomicU64::new(0));
        let (give, take) = mpsc::channel::<OwnedFd>();
        let counted = Arc::clone(&answered);
        // The supervisor starts before the filter is installed, and so does not have it. It alone owns the listener: if it ends
        // early, each call that waits for it fails with ENOSYS.
        let server = Server::start(move |stop| {
            if let Ok(listener) = take.recv() {
                let _ = stop.serve(&listener, || answer(&listener, &counted));
            }
        })?;
        // Without a listener the thread waits for one until `give` is dropped, and the server is joined after that.
        let given = listen().map(move |listener| give.send(listener)).map_err(|error| {
            match error.raw_os_error() {
                Some(libc::EBUSY) => skip!("this process has a seccomp supervisor already (EBUSY)"),
                _ => Refusal::new("a seccomp filter with a listener is refused (Linux 5.0)", &error),
            }
        })?;
        given.map_err(|_| fail!("the supervisor ended early"))?;
        Ok(Self { answered, _server: server })
    }
}

fn listen() -> io::Result<OwnedFd> {
    let one = |code: u32, k: u32, jf: u8| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let filter = [
        // Offset 0 of struct seccomp_data: the number of the call.
        one(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        one(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_getppid as u32, 1),
        one(libc::BPF_RET | libc::BPF_K, SECCOMP_RET_USER_NOTIF, 0),
        one(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: PR_SET_NO_NEW_PRIVS takes plain numbers; `program` points to `len` instructions, which the kernel copies.
    let listener = unsafe {
        checked(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        libc::syscall(libc::SYS_seccomp, mode, SECCOMP_FILTER_FLAG_NEW_LISTENER, &raw const program)
    };
    owned(listener)
}

fn answer(listener: &OwnedFd, counted: &AtomicU64) -> io::Result<()> {
    // The kernel refuses a structure that is not zeroed (EINVAL).
    let mut notification = Notification::default();
    // SAFETY: the structure is seccomp_notif as the kernel defines it.
    checked(unsafe { libc::ioctl(listener.as_raw_fd(), SECCOMP_IOCTL_NOTIF_RECV, &mut notification) })?;
    // Counts before the answer is sent: the answer wakes the caller, which may read the count at once.
    counted.fetch_add(1, SeqCst);
    let mut response = Response { id: notification.id, value: ANSWER, error: 0, flags: 0 };
    // SAFETY: the structure is seccomp_notif_resp as the kernel defines it.
    checked(unsafe { libc::ioctl(listener.as_raw_fd(), SECCOMP_IOCTL_NOTIF_SEND, &mut response) }).map(drop)
}

/// Hooks of the loop, which count the answers of a batch. The supervised thread makes the supervisor, which ends with it.
struct Supervision(Arc<Mutex<Option<Supervisor>>>);

impl BatchHooks for Supervision {
    fn before(&mut self, _: &mut LoopContext, _: u64) -> Result<()> {
        match &*locked(&self.0) {
            Some(supervisor) => supervisor.answered.store(0, SeqCst),
            None => return Err(fail!("there is no supervisor")),
        }
        Ok(())
    }

    fn after(&mut self, _: &LoopContext) -> Result<Option<u64>> {
        Ok(locked(&self.0).as_ref().map(|supervisor| supervisor.answered.load(SeqCst)))
    }

    fn blocks(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::processes::raw::tests::{comes_to_threads, in_a_process_of_its_own, threads};
    use crate::testing::{pinned, ready};

    #[test]
    fn each_call_is_answered_once_and_the_supervisor_ends_with_the_instance() {
        in_a_process_of_its_own(|| {
            pinned();
            let Some(before) = threads() else { return eprintln!("skipped: no /proc") };
            let Kind::Instance(make) = BENCHMARK.kind else { panic!("it has instances") };
            let params = Params::new();
            let made = make((BENCHMARK.timed)(&params), &params, &mut Context::here());
            let Some(mut instance) = ready("a supervisor", made) else { return };
            for _ in 0..3 {
                let batch = instance.batch(Clock::Kernel, Order::new(20)).expect("a batch");
                assert_eq!(batch.counted, Some(20));
            }
            drop(instance);
            comes_to_threads(before, "the timed thread and the supervisor");
        });
    }

    #[test]
    fn a_second_supervisor_is_refused_and_its_thread_ends() {
        in_a_process_of_its_own(|| {
            let Some(before) = threads() else { return eprintln!("skipped: no /proc") };
            // The filter belongs to this thread, which ends here.
            let of_one_thread = thread::spawn(|| {
                let Some(_first) = ready("a supervisor", Supervisor::start()) else { return };
                let second = Supervisor::start().map(drop);
                assert!(second.as_ref().is_err_and(|refusal| refusal.why().contains("EBUSY")), "{second:?}");
            });
            of_one_thread.join().expect("no panic");
            comes_to_threads(before, "both supervisors");
        });
    }

    #[test]
    fn a_call_without_a_supervisor_fails() {
        let outcome = thread::spawn(|| {
            let listener = match listen() {
                Ok(listener) => listener,
                Err(error) => {
                    eprintln!("skipped: {error}");
                    return None;
                }
            };
            drop(listener);
            let mut timed =
                Loop::without_context((BENCHMARK.timed)(&Params::new()), answered).expect("a loop");
            Some(answered(timed.try_once()))
        });
        if let Some(outcome) = outcome.join().expect("no panic") {
            let enosys = libc::ENOSYS;
            assert!(outcome.is_err_and(|why| why.contains(&format!("-{enosys} "))));
        }
    }
}
