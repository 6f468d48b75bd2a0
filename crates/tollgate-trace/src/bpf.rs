//! BPF programs at the kernel's tracepoints, which add up inside the kernel.
//!
//! Each thread of the tree has a few words in task storage: which call it is in and since when, and its state. The entry and
//! return of calls, switches and wake-ups of the scheduler, and the creation and end of threads update them. Each call that
//! returns is added to a slot of the processor that it returns on. At the end only those slots are read.
//!
//! From the ground up: [`asm`] writes instructions, [`btf`] reads the kernel's description of its types, [`sys`] is bpf(2).
//! [`layout`] is the data, [`kernel`] the addresses and types of the kernel, [`programs`] the programs, [`cost`] their
//! overhead, and [`collect`] reads their totals. [`running`] adds threads that already run. Maps, programs and links are
//! descriptors of this process, so nothing outlives it.

mod asm;
mod blocked;
mod btf;
mod collect;
mod cost;
mod files;
mod kernel;
mod layout;
mod maps;
mod names;
mod operations;
mod programs;
mod running;
mod sys;
#[cfg(test)]
mod tests;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::symbols::{Images, Watch};
use crate::{outcome::Collected, request::Request};
use blocked::Blocks;
pub(crate) use cost::Costs;
use kernel::Kernel;
use maps::Maps;
use programs::{Program, Target};
use running::Marks;
use sys::{Refused, ToLoad};
use tollgate_model::text::plainly;
use tollgate_model::traced::Idle;
use tollgate_os::privileges;

/// The programs, loaded and attached, and their maps. Dropping it removes all of them.
pub(crate) struct Bpf {
    target: Target,
    maps: Maps,
    /// Each program with its link: closing the link detaches the program.
    attached: Vec<Attached>,
    costs: Costs,
    running: Option<Marks>,
    blocks: Option<Blocks>,
    images: Images,
    /// Records what processes map, to name user code in stacks; or the reason why that is not possible.
    watch: Option<Result<Watch, String>>,
}

struct Attached {
    program: OwnedFd,
    _link: OwnedFd,
}

impl Bpf {
    /// Loads the programs that a request needs, and measures their overhead in a process of its own.
    pub fn load(request: &Request) -> Result<Self, String> {
        privileges::raise();
        let (maps, subject, kernel) = prepare(request);
        let (maps, mut kernel) = (maps?, kernel?);
        let marks = request.running.then(|| Marks::new(request.cgroup)).transpose()?;
        let blocks = Blocks::new(request)?;
        let target = |kernel: Kernel| Target {
            kernel,
            maps: maps.for_programs(&kernel),
            only_some: request.only.is_some(),
            running: marks.as_ref().map(Marks::for_programs),
            blocked: blocks.as_ref().map(Blocks::for_programs),
        };
        let mut chosen = target(kernel);
        let attached = match attach_all(&chosen) {
            // A kernel may have the function and reject this use of it.
            Err(_) if kernel.forget_functions() => {
                chosen = target(kernel);
                attach_all(&chosen)?
            }
            attached => attached?,
        };
        let target = chosen;
        let running = marks.map(|marks| marks.with_program(&target)).transpose()?;
        let costs = match subject {
            Some(subject) => subject.measure(|process| {
                maps.want(cost::CALL);
                maps.adopt(process, false)
            }),
            None => Costs::default(),
        };
        maps.reset()?;
        if let Some(blocks) = &blocks {
            blocks.clear().map_err(|error| plainly(&error))?;
        }
        let watch =
            request.stacks.then(|| Watch::begin(0..maps.processors()).map_err(|error| plainly(&error)));
        Ok(Self { target, maps, attached, costs, running, blocks, images: Images::default(), watch })
    }

    pub fn costs(&self) -> Costs {
        self.costs
    }

    /// Begins to trace a process that waits to be released. The next program that it executes is the command.
    pub fn adopt(&self, process: BorrowedFd) -> std::io::Result<()> {
        self.maps.adopt(process, true)
    }

