//! Counts the instructions of commands in a guest whose clock advances by one tick per instruction.
//!
//! A copy of this process waits until just after a kernel tick, reads the time stamp counter and becomes the command. This process reads
//! the counter again when it is notified of the command's end. The instructions in between are the command's: execve(2), its program
//! with everything that it starts and waits for, and its exit. Executions must be the same at each boot, so nothing here depends on a
//! time of the host: `/init` executes all of them before anything in the guest communicates with the host.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_getres, clock_gettime};
use serde::{Deserialize, Serialize};
use tollgate_model::text::plainly;
use tollgate_model::traced::Ended;
use tollgate_os::process::{self, Child, Status};
use tollgate_os::rusage::Usage;
use tollgate_os::shared::Shared;
use tollgate_os::{group, memfd, paths, signals};

use super::order::{End, Execution, How, Input, Order, Output};
use crate::checked;
use crate::machine::clock::Clock;
use tollgate_arch::mark;

/// The file of the orders, in the guest.
pub const ORDERS: &str = "/tollgate/orders";
/// The file of their results, one execution per line.
pub const FOUND: &str = "/tollgate/found";
/// A copy of `/proc/kallsyms`, if `/init` made one.
pub const SYMBOLS: &str = "/tollgate/kallsyms";
/// The search path of programs in a guest.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// A pause before each execution, in which the kernel finishes deferred work of earlier ones, such as RCU callbacks.
const PAUSE: Duration = Duration::from_millis(20);
/// The time limit of an execution, by the guest's clock. A waiting guest jumps to its next timer at once, so an execution that waits
/// forever is detected quickly.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How many of the last bytes that a command wrote are kept.
const MOST_SAID: u64 = 16 << 10;
/// Rounds that are executed even if they take long: the first, and two others, which may differ.
const LEAST_ROUNDS: usize = 3;

/// Why there is no execution of a number.
pub const NO_MORE: &str = "no more were executed";

/// Orders for `/init` of a guest, which carries them out before its agent begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Rounds {
    /// Orders before the rounds, then those of each round.
    pub orders: Vec<Vec<Order>>,
    /// Instructions after which no further round begins.
    pub enough: u64,
    /// Whether the kernel's functions will be asked for. Reading them takes a second, and guests are asked one after the other.
    pub has_functions: bool,
    /// A traced execution that will be asked for, which takes half a second.
    pub traced: Option<Order>,
}

/// Executes all orders, and passes each execution to `keep`. It stops early if a command does not end by itself, or if an order around a
/// command fails.
pub fn execute_all(Rounds { orders, enough, .. }: &Rounds, keep: &mut dyn FnMut(&Execution)) {
    let mut spent = 0_u64;
    for (number, round) in orders.iter().enumerate() {
        if number > LEAST_ROUNDS && spent >= *enough {
            return;
        }
        for order in round {
            let execution = execute(order);
            keep(&execution);
            let is_counted = order.how == How::Counted;
            let goes_on = match execution.end {
                End::Ended(Ended::Exit(0)) => true,
                End::Ended(_) => is_counted,
                _ => false,
            };
            if !goes_on {
                return;
            }
            spent = spent.saturating_add(if is_counted { execution.wall_ns } else { 0 });
        }
    }
}

/// Executes an order after a kernel tick. Its real time is that of the time stamp counter: instructions.
pub fn execute(order: &Order) -> Execution {
    let mut execution = not_started(String::new());
    let said = memfd::create("said");
    let done = said.and_then(|mut said| {
        let ended = Prepared::new(order, &said).and_then(|prepared| prepared.run(order, &mut execution));
        execution.said = end_of(&mut said)?;
        Ok(ended)
    });
    match done {
        Ok(Ok(())) => {}
        Ok(Err(why)) => execution.end = End::NotStarted(why),
        Err(error) => execution.end = End::NotStarted(plainly(&error)),
    }
    execution
}

/// Reads the execution with this number from the order's input file, which has one per line. If there is none, returns one that was not
/// started.
pub fn recalled(order: &Order, number: usize) -> Execution {
    let Input::File(path) = &order.input else { return not_started("nothing is recalled".to_owned()) };
    let read = std::fs::read_to_string(path).map_err(|error| plainly(&error));
    let found = read.and_then(|text| match text.lines().nth(number) {
        Some(line) => serde_json::from_slice(line.as_bytes()).map_err(|error| error.to_string()),
        None => Err(NO_MORE.to_owned()),
    });
    found.unwrap_or_else(not_started)
}

/// Returns the order of a traced execution, if all that `/init` executed ended by themselves.
pub fn traced_ahead() -> Option<Order> {
    let rounds: Rounds = serde_json::from_slice(&std::fs::read(ORDERS).ok()?).ok()?;
    let found = std::fs::read_to_string(FOUND).ok()?;
    let ended = |line: &str| {
        serde_json::from_slice::<Execution>(line.as_bytes()).is_ok_and(|one| matches!(one.end, End::Ended(_)))
    };
    found.lines().all(ended).then_some(rounds.traced).flatten()
}

fn not_started(why: String) -> Execution {
    Execution::ended(End::NotStarted(why))
}

