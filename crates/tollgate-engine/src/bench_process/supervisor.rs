use std::ffi::{CStr, CString, OsStr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{
    fs::File, io, os::fd::AsRawFd, os::fd::OwnedFd, os::unix::ffi::OsStrExt, os::unix::fs::OpenOptionsExt,
};

use tollgate_os::group::{self, Group};
use tollgate_os::process;

use crate::bench_process::worker::{self, Find, Task};
use crate::{
    bench_process::record::ProcessRecord, bench_process::shared::SharedResults, machine::cpu,
    machine::ending::Ending, machine::group::LOOK, machine::interrupt,
};

pub(crate) enum Isolation {
    /// By exec: new addresses, new pages.
    Exec(File),
    /// By fork, if exec or the shared memory file is not possible.
    Fork,
}

impl Isolation {
    /// The best that this environment allows, depending on whether the program serves after an exec.
    pub fn here(serves: bool) -> Self {
        if !serves {
            return Self::Fork;
        }
        // The link needs /proc; the path of the auxiliary vector may be stale. O_PATH, because an executable may be unreadable.
        let open = |path: &Path| File::options().read(true).custom_flags(libc::O_PATH).open(path);
        let own = open(Path::new("/proc/self/exe")).or_else(|_| open(&path_executed()?));
        own.map_or(Self::Fork, Self::Exec)
    }

    pub fn describe(&self) -> &'static str {
        match self {
            Self::Exec(_) => "exec",
            Self::Fork => "fork",
        }
    }
}

fn path_executed() -> io::Result<PathBuf> {
    // SAFETY: getauxval(3) has no preconditions.
    let address = unsafe { libc::getauxval(libc::AT_EXECFN) };
    if address == 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    // SAFETY: AT_EXECFN points to a NUL-terminated path that lives as long as the process.
    let path = unsafe { CStr::from_ptr(address as *const libc::c_char) };
    Ok(Path::new(OsStr::from_bytes(path.to_bytes())).to_owned())
}

pub(crate) struct Worker {
    group: Group,
    pub shared: SharedResults,
}

impl Worker {
    /// Starts it, and retries if memory or process ids are short for a moment.
    pub fn start(task: &Task, isolation: &Isolation, find: Find) -> io::Result<Self> {
        const TRIES: u32 = 5;
        let mut tried = 1;
        loop {
            match Self::start_once(task, isolation, find) {
                Err(error)
                    if tried < TRIES && matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM)) =>
                {
                    std::thread::sleep(Duration::from_millis(20) * tried);
                    tried += 1;
                }
                outcome => return outcome,
            }
        }
    }

    fn start_once(task: &Task, isolation: &Isolation, find: Find) -> io::Result<Self> {
        let shared = SharedResults::new(task.instances())?;
        shared.set_task(task)?;
        let exec = match (isolation, shared.descriptor()) {
            (Isolation::Exec(program), Some(descriptor)) => Some((program.as_raw_fd(), descriptor)),
            _ => None,
        };
        let parent = process::own_pid();
        let words =
            [worker::NAME.to_owned(), shared.descriptor().unwrap_or(-1).to_string(), parent.to_string()];
        let words: Vec<CString> = words.into_iter().map(CString::new).collect::<Result<_, _>>()?;
        let mut arguments: Vec<*const libc::c_char> = words.iter().map(|word| word.as_ptr()).collect();
        arguments.push(std::ptr::null());

        // The child calls only async-signal-safe functions until it has become another program. If exec fails, other threads of
        // the parent, if any, hold no lock that it needs (the C library makes its own locks safe across fork).
        let first = process::fork_bound(|| {
            // The terminal's Ctrl-C does not reach a child in its own process group. The parent gets it, and kills the group.
            group::lead();
            // SAFETY: both are descriptors.
            unsafe { libc::dup2(2, 1) };
            if task.counts() {
                keep_addresses();
            }
            // The program that it becomes must not run elsewhere first: at every TLB flush the kernel checks whether to interrupt
            // each processor that has run it (mm_cpumask in arch/x86/mm/tlb.c). Flushes would be slower for up to a second.
            let _ = task.cpu.map(cpu::pin);
            if let Some((program, descriptor)) = exec {
                // SAFETY: plain system calls on our own descriptors; the strings and their array outlive the call.
                unsafe {
                    libc::fcntl(descriptor, libc::F_SETFD, 0);
                    for &pipe in task.descriptors() {
                        libc::fcntl(pipe, libc::F_SETFD, 0);
                    }
                    libc::syscall(
                        libc::SYS_execveat,
                        program,
                        c"".as_ptr(),
                        arguments.as_ptr(),
                        environ,
                        libc::AT_EMPTY_PATH,
                    );
                }
            }
            worker::serve(&shared, find)
        })?;
        Ok(Self { group: Group::of(first), shared })
    }

    pub fn record(&self, instances: usize) -> ProcessRecord {
        ProcessRecord::read(&self.shared, instances)
    }

    /// A descriptor that is readable when the process has ended, if the kernel has such descriptors.
    pub fn descriptor_of_end(&self) -> Option<OwnedFd> {
        self.group.first().pidfd().ok()
    }

    pub fn ended(&mut self) -> Option<Ending> {
        self.group.reap().map(Ending::from)
    }

    pub fn kill(&mut self) {
        self.group.kill();
    }

    /// Waits until it ends, and kills it after `patience`.
    pub fn let_end(mut self, patience: Duration) {
        let until = Instant::now() + patience;
        while self.group.reap().is_none() && Instant::now() < until {
            self.group.wait_a_while(LOOK);
        }
    }

    /// Waits for the process's end, or kills it: without progress for `stall`, at `deadline`, or when the user asks to stop.
    /// `tick` is called repeatedly.
    pub fn watch(
        &mut self,
        stall: Duration,
        deadline: Instant,
        mut tick: impl FnMut(&SharedResults),
    ) -> Ending {
        let mut beats = self.shared.beats();
        let mut last_beat = Instant::now();
        loop {
            if let Some(ended) = self.group.reap() {
                return ended.into();
            }
            let now = Instant::now();
            let beats_now = self.shared.beats();
            if beats_now != beats {
                (beats, last_beat) = (beats_now, now);
            }
            let cut = if interrupt::requested().is_some() {
                Some(Ending::Interrupted)
            } else if now >= deadline {
                Some(Ending::OutOfTime)
            } else if now - last_beat >= stall {
                Some(Ending::Stalled)
            } else {
                None
            };
            if let Some(ending) = cut {
                self.group.kill();
                return ending;
            }
            tick(&self.shared);
            self.group.wait_a_while(LOOK);
        }
    }
}

