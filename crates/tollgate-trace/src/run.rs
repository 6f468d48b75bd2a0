mod calibration;
mod untraced;

use std::{io, mem};

use tollgate_model::Traced;
use tollgate_model::traced::{Backend, Ended, TimesFrom};
use tollgate_os::privileges;
use tollgate_os::rusage::Usage;

use crate::descendants::{self, Descendants};
use crate::launch::{Child, Program};
use crate::outcome::{Collected, Finished, Trace, TraceError, Used};
use crate::ptrace::{Tracer, filter};
use crate::request::{Choice, Request};
use crate::{bpf::Bpf, bpf::Costs, calls, launch::signals::Watch};

pub use calibration::calibrate;

/// Runs and traces a command and all that it starts. It has the input and output of this process, and gets signals that ask this
/// process to end. Every child of this process that begins and ends meanwhile is reaped here, and its usage counts, so this
/// process should start no others. Children that existed before are left alone.
///
/// # Errors
/// See [`TraceError`]: the command was not started, or could not be traced as requested.
pub fn trace(request: &Request) -> Result<Trace, TraceError> {
    let _alone = descendants::alone();
    check_names(request)?;
    if privileges::are_of_file() && (request.blocked || request.stacks) {
        return Err(TraceError::of_other_users("stacks, and what wakes a thread, are traced"));
    }
    let program = resolve(request)?;
    match trace_by_best(request, &program) {
        Err(Failure::UnknownFormat) => match trace_by_best(request, &program.as_script()?) {
            Err(Failure::UnknownFormat) => Err(program.refused(&io::Error::from_raw_os_error(libc::ENOEXEC))),
            other => other.map_err(Failure::into_error),
        },
        other => other.map_err(Failure::into_error),
    }
}

/// Forks a child that exits at once, as an untraced command. Its time is what the start of any command takes.
///
/// # Errors
/// [`TraceError::System`].
pub fn trace_nothing() -> Result<Trace, TraceError> {
    let _alone = descendants::alone();
    untraced::nothing().map_err(Failure::into_error)
}

fn resolve(request: &Request) -> Result<Program, TraceError> {
    Program::resolve(&request.command, std::env::var_os("PATH").as_deref())?
        .with_variables(&request.variables)
}

enum Failure {
    /// This backend cannot work here. The command has not begun.
    Refused(String),
    /// The kernel does not know the file's format: it may be a script without an interpreter line.
    UnknownFormat,
    /// No other backend would help.
    Final(TraceError),
}

impl Failure {
    fn into_error(self) -> TraceError {
        match self {
            Self::Refused(why) => TraceError::Unavailable(why),
            Self::UnknownFormat => TraceError::NotExecutable("the file has no executable format".to_owned()),
            Self::Final(error) => error,
        }
    }

    fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Final(TraceError::System(what, error))
    }
}

type ByBackend = fn(&Request, &Program) -> Result<Trace, Failure>;

fn trace_by_best(request: &Request, program: &Program) -> Result<Trace, Failure> {
    let backends: &[ByBackend] = match request.by {
        Choice::Best => &[by_bpf, by_ptrace, untraced::by_rusage],
        Choice::Bpf => &[by_bpf],
        Choice::Ptrace => &[by_ptrace],
        Choice::Rusage => &[untraced::by_rusage],
    };
    let mut reasons = Vec::new();
    for by_backend in backends {
        match by_backend(request, program) {
            Err(Failure::Refused(why)) => reasons.push(why),
            Ok(mut trace) => {
                reasons.append(&mut trace.traced.notes);
                trace.traced.notes = reasons;
                return Ok(trace);
            }
            other => return other,
        }
    }
    Err(Failure::Refused(reasons.join("; ")))
}

const NO_NEW_PRIVILEGES: &str = "traced by capabilities of this program's file: the command was run with no_new_privs, so that it cannot become another user";

fn by_bpf(request: &Request, program: &Program) -> Result<Trace, Failure> {
    let refused = |why: String| Failure::Refused(format!("BPF cannot trace here: {why}"));
    let bpf = Bpf::load(request).map_err(refused)?;
    let record = CommonPart::begin(request, Backend::Bpf, bpf.costs());
    let watch = Watch::begin();
    let mut child =
        Child::start(program, request, None, &watch.inherited()).map_err(Failure::system("fork(2)"))?;
    let Some(pidfd) = child.pidfd() else {
        return Err(refused("this kernel has no pidfd_open(2)".to_owned()));
    };
    bpf.adopt(pidfd).map_err(|error| {
        refused(format!("the command could not be attached: {}", tollgate_model::text::plainly(&error)))
    })?;
    let finished = untraced::let_go(&mut child, &watch, &record.descendants, request.linger, || bpf.alive())?;
    let mut collected = bpf.finish();
    if privileges::are_of_file() {
        collected.notes.push(NO_NEW_PRIVILEGES.to_owned());
    }
    record.end(Some(program), &child, &watch, finished, collected)
}

