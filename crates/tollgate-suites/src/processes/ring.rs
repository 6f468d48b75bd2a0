//! Context switches between processes with working sets: lmbench's lat_ctx.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::{collections::BTreeSet, io, ptr, rc::Rc};

use tollgate_arch::memory::read_lines;
use tollgate_os::process::{self, Child};

use super::raw::{self, TOKEN};
use super::trial::tried;
use crate::prelude::*;

/// lmbench's table of context switches (McVoy and Staelin, lmbench: portable tools for performance analysis, USENIX
/// 1996): the number of processes, and KiB that each of them sums.
const CASES: [(u64, u64); 7] = [(2, 0), (2, 16), (2, 64), (8, 16), (8, 64), (16, 16), (16, 64)];

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/ring",
    operation: "One one-way switch in a ring of processes on one processor (SCHED_BATCH) that pass a token through pipes and sum their own KiB; less the same passing and summing by one process (lat_ctx).",
    avoid: "Run fewer processes for each processor, with working sets that fit its caches together.",
    source: "McVoy and Staelin, lmbench, USENIX 1996 (lat_ctx); sched(7)",
    crosses: &[ContextSwitch, WakeUp, KernelEntry, SystemCall, KernelCode, UserCopy, Tlb, MemoryAccess],
    crossed_in: |params, boundary| boundary != MemoryAccess || number(params, "kib") > 0,
    timed: |_| Timed::Whole("pipe(7)"),
    counts: Some("switches"),
    cases: |_| {
        let case = |(n, kib): (u64, u64)| params(&[("processes", n.into()), ("kib", kib.into())]);
        CASES.into_iter().map(case).collect()
    },
    kind: Kind::Instance(|_, params, context| {
        let (processes, kib) = (number(params, "processes"), number(params, "kib"));
        let round = Round { ring: Ring::new(processes as usize, context)?, bytes: kib << 10 };
        tried(processes, &context.heartbeat, || round.run(Clock::Kernel, 1))?;
        Ok(Instance::new(round).with_ops(processes))
    }),
    ..PLAIN
};

pub(super) fn children() -> impl Iterator<Item = u64> {
    let rings: BTreeSet<u64> = CASES.into_iter().map(|(processes, _)| processes).collect();
    rings.into_iter().map(|processes| processes - 1)
}

const MOST_BYTES: usize = 64 << 10;

/// A flag in the token, next to the bytes to sum (whole cache lines): report the switches, then pass the token on.
const REPORT: u64 = 1;

#[repr(C, align(64))]
#[derive(Default)]
struct Report {
    passed: AtomicU64,
    switches: AtomicU64,
}

/// A ring of processes. This process is its first member; the others are its children and end with it.
struct Ring {
    /// To the second member.
    give: OwnedFd,
    /// From the last member.
    take: OwnedFd,
    /// As many pipes as the ring has, for the overhead run of one process.
    own: Vec<(OwnedFd, OwnedFd)>,
    children: Children,
    reports: Mapping,
    array: Array,
    _taken: Taken,
}

impl Ring {
    /// Returns the ring of this many processes, started on first use; cases with the same number share it.
    fn new(processes: usize, context: &mut Context) -> Result<Rc<Self>> {
        context.home()?;
        context.shared_while_held(&processes.to_string(), |context| Self::start(processes, &context.quota))
    }

