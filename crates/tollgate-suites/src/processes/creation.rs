//! Experiments of process creation, each with two times: until the call returns, and until the child has exited.

use std::time::{Duration, Instant};
use std::{cell::RefCell, ffi::c_char, io, rc::Rc};

use super::image::{Image, Program};
use super::{calls, memory::Region};
use crate::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Fork,
    Vfork,
    Clone3,
    Thread,
    Spawn(Image),
    ForkExec(Image),
    Exec(Image),
    Shell,
}

pub(super) const LINKS: usize = 4;

impl What {
    pub fn all() -> Vec<Self> {
        let of_images = |what: fn(Image) -> Self| [Image::Bare, Image::Static, Image::Dynamic].map(what);
        let mut all = vec![Self::Fork, Self::Vfork, Self::Clone3, Self::Thread, Self::Shell];
        all.extend([Self::Spawn, Self::ForkExec, Self::Exec].into_iter().flat_map(of_images));
        all
    }

    fn image(self) -> Option<Image> {
        match self {
            Self::Fork | Self::Vfork | Self::Clone3 | Self::Thread => None,
            Self::Shell => Some(Image::Bare),
            Self::Spawn(image) | Self::ForkExec(image) | Self::Exec(image) => Some(image),
        }
    }

    fn copies(self) -> bool {
        match self {
            Self::Fork | Self::Clone3 | Self::ForkExec(_) | Self::Shell => true,
            Self::Vfork | Self::Thread | Self::Spawn(_) | Self::Exec(_) => false,
        }
    }
}

pub(super) struct Creation {
    what: What,
    region: Rc<RefCell<Region>>,
    program: Option<Program>,
    quota: Quota,
}

impl Creation {
    pub fn all(region: Region, quota: Quota) -> Result<Vec<Box<dyn Experiment>>> {
        let region = Rc::new(RefCell::new(region));
        let each = |what| -> Box<dyn Experiment> {
            Box::new(Self { what, region: Rc::clone(&region), program: None, quota: quota.clone() })
        };
        Ok(What::all().into_iter().map(each).collect())
    }

    fn program(&mut self) -> Result<Option<&Program>> {
        if let (Some(image), None) = (self.what.image(), &self.program) {
            self.program = Some(Program::new(image)?);
        }
        Ok(self.program.as_ref())
    }
}

impl Experiment for Creation {
    fn run(&mut self, clock: Clock, order: Order) -> Result<Vec<Batch>> {
        let what = self.what;
        let (region, quota) = (Rc::clone(&self.region), self.quota.clone());
        let program = self.program()?;
        // After another instance's batch the first creations find cold caches, other lists of free pages and another scheduler
        // state, so they are warm-ups. They are measured instead if they would require writing all memory again.
        if !(what.copies() && region.borrow().is_written()) {
            warm_up(|| once(what, program, clock, &quota).map(drop))?;
        }
        let mut total = Times::default();
        for _ in 0..order.all() {
            let cpu_share = CpuShare::begin();
            let mut times = once(what, program, clock, &quota)?;
            times.undisturbed &= cpu_share.was_full();
            total.add(&times);
            if what.copies() {
                region.borrow_mut().write_again();
            }
        }
        Ok(vec![total.batch(total.returned), total.batch(total.exited)])
    }
}

/// Warms up with a few creations; fewer if they take longer.
fn warm_up(mut once: impl FnMut() -> Result<()>) -> Result<()> {
    const LONG: Duration = Duration::from_micros(250);
    const MOST: usize = 4;
    let began = Instant::now();
    for _ in 0..MOST {
        once()?;
        if began.elapsed() >= LONG {
            break;
        }
    }
    Ok(())
}

/// Times of an experiment, in ticks.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// Until the call returned.
    returned: u64,
    /// Until the child had exited.
    exited: u64,
    less: u64,
    undisturbed: bool,
    /// Events of the creation and of the child, until it was waited for.
    tally: Tally,
}