/// Returns the last bytes that a command wrote.
fn end_of(said: &mut File) -> io::Result<String> {
    let length = said.seek(SeekFrom::End(0))?;
    said.seek(SeekFrom::Start(length.saturating_sub(MOST_SAID)))?;
    let mut bytes = Vec::new();
    said.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Indices of the words that the copy and its parent share.
const BEGAN: usize = 0;
const COARSE: usize = 1;
const FAULTS: usize = 2;
const SWITCHES: usize = 3;
const FAILED: usize = 4;

/// Everything that a copy of this process needs to become the command.
struct Prepared<'a> {
    program: CString,
    words: Vec<CString>,
    variables: Vec<CString>,
    directory: Option<&'a Path>,
    streams: [File; 3],
    shared: Shared<5>,
    clock: Clock,
}

impl<'a> Prepared<'a> {
    fn new(order: &'a Order, said: &File) -> Result<Self, String> {
        let name = order.words.first().ok_or("it has no word")?;
        let search = order.variables.iter().find(|(name, _)| name == "PATH");
        let program = find(name, search.map_or("", |(_, search)| search))?;
        let system = |error: io::Error| plainly(&error);
        let said = || said.try_clone().map_err(system);
        let open = |path: &Path| {
            File::open(path).map_err(|error| format!("{}: {}", path.display(), plainly(&error)))
        };
        let make = |path: &Path| paths::open_emptied(path).map_err(|error| error.to_string());
        let input = match &order.input {
            Input::Null => open(Path::new("/dev/null"))?,
            Input::File(path) => open(path)?,
        };
        let output = match &order.output {
            Output::Null => make(Path::new("/dev/null"))?,
            Output::File(path) => make(path)?,
            Output::Pipe | Output::Inherit => said()?,
        };
        let (clock, _) = Clock::of_instructions().map_err(|fault| fault.to_string())?;
        Ok(Self {
            program: text(&program.to_string_lossy())?,
            words: order.words.iter().map(|word| text(word)).collect::<Result<_, _>>()?,
            variables: order
                .variables
                .iter()
                .map(|(name, value)| text(&format!("{name}={value}")))
                .collect::<Result<_, _>>()?,
            directory: order.directory(),
            streams: [input, output, said()?],
            shared: Shared::new().map_err(system)?,
            clock,
        })
    }

    /// Executes it, and notes the result.
    fn run(&self, order: &Order, execution: &mut Execution) -> Result<(), String> {
        let failed = |call: &str, error: &io::Error| format!("{call}: {}", plainly(error));
        let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (words, variables) = (pointers(&self.words), pointers(&self.variables));
        let child = process::fork(|| self.become_it(&words, &variables))
            .map_err(|error| failed("fork(2)", &error))?;
        group::join(child.pid(), child.pid());
        let ended =
            child.pidfd().map_err(|error| failed("pidfd_open(2), which Linux has since 5.3", &error))?;
        let within = order.within.unwrap_or(PATIENCE);
        let most = Timespec { tv_sec: within.as_secs().cast_signed(), tv_nsec: within.subsec_nanos().into() };
        let ready = poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&most));
        let now = self.clock.moment();
        mark::end();
        let coarse = coarse();
        let is_over = matches!(ready, Ok(1..));
        if !(order.keeps && is_over) {
            let _ = process::kill(-child.pid(), libc::SIGKILL);
        }
        let group = -child.pid();
        let (ended, used) = wait(child).map_err(|error| failed("wait4(2)", &error))?;
        execution.left = if order.keeps { 0 } else { reap(group) };
        let of = |word: usize| self.shared[word].load(Relaxed);
        if of(FAILED) != 0 {
            let error = io::Error::from_raw_os_error(of(FAILED) as i32);
            return Err(format!("{}: {}", order.words[0], plainly(&error)));
        }
        execution.wall_ns = now.saturating_sub(of(BEGAN));
        let resolution = clock_getres(ClockId::MonotonicCoarse);
        let tick = (resolution.tv_sec as u64 * 1_000_000_000 + resolution.tv_nsec as u64).max(1);
        execution.ticks = u32::try_from(coarse.saturating_sub(of(COARSE)) / tick).unwrap_or(u32::MAX);
        execution.faults = used.faults().saturating_sub(of(FAULTS));
        execution.switches = u32::try_from(used.nivcsw.saturating_sub(of(SWITCHES))).unwrap_or(u32::MAX);
        (execution.user_ns, execution.sys_ns) = (used.user_ns, used.sys_ns);
        execution.end = if is_over { End::Ended(ended) } else { End::OutOfTime };
        Ok(())
    }

    /// Becomes the command, in the copy. The lists must end with null. It returns only if it could not become the command.
    fn become_it(&self, words: &[*const libc::c_char], variables: &[*const libc::c_char]) -> i32 {
        group::lead();
        // A program inherits ignored signals.
        signals::default(&[libc::SIGPIPE, libc::SIGXFSZ]);
        let settled = self.settle();
        if let Err(error) = settled {
            self.shared[FAILED].store(error.raw_os_error().unwrap_or(libc::EIO) as u64, Relaxed);
            return 127;
        }
        let now = behind_a_tick();
        let used = Usage::of_process();
        self.shared[COARSE].store(now, Relaxed);
        self.shared[FAULTS].store(used.faults(), Relaxed);
        self.shared[SWITCHES].store(used.nivcsw, Relaxed);
        // Twice, so that no page of it is missing the second time.
        self.shared[BEGAN].store(self.clock.moment(), Relaxed);
        mark::begin();
        self.shared[BEGAN].store(self.clock.moment(), Relaxed);
        // SAFETY: the texts end with NUL, and the lists with null.
        unsafe { libc::execve(self.program.as_ptr(), words.as_ptr(), variables.as_ptr()) };
        let error = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        self.shared[FAILED].store(error as u64, Relaxed);
        127
    }

    fn settle(&self) -> io::Result<()> {
        if let Some(directory) = self.directory {
            std::env::set_current_dir(directory)?;
        }
        for (number, stream) in (0..).zip(&self.streams) {
            // SAFETY: both are open descriptors of this process.
            checked(unsafe { libc::dup2(stream.as_raw_fd(), number) })?;
        }
        Ok(())
    }
}