fn by_ptrace(request: &Request, program: &Program) -> Result<Trace, Failure> {
    let cost = calibration::by_ptrace()
        .map_err(|why| Failure::Refused(format!("ptrace(2) cannot trace here: {why}")))?;
    let costs = Costs { traced: Some(cost), others: None };
    let record = CommonPart::begin(request, Backend::Ptrace, costs);
    let watch = Watch::begin();
    let mut filter = request.only.as_ref().and_then(|only| filter::for_calls(&filter::stopping(only)));
    let mut child = Child::start(program, request, filter.as_mut(), &watch.inherited())
        .map_err(Failure::system("fork(2)"))?;
    let mut tracer = Tracer::seize(&child, request, filter.is_some()).map_err(|error| {
        Failure::Refused(format!("ptrace(2) cannot trace here: {}", tollgate_model::text::plainly(&error)))
    })?;
    watch.pass_to(child.pid(), child.pidfd());
    child.release().map_err(Failure::system("write(2)"))?;
    let finished = tracer
        .run(&child, &watch, &record.descendants, request.linger)
        .map_err(Failure::system("wait4(2)"))?;
    record.end(Some(program), &child, &watch, finished, tracer.finish())
}

/// The uncertainty of a peak. The kernel sums per-processor counts that lag behind by up to 32 pages or more
/// (`percpu_counter_batch` of lib/percpu_counter.c), for two kinds of pages.
const PEAK_KNOWN_TO_KIB: u64 = 512;

struct CommonPart {
    command: Vec<String>,
    backend: Backend,
    processors: u32,
    costs: Costs,
    used_before: Usage,
    descendants: Descendants,
}

impl CommonPart {
    fn begin(request: &Request, backend: Backend, costs: Costs) -> Self {
        let processors = tollgate_os::affinity::allowed(0).map_or(1, |allowed| allowed.len());
        Self {
            command: request.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            backend,
            processors: u32::try_from(processors).unwrap_or(u32::MAX),
            costs,
            used_before: Usage::of_children(),
            descendants: Descendants::begin(),
        }
    }

    fn end(
        self,
        program: Option<&Program>,
        child: &Child,
        watch: &Watch,
        finished: Finished,
        mut collected: Collected,
    ) -> Result<Trace, Failure> {
        self.descendants.wait_for_the_dead();
        if let (Some(error), Some(program)) = (child.failed(), program) {
            return Err(match error.raw_os_error() {
                Some(libc::ENOEXEC) => Failure::UnknownFormat,
                _ => Failure::Final(program.refused(&error)),
            });
        }
        let all = Usage::of_children();
        let less = |of: fn(&Usage) -> u64| of(&all).saturating_sub(of(&self.used_before));
        let (user_ns, sys_ns, times_from) = match collected.processor_time(self.backend) {
            Some((user_ns, sys_ns)) => (user_ns, sys_ns, TimesFrom::Trace),
            None => (less(|usage| usage.user_ns), less(|usage| usage.sys_ns), TimesFrom::Rusage),
        };
        let (peak_before, faults_before) = child.used_before();
        let peak = self.descendants.peak_kib();
        let used = Used {
            memory: (peak > peak_before + PEAK_KNOWN_TO_KIB).then_some(peak << 10),
            faults: less(Usage::faults).saturating_sub(faults_before),
        };
        let began_ns = collected.began_ns;
        let (events, stacks) = (mem::take(&mut collected.events), mem::take(&mut collected.stacks));
        collected.notes.extend(finished.notes);
        let traced = Traced {
            command: self.command,
            ended: Some(finished.ended),
            processors: self.processors,
            user_ns,
            sys_ns,
            times_from,
            cost_per_call_ns: self.costs.traced,
            cost_to_others_ns: self.costs.others,
            ..collected.into_traced(self.backend, finished.wall_ns)
        };
        let ended = watch.late().map_or(finished.ended, Ended::Signal);
        Ok(Trace { traced, used, events, began_ns, stacks, ended })
    }
}

pub(crate) fn check_names(request: &Request) -> Result<(), TraceError> {
    for name in request.only.iter().flatten() {
        if calls::number(name).is_some() {
            continue;
        }
        let near = calls::near(name).map_or_else(
            || "names are those of the kernel's table, such as `openat`".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(TraceError::Request(format!("there is no system call `{name}`; {near}")));
    }
    Ok(())
}