    fn start(processes: usize, quota: &Quota) -> Result<Self> {
        let taken = quota.take_processes(processes.saturating_sub(1) as u64)?;
        let no_pipe = |error: io::Error| Refusal::new("pipe2 is refused", &error);
        let pipes = || (0..processes).map(|_| raw::pipe()).collect::<io::Result<Vec<_>>>().map_err(no_pipe);
        let no_memory = |error: io::Error| Refusal::new("mmap is refused", &error);
        let reports =
            Mapping::anonymous(processes * size_of::<Report>(), libc::MAP_SHARED).map_err(no_memory)?;
        let array = Array(Mapping::anonymous(MOST_BYTES, libc::MAP_PRIVATE).map_err(no_memory)?);
        let own = pipes()?;
        // Pipe number n leads from member n to the next one.
        let between = pipes()?;

        let policy = BatchPolicy::enter();
        let mut children = Children(Vec::new());
        for member in 1..processes {
            let (take, give) = (between[member - 1].0.as_raw_fd(), between[member].1.as_raw_fd());
            let Some(report) = report(&reports, member) else { continue };
            children.fork(quota, || {
                // Inherited ends of other pipes would hide that a member has exited.
                close_all_but(take.min(give), take.max(give));
                // The first write gives it private pages.
                array.fill();
                take_part(take, give, report, &array);
            })?;
        }
        drop(policy);
        array.fill();
        let mut ends = between.into_iter();
        let (first, last) = (ends.next(), ends.next_back());
        let (Some((_, give)), Some((take, _))) = (first, last) else {
            return Err(fail!("a ring needs at least two members"));
        };
        Ok(Self { give, take, own, children, reports, array, _taken: taken })
    }

    /// Runs one batch, in which each member sums `bytes` each time it gets the token.
    fn run(&self, clock: Clock, bytes: u64, trips: u64) -> Result<Batch> {
        let policy = BatchPolicy::enter();
        let mut whole = true;
        for _ in 0..(trips / 16).max(1) {
            whole &= self.pass(bytes);
        }
        let mut counting = Counting::begin(Of::Process);
        let emptied = counting.empty(|| clock.time(|| whole &= self.pass_alone(bytes, trips)));
        whole &= self.pass(bytes | REPORT);
        let before = self.reported();
        let own_before = raw::switches_of_process();
        let cpu_share = cpu::CpuShare::begin_with(&self.children.0);
        let worked = counting.work(|| {
            clock.time(|| {
                for _ in 0..trips {
                    whole &= self.pass(bytes);
                }
            })
        });
        let tally = counting.end();
        let alone = cpu_share.was_full();
        let own = raw::switches_of_process().saturating_sub(own_before);
        whole &= self.pass(bytes | REPORT);
        let emptied_again = clock.time(|| whole &= self.pass_alone(bytes, trips));
        drop(policy);
        if !whole {
            return Err(fail!("a member of the ring has exited"));
        }

        let mut counted = own;
        for (before, after) in before.iter().zip(self.reported()) {
            // The token with the second request was passed as well, and each member slept once after the first request.
            let passed = after.0.saturating_sub(before.0).saturating_sub(1);
            if passed != trips {
                return Err(fail!("a member passed {passed} tokens on instead of {trips}"));
            }
            counted += after.1.saturating_sub(before.1).saturating_sub(1);
        }
        let undisturbed = alone && counted == trips * self.members();
        let batch = Batch::between([emptied, worked, emptied_again], undisturbed);
        Ok(Batch { counted: Some(counted), tally: tally.with_switches(counted), ..batch })
    }

    fn members(&self) -> u64 {
        self.own.len() as u64
    }

    /// Passes the token round once. Returns false if it did not return.
    fn pass(&self, token: u64) -> bool {
        let mut back = 0;
        let passed = raw::write(self.give.as_raw_fd(), &token) == TOKEN
            && raw::read(self.take.as_raw_fd(), &mut back) == TOKEN;
        self.array.sum(back);
        passed && back == token
    }

    /// Does the work of all members in this process alone.
    fn pass_alone(&self, bytes: u64, trips: u64) -> bool {
        let mut passed = true;
        for _ in 0..trips {
            for (take, give) in &self.own {
                let mut token = bytes;
                passed &= raw::write(give.as_raw_fd(), &token) == TOKEN
                    && raw::read(take.as_raw_fd(), &mut token) == TOKEN;
                self.array.sum(token);
            }
        }
        passed
    }

    fn reported(&self) -> Vec<(u64, u64)> {
        let members = 1..self.own.len();
        let said = |report: &Report| (report.passed.load(SeqCst), report.switches.load(SeqCst));
        members.filter_map(|member| report(&self.reports, member)).map(said).collect()
    }
}