    /// Starts the clock; returns the time by CLOCK_MONOTONIC.
    pub fn begin(&self) -> u64 {
        let now = crate::clock::now();
        self.maps.begin(now);
        now
    }

    /// Adds all threads of running processes to the tree. Each process has a number, a name and a descriptor.
    ///
    /// # Errors
    /// The reason, as a sentence.
    pub fn take<'a>(
        &self,
        processes: impl Iterator<Item = (u32, &'a str, BorrowedFd<'a>)>,
    ) -> Result<(), String> {
        let running = self.running.as_ref().ok_or("the programs were loaded for a command")?;
        running.take(&self.maps, processes)
    }

    /// Reads the files that a process has mapped, to name the functions in its stacks.
    pub fn look_at(&mut self, pid: u32) {
        if self.blocks.is_some() {
            self.images.look(pid);
        }
    }

    pub fn arrived(&self) -> u64 {
        self.maps.arrived()
    }

    pub fn sees_arrivals(&self) -> bool {
        self.target.running.is_some_and(|running| running.cgroup.is_some())
    }

    /// Returns the totals so far, without trees, files and single calls.
    pub fn so_far(&self) -> Collected {
        if let Some(running) = &self.running {
            // If this fails, the time outside of calls covers only threads that have ended.
            let _ = running.glance(&self.maps);
        }
        collect::so_far(&self.maps, crate::clock::now())
    }

    pub fn has_taken(&self, process: BorrowedFd) -> bool {
        self.maps.has_taken(process)
    }

    pub fn alive(&self) -> u64 {
        self.maps.alive()
    }

    pub fn finish(self) -> Collected {
        let Self { target, maps, attached, costs: _, running, blocks, mut images, watch } = self;
        let mut now = crate::clock::now();
        let mut notes = Vec::new();
        let mut real = None;
        if running.is_some() {
            match stop_counting(&target, &maps) {
                Ok((moment, until_then)) => (now, real) = (moment, Some(until_then)),
                Err(why) => notes.push(uncounted(&why)),
            }
        }
        maps.end();
        if maps.files.is_some() && target.kernel.files.is_none() {
            notes.push("the layout of this kernel's files is unknown, so files are not reported".to_owned());
        }
        if maps.files.is_some() && target.kernel.tracepoints.mm_filemap_fault.is_none() {
            notes.push(
                "page faults are not reported by file: that needs a tracepoint of Linux 6.14 or later"
                    .to_owned(),
            );
        }
        let programs: Vec<OwnedFd> =
            attached.into_iter().map(|Attached { program, _link }| program).collect();
        let misses = programs.iter().map(|program| sys::misses(program).unwrap_or(0)).sum();
        if running.is_none()
            && maps.alive() > 0
            && let Err(why) = add_up_remaining(&target)
        {
            notes.push(uncounted(&why));
        }
        let mut collected = collect::collect(&maps, collect::End { now, real, misses, notes });
        collected.notes.extend(watch.and_then(|watch| know(&mut images, watch)));
        match blocks.map(|blocks| blocks.read(&mut images)).transpose() {
            Ok(Some((blocked, stacks))) => (collected.blocked, collected.stacks) = (blocked, stacks),
            Ok(None) => {}
            Err(error) => {
                collected.notes.push(format!("what ended sleeps could not be read: {}", plainly(&error)));
            }
        }
        collected
    }
}

/// Merges what was recorded; returns a note if some of it is missing.
fn know(images: &mut Images, watch: Result<Watch, String>) -> Option<String> {
    match watch.map(Watch::end) {
        Ok(recorded) => images.merge(recorded),
        Err(why) => {
            return Some(format!("user code of processes that have ended is [unknown] in the stacks: {why}"));
        }
    }
    let lost = images.lost();
    (lost > 0).then(|| format!("{lost} mappings of code were not recorded: it is [unknown] in the stacks"))
}

fn uncounted(why: &str) -> String {
    format!("the calls and times of threads that still existed at the end are not counted: {why}")
}

fn add_up_remaining(target: &Target) -> Result<(), String> {
    sys::iterate(&load_remaining(target)?).map_err(|error| error.to_string())
}