fn text(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| "it has a NUL".to_owned())
}

/// Returns the file of a program. A name with a slash is a path; others are searched for along `search`.
fn find(name: &str, search: &str) -> Result<PathBuf, String> {
    if name.contains('/') {
        return Ok(PathBuf::from(name));
    }
    let mut candidates = search.split(':').map(|directory| Path::new(directory).join(name));
    candidates.find(|path| path.is_file()).ok_or_else(|| format!("{name} is not in PATH ({search})"))
}

/// Returns how the command ended, and the resources that it and the processes that it waited for used.
fn wait(child: Child) -> io::Result<(Ended, Usage)> {
    let pid = child.pid();
    child.leave();
    loop {
        match process::wait4(pid, 0) {
            Ok(Some(wait)) => {
                if let Status::Ended(ended) = wait.status {
                    return Ok((ended, wait.usage));
                }
            }
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits for the killed processes of a group that are now children of this process. Returns their number.
fn reap(group: libc::pid_t) -> u32 {
    let mut number = 0;
    while let Ok(Some(_)) = process::wait4(group, libc::WNOHANG) {
        number += 1;
    }
    number
}

/// Waits until just after a kernel tick. Returns the coarse clock at that time.
fn behind_a_tick() -> u64 {
    std::thread::sleep(PAUSE);
    let first = coarse();
    loop {
        match coarse() {
            now if now == first => {}
            now => return now,
        }
    }
}

/// Returns CLOCK_MONOTONIC_COARSE in nanoseconds. It advances with the kernel's tick.
fn coarse() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an order for any machine: the tests do not check what the counter counts.
    fn order(line: &str) -> Order {
        Order {
            words: ["sh", "-c", line].map(str::to_owned).to_vec(),
            variables: [("PATH", PATH), ("PWD", "/")].map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec(),
            how: How::Counted,
            within: Some(Duration::from_secs(60)),
            is_alone: true,
            ..Order::default()
        }
    }

    #[test]
    fn an_execution_has_its_end_its_words_and_no_variables_but_its_own() {
        let execution = execute(&order("echo $PWD $HOME$LANG. >&2; exit 3"));
        assert_eq!((execution.end, execution.said.as_str()), (End::Ended(Ended::Exit(3)), "/ .\n"));
        assert!(execution.wall_ns > 0 && execution.faults > 0);
    }

    #[test]
    fn what_is_not_there_or_never_ends_says_so() {
        let missing = Order { words: vec!["tollgate-no-such-program".to_owned()], ..order("") };
        assert!(
            matches!(execute(&missing).end, End::NotStarted(why) if why.contains("tollgate-no-such-program is not in PATH"))
        );
        let missing = Order { words: vec!["/no/such".to_owned()], ..order("") };
        assert!(matches!(execute(&missing).end, End::NotStarted(why) if why.contains("/no/such")));
        let waits = Order { within: Some(Duration::from_millis(200)), ..order("sleep 100 & wait") };
        assert_eq!(execute(&waits).end, End::OutOfTime);
    }

    #[test]
    fn rounds_end_where_something_fails_or_enough_was_executed() {
        let ends = |rounds: &[Vec<Order>], enough| {
            let mut number = 0;
            let rounds = Rounds { orders: rounds.to_vec(), enough, has_functions: false, traced: None };
            execute_all(&rounds, &mut |_| number += 1);
            number
        };
        let around = |line| Order { how: How::Timed, ..order(line) };
        let round = vec![around("true"), order("exit 1"), around("true")];
        let all: Vec<Vec<Order>> = std::iter::once(vec![around("true")]).chain(vec![round; 5]).collect();
        assert_eq!(ends(&all, u64::MAX), 16);
        // The first round and two others are always executed.
        assert_eq!(ends(&all, 0), 10);
        let failing = [vec![], vec![around("false"), order("true")]];
        assert_eq!(ends(&failing, u64::MAX), 1);
    }
}