struct Round {
    ring: Rc<Ring>,
    bytes: u64,
}

impl Round {
    fn run(&self, clock: Clock, trips: u64) -> Result<Batch> {
        self.ring.run(clock, self.bytes, trips)
    }
}

impl Runner for Round {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        self.run(clock, order.all())
    }
}

/// Runs a child's part, until a pipe closes.
fn take_part(take: RawFd, give: RawFd, report: &Report, array: &Array) {
    let (mut token, mut passed) = (0, 0);
    while raw::read(take, &mut token) == TOKEN {
        array.sum(token);
        if token & REPORT != 0 {
            report.passed.store(passed, SeqCst);
            report.switches.store(raw::switches_of_process(), SeqCst);
        }
        passed += 1;
        if raw::write(give, &token) != TOKEN {
            break;
        }
    }
}

/// Closes every descriptor except these two; `low` must be the lower one.
fn close_all_but(low: RawFd, high: RawFd) {
    /// More than a process may open by default (RLIMIT_NOFILE).
    const MOST: RawFd = 1 << 12;
    let ranges = [(0, low - 1), (low + 1, high - 1), (high + 1, RawFd::MAX)];
    for (first, last) in ranges.into_iter().filter(|(first, last)| first <= last) {
        // SAFETY: the closed descriptors are this child's copies.
        let outcome = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        if outcome != 0 {
            for descriptor in first..=last.min(MOST) {
                // SAFETY: as above.
                unsafe { libc::close(descriptor) };
            }
        }
    }
}

/// While this lives, this thread and the children that it forks have the policy SCHED_BATCH.
///
/// Under SCHED_OTHER a woken process may preempt its waker (kernel/sched/fair.c, check_preempt_wakeup_fair), which
/// later runs again only to sleep: in rings of more than two, a handover would cause up to one and a half switches.
/// Under SCHED_BATCH the waker sleeps first.
struct BatchPolicy {
    entered: bool,
}

impl BatchPolicy {
    /// Keeps any other policy of the program.
    fn enter() -> Self {
        // SAFETY: sched_getscheduler(2) takes a number.
        let usual = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_OTHER;
        Self { entered: usual && set_policy(libc::SCHED_BATCH) }
    }
}

impl Drop for BatchPolicy {
    fn drop(&mut self) {
        if self.entered {
            set_policy(libc::SCHED_OTHER);
        }
    }
}

fn set_policy(policy: libc::c_int) -> bool {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is valid for reading; neither policy has priorities.
    unsafe { libc::sched_setscheduler(0, policy, &parameter) == 0 }
}

struct Children(Vec<Child>);

impl Children {
    fn fork(&mut self, quota: &Quota, part: impl FnOnce()) -> Result<()> {
        let life = || {
            part();
            0
        };
        let child = process::fork_bound(life);
        self.0.push(child.map_err(|error| quota.refused("a fork of a member of the ring", &error))?);
        Ok(())
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        // All children at once: a child that waits for another would be woken by the other's end.
        self.0.iter().for_each(|child| child.kill(libc::SIGKILL));
    }
}

fn report(reports: &Mapping, member: usize) -> Option<&Report> {
    let offset = member * size_of::<Report>();
    if offset + size_of::<Report>() > reports.length() {
        return None;
    }
    // SAFETY: the report lies within the mapping, aligned to its own size, and any bits are valid.
    Some(unsafe { &*reports.address().add(offset).cast::<Report>() })
}

struct Array(Mapping);

impl Array {
    /// Writes to all of it, so that every page is private to this process.
    fn fill(&self) {
        // SAFETY: the mapping has this length, and nothing else refers to it.
        unsafe { ptr::write_bytes(self.0.address(), 1, self.0.length()) };
    }