fn load_remaining(target: &Target) -> Result<OwnedFd, String> {
    let program = programs::remaining(target)
        .ok_or("this kernel cannot iterate over tasks (Linux 5.8 and later can)")?;
    load_as(&program, sys::TRACE_ITERATOR)
}

/// Adds up the remaining threads while the programs are still attached, and ends their tracing. Detaching takes some 20 ms,
/// in which some programs would be present and others not. Returns the time, and the real time until then.
fn stop_counting(target: &Target, maps: &Maps) -> Result<(u64, (u64, Idle)), String> {
    let program = load_remaining(target)?;
    // Otherwise a process created by a thread that is no longer traced would count as new.
    maps.end();
    sys::iterate(&program).map_err(|error| error.to_string())?;
    // Read after the last thread was added up, so no thread has more time than the trace took.
    let now = crate::clock::now();
    Ok((now, collect::real_time_of(maps, now)))
}

/// Creates the maps and the process that overhead is measured in, and reads the kernel's properties. Going through the
/// kernel's types takes as long as the other two together, so another thread does it.
fn prepare(request: &Request) -> (Result<Maps, String>, Option<cost::Subject>, Result<Kernel, String>) {
    thread::scope(|scope| {
        let kernel = beside(scope, || Kernel::here(request.files));
        let maps = Maps::new(request);
        let subject = maps.as_ref().ok().and_then(|_| cost::Subject::new().ok());
        (maps, subject, kernel())
    })
}

/// Loads and attaches all programs in as many threads as may run, since the kernel verifies programs of several at once.
fn attach_all(target: &Target) -> Result<Vec<Attached>, String> {
    let programs = programs::attached(target);
    let next = AtomicUsize::new(0);
    let take = || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        programs.get(number).map(|program| attach(program).map(|attached| (number, attached)))
    };
    let some = || std::iter::from_fn(take).collect::<Result<Vec<_>, String>>();
    let others = thread::available_parallelism().map_or(1, usize::from).min(programs.len()).saturating_sub(1);
    let mut attached = thread::scope(|scope| {
        let begun: Vec<_> = (0..others).map(|_| beside(scope, some)).collect();
        let here = some()?;
        begun.into_iter().try_fold(here, |mut all, end| {
            all.extend(end()?);
            Ok::<_, String>(all)
        })
    })?;
    attached.sort_by_key(|(number, _)| *number);
    Ok(attached.into_iter().map(|(_, attached)| attached).collect())
}

fn attach(program: &Program) -> Result<Attached, String> {
    let loaded = load_as(program, sys::TRACE_RAW_TRACEPOINT)?;
    let link = sys::attach(&loaded).map_err(|error| {
        format!("the program {} could not be attached: {}", program.name, plainly(&error))
    })?;
    Ok(Attached { program: loaded, _link: link })
}

/// Starts `work` in another thread; the returned function waits for it, or does the work if no thread could be created.
fn beside<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    work: impl Fn() -> T + Copy + Send + 'scope,
) -> impl FnOnce() -> T {
    let begun = thread::Builder::new().spawn_scoped(scope, work);
    move || match begun.map(thread::ScopedJoinHandle::join) {
        Ok(Ok(done)) => done,
        Ok(Err(_)) | Err(_) => work(),
    }
}

fn load_as(program: &Program, attach_type: u32) -> Result<OwnedFd, String> {
    let words = program.assembler.finish()?;
    let to_load = ToLoad { name: program.name, words: &words, attach_type, attach_id: program.attach_id };
    sys::load(to_load).map_err(|Refused { error, log }| {
        if maps::is_refusal(&error) && log.is_empty() {
            return maps::needs_privileges();
        }
        // The verifier's error is in its last lines, before its statistics.
        let lines: Vec<&str> = log.lines().filter(|line| !line.starts_with("processed ")).collect();
        let last = lines[lines.len().saturating_sub(3)..].join("; ");
        format!("the kernel refused the program {}: {} ({last})", program.name, plainly(&error))
    })
}