impl Default for Times {
    fn default() -> Self {
        Self { returned: 0, exited: 0, less: 0, undisturbed: true, tally: Tally::default() }
    }
}

impl Times {
    fn add(&mut self, other: &Self) {
        self.returned += other.returned;
        self.exited += other.exited;
        self.less += other.less;
        self.undisturbed &= other.undisturbed;
        self.tally = self.tally.and(&other.tally);
    }

    fn batch(&self, ticks: u64) -> Batch {
        Batch { tally: self.tally, ..Batch::new(ticks, self.less, self.undisturbed) }
    }
}

fn once(what: What, program: Option<&Program>, clock: Clock, quota: &Quota) -> Result<Times> {
    let program = || program.ok_or_else(|| fail!("no program to start"));
    match what {
        What::Fork => child("fork", clock, quota, calls::fork_and_leave),
        What::Vfork => child("vfork", clock, quota, calls::vfork),
        What::Clone3 => child("clone3", clock, quota, calls::clone3),
        What::Thread => thread(clock, quota),
        What::Spawn(image) => {
            let program = program()?;
            let arguments = program.chain(1);
            started("posix_spawn", image, clock, quota, || calls::posix_spawn(&program.path, &arguments))
        }
        What::ForkExec(image) => {
            let program = program()?;
            let arguments = program.chain(1);
            started("fork", image, clock, quota, || calls::fork_exec(&program.path, &arguments))
        }
        What::Exec(image) => {
            let program = program()?;
            let (long, short) = (program.chain(1 + LINKS), program.chain(1));
            let of_chain = |arguments: &[*const c_char]| {
                started("vfork", image, clock, quota, || calls::vfork_exec(&program.path, arguments))
            };
            beyond(|is_long| of_chain(if is_long { &long[..] } else { &short[..] }))
        }
        What::Shell => {
            let program = program()?;
            let words = [c"sh".as_ptr(), c"-c".as_ptr(), program.path.as_ptr(), std::ptr::null()];
            let shell = c"/bin/sh";
            if !std::path::Path::new("/bin/sh").exists() {
                return Err(skip!("there is no /bin/sh here"));
            }
            started("fork", Image::Bare, clock, quota, || calls::fork_exec(shell, &words))
        }
    }
}

/// Returns the time of a long chain minus that of a short one, which runs before and after it. The shorter of those two counts,
/// as with empty loops: a delay in one of them would make the difference too small, and a few such delays made it negative.
fn beyond(mut chain: impl FnMut(bool) -> Result<Times>) -> Result<Times> {
    let before = chain(false)?;
    let longer = chain(true)?;
    let behind = chain(false)?;
    let shorter = if behind.exited < before.exited { behind } else { before };
    let undisturbed = longer.undisturbed && shorter.undisturbed;
    let tally = longer.tally.less(&shorter.tally);
    Ok(Times { less: shorter.exited, undisturbed, tally, ..longer })
}

fn child(
    call: &str,
    clock: Clock,
    quota: &Quota,
    make: impl FnOnce() -> io::Result<libc::pid_t>,
) -> Result<Times> {
    let reaped = timed(clock, make, calls::wait_for).and_then(|(times, status)| Ok((times, status?)));
    let (times, status) = reaped.map_err(|error| quota.refused(call, &error))?;
    match status {
        0 => Ok(times),
        status => Err(fail!("the child of {call} ended with wait status {status:#x}")),
    }
}

fn started(
    call: &str,
    image: Image,
    clock: Clock,
    quota: &Quota,
    make: impl FnOnce() -> io::Result<libc::pid_t>,
) -> Result<Times> {
    let reaped = timed(clock, make, calls::wait_for).and_then(|(times, status)| Ok((times, status?)));
    let (times, status) = reaped.map_err(|error| image.refusal(call, &error, quota))?;
    match status {
        0 => Ok(times),
        // A child that cannot execute the program exits with the error number.
        status if libc::WIFEXITED(status) => {
            let error = io::Error::from_raw_os_error(libc::WEXITSTATUS(status));
            Err(image.refusal("execve", &error, quota))
        }
        status => Err(fail!("the program that {call} started ended with wait status {status:#x}")),
    }
}