    /// Reads as many of its cache lines as the token says, eight bytes at a time, as lmbench's bread.
    #[inline(always)]
    fn sum(&self, token: u64) {
        const LINE: usize = 64;
        let lines = (token as usize).min(self.0.length()) / LINE;
        if lines == 0 {
            return;
        }
        // SAFETY: that many lines lie in the mapping.
        unsafe { read_lines(self.0.address().cast(), lines) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::raw::tests::in_a_process_of_its_own;
    use crate::testing::{limited_to, patiently, pinned, preferred, undisturbed};

    fn ring(processes: usize) -> Ring {
        pinned();
        Ring::start(processes, &Quota::default()).expect("a ring")
    }

    #[test]
    fn every_member_passes_each_token_with_one_switch() {
        in_a_process_of_its_own(|| {
            preferred();
            for (processes, bytes) in [(2, 0), (8, 16 << 10)] {
                let ring = ring(processes);
                assert!(ring.pass(bytes | REPORT));
                let before = ring.reported();
                assert_eq!(before.len(), processes - 1);
                for _ in 0..9 {
                    assert!(ring.pass(bytes));
                }
                assert!(ring.pass(bytes | REPORT));
                let passed: Vec<u64> =
                    ring.reported().iter().zip(&before).map(|(after, before)| after.0 - before.0).collect();
                assert_eq!(passed, vec![10; processes - 1]);

                if let Some(batch) = undisturbed(|| ring.run(Clock::Kernel, bytes, 4).expect("a batch")) {
                    assert_eq!(batch.counted, Some(4 * processes as u64), "{processes} processes");
                }
            }
        });
    }

    #[test]
    fn members_end_with_the_last_instance_of_their_ring() {
        in_a_process_of_its_own(|| {
            pinned();
            let mut context = Context::here();
            let mut of = |processes| Ring::new(processes, &mut context).expect("a ring");
            let (ring, other) = (of(8), of(8));
            assert!(Rc::ptr_eq(&ring, &other) && !Rc::ptr_eq(&ring, &of(2)));
            let children: Vec<_> = ring.children.0.iter().map(Child::pid).collect();
            assert_eq!(children.len(), 7);
            drop(ring);
            assert!(other.pass(0));
            drop(other);
            assert!(children.into_iter().all(|child| process::peek(Some(child), libc::WEXITED).is_err()));
        });
    }

    #[test]
    fn members_end_with_their_parent() {
        let (mut numbers, sender) =
            raw::pipe().map(|(out, to)| (std::fs::File::from(out), to)).expect("a pipe");
        let parent = process::fork_bound(|| {
            let ring = ring(2);
            raw::write(sender.as_raw_fd(), &(ring.children.0[0].pid() as u64));
            std::mem::forget(ring);
            0
        });
        parent.and_then(|mut parent| parent.wait()).expect("it ends");
        let mut child = [0; 8];
        io::Read::read_exact(&mut numbers, &mut child).expect("a number");
        let child = u64::from_ne_bytes(child) as libc::pid_t;
        // It is killed at once, and is a zombie until its new parent reaps it.
        let has_exited = || {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat"));
            stat.map_or(true, |stat| stat.contains(") Z "))
        };
        patiently("the end of a member whose parent has ended", || has_exited().then_some(()));
    }

    #[test]
    fn a_missing_member_fails_the_batch() {
        in_a_process_of_its_own(|| {
            for which in [0, 3, 6] {
                let ring = ring(8);
                ring.run(Clock::Kernel, 0, 4).expect("a batch");
                ring.children.0[which].kill(libc::SIGKILL);
                let outcome = ring.run(Clock::Kernel, 0, 4);
                assert_eq!(outcome, Err(fail!("a member of the ring has exited")));
            }
        });
    }

    #[test]
    fn a_process_limit_is_a_skip_and_no_process_stays() {
        in_a_process_of_its_own(|| {
            pinned();
            if !limited_to(1) {
                return;
            }
            match Ring::start(8, &Quota::default()).err() {
                Some(Refusal::Skip(why)) => assert!(why.contains("RLIMIT_NPROC"), "{why}"),
                other => panic!("{other:?}"),
            }
            assert!(process::wait4(-1, libc::WNOHANG).is_err());
        });
    }
}