/// Disables address randomization for the program that this process becomes: addresses decide how many page tables the kernel walks and copies.
fn keep_addresses() {
    const ASK: libc::c_ulong = 0xffff_ffff;
    // SAFETY: personality(2) changes no memory. If it fails, the addresses differ between processes.
    unsafe {
        let now = libc::personality(ASK);
        if now >= 0 {
            libc::personality(
                now.cast_unsigned() as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong,
            );
        }
    }
}

unsafe extern "C" {
    static environ: *const *const libc::c_char;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_process::worker::Work;
    use crate::machine::limits::Limits;

    /// Each processor that a program has run on is checked at every flush of its TLB, for up to a second.
    #[test]
    fn the_program_that_it_becomes_begins_on_its_processor_alone() {
        let allowed = cpu::allowed();
        let [.., before, last] = allowed[..] else { return println!("skipped: one processor only") };
        // A program that pins nothing, and takes the words of a bench process for numbers of seconds.
        let Ok(sleep) = File::open("/bin/sleep") else { return println!("skipped: there is no /bin/sleep") };
        let sleeps = std::fs::canonicalize("/bin/sleep").expect("its path");
        for cpu in [before, last] {
            let (affinity, limits, storage) =
                (Ok(()), Limits::default(), Err("none is asked for".to_owned()));
            let task = Task {
                cpu: Some(cpu),
                allowed: allowed.clone(),
                affinity,
                limits,
                storage,
                work: Work::Clock,
            };
            let isolation = Isolation::Exec(sleep.try_clone().expect("a descriptor"));
            let mut worker = Worker::start(&task, &isolation, |_| None).expect("a process");
            let process = format!("/proc/{}", worker.group.first().pid());
            let until = Instant::now() + Duration::from_secs(300);
            while std::fs::read_link(format!("{process}/exe")).ok().as_ref() != Some(&sleeps) {
                assert!(worker.ended().is_none(), "it has ended");
                assert!(Instant::now() < until, "it has not become /bin/sleep");
                std::thread::sleep(Duration::from_millis(1));
            }
            let status = std::fs::read_to_string(format!("{process}/status")).expect("proc_pid_status(5)");
            let list =
                status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list");
            assert_eq!(list.trim(), cpu.to_string());
        }
    }
}