/// Times a call that makes a child or a thread, until it returns and until `wait` has seen its end. Returns the result of `wait`.
fn timed<T: Copy, E>(
    clock: Clock,
    make: impl FnOnce() -> io::Result<T>,
    wait: impl FnOnce(T) -> E,
) -> io::Result<(Times, E)> {
    let mut made = Err(io::ErrorKind::NotFound.into());
    let mut returned = Span { ticks: 0, same_processor: true };
    let mut end = None;
    let mut counting = Counting::begin(Of::Process);
    let exited = counting.work(|| {
        clock.time(|| {
            returned = clock.time(|| made = make());
            if let Ok(made) = made {
                end = Some(wait(made));
            }
        })
    });
    let tally = counting.end();
    made?;
    let undisturbed = returned.same_processor && exited.same_processor;
    let times = Times { returned: returned.ticks, exited: exited.ticks, less: 0, undisturbed, tally };
    Ok((times, end.ok_or(io::ErrorKind::NotFound)?))
}

fn thread(clock: Clock, quota: &Quota) -> Result<Times> {
    let made = timed(clock, calls::thread, calls::join);
    let (times, joined) = made.map_err(|error| quota.refused("pthread_create", &error))?;
    joined.map_err(|error| fail!("pthread_join: {}", tollgate_model::text::plainly(&error)))?;
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::memory::Memory;
    use crate::testing::ready;

    fn creation(what: What) -> Creation {
        let region = Region::new(Memory::Plain, Heartbeat::default()).expect("nothing");
        Creation { what, region: Rc::new(RefCell::new(region)), program: None, quota: Quota::default() }
    }

    #[test]
    fn calls_return_before_the_child_exits() {
        for what in What::all() {
            let mut creation = creation(what);
            let Some(batches) = ready(what, creation.run(Clock::Kernel, Order::new(2))) else { continue };
            assert_eq!(batches.len(), 2, "{what:?}");
            let [returned, exited] = [batches[0].work, batches[1].work];
            assert!(0 < returned && returned <= exited, "{what:?}: {returned}, {exited}");
        }
    }

    #[test]
    fn a_delay_of_one_short_chain_takes_nothing_from_the_figure() {
        let of = |exited| Ok(Times { exited, ..Times::default() });
        // A short chain takes 10 ticks if it is not delayed; the long one takes 50.
        for [before, behind] in [[10, 10], [10, 400], [400, 10]] {
            let mut chains = [before, 50, behind].into_iter();
            let times = beyond(|_| of(chains.next().unwrap_or_default())).expect("three chains");
            assert_eq!((times.exited, times.less), (50, 10), "{before} and {behind}");
        }
        let mut order = Vec::new();
        let chain = |is_long| {
            order.push(is_long);
            of(1)
        };
        beyond(chain).expect("three chains");
        assert_eq!(order, [false, true, false]);
    }

    #[test]
    fn a_program_that_cannot_start_is_refused() {
        let (missing, quota) = (c"/nonexistent/program", Quota::default());
        let arguments = [missing.as_ptr(), std::ptr::null()];
        for call in [calls::fork_exec, calls::vfork_exec] {
            let outcome = started("fork", Image::Bare, Clock::Kernel, &quota, || call(missing, &arguments));
            let Err(Refusal::Skip(why)) = outcome else { panic!("{outcome:?}") };
            assert!(why.contains("execve") && why.contains("No such file"), "{why}");
        }
        let outcome = started("posix_spawn", Image::Dynamic, Clock::Kernel, &quota, || {
            calls::posix_spawn(missing, &arguments)
        });
        let Err(Refusal::Skip(why)) = outcome else { panic!("{outcome:?}") };
        assert!(why.contains("dynamic loader is missing"), "{why}");
    }
}
