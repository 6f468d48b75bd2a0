//! From the command's start to its end.

mod calibration;
pub(crate) mod household;
mod unfollowed;

use std::io;
use std::sync::{Mutex, PoisonError};

use tollgate_model::Traced;
use tollgate_model::traced::{Backend, Ended};
use tollgate_os::identity::{Identity, IdentityError};

use crate::bpf::Bpf;
use crate::calls;
use crate::followed::{Followed, Trace, TraceError};
use crate::launch::signals::Watch;
use crate::launch::{Child, Program};
use crate::ptrace::{Tracer, filter, sys};
use crate::request::{Choice, Request};

pub use calibration::calibrate;

/// Signals, orphans and who waits for them belong to the whole process: one command at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs a command and follows it and all that it starts. Its input and output are those of this process; signals that ask this
/// process to end go to it. Every child of this process that begins and ends meanwhile is waited for here, and what it used counts:
/// this process should start no other ones. Children that it had before are left alone.
///
/// # Errors
/// See [`TraceError`]: where it was not started, or could not be followed as was asked.
pub fn trace(request: &Request) -> Result<Trace, TraceError> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    check_names(request)?;
    let program = resolve(request)?;
    match follow_by_the_best(request, &program) {
        Err(Failure::UnknownFormat) => match follow_by_the_best(request, &program.as_script()?) {
            Err(Failure::UnknownFormat) => Err(program.refused(&io::Error::from_raw_os_error(libc::ENOEXEC))),
            other => other.map_err(Failure::into_error),
        },
        other => other.map_err(Failure::into_error),
    }
}

/// Finds the command's file, with the rights that it is executed with.
fn resolve(request: &Request) -> Result<Program, TraceError> {
    let access = request.identity.map(Identity::for_files).transpose();
    let _access = access.map_err(|error| TraceError::Unavailable(error.to_string()))?;
    Program::resolve(&request.command, std::env::var_os("PATH").as_deref())
}

/// Why an attempt came to nothing.
enum Failure {
    /// This backend cannot work here. The command has not begun.
    Refused(String),
    /// The kernel does not know the file's format: it may be a script without a first line that says so.
    UnknownFormat,
    /// Nothing else would help.
    Final(TraceError),
}

impl Failure {
    fn into_error(self) -> TraceError {
        match self {
            Self::Refused(why) => TraceError::Unavailable(why),
            Self::UnknownFormat => {
                TraceError::NotExecutable("the file is of no format that can be executed".to_owned())
            }
            Self::Final(error) => error,
        }
    }

    fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Final(TraceError::System { what, error })
    }
}

/// Tries who may follow, the best one first.
fn follow_by_the_best(request: &Request, program: &Program) -> Result<Trace, Failure> {
    let backends: &[Backend] = match request.by {
        Choice::Best => &[Backend::Bpf, Backend::Ptrace, Backend::Rusage],
        Choice::Bpf => &[Backend::Bpf],
        Choice::Ptrace => &[Backend::Ptrace],
    };
    let mut reasons = Vec::new();
    for backend in backends {
        let outcome = match backend {
            Backend::Bpf => by_bpf(request, program),
            Backend::Ptrace => by_ptrace(request, program),
            Backend::Rusage => unfollowed::by_nobody(request, program),
        };
        match outcome {
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

fn by_bpf(request: &Request, program: &Program) -> Result<Trace, Failure> {
    let refused = |why: String| Failure::Refused(format!("BPF cannot follow here: {why}"));
    let bpf = Bpf::load(request).map_err(refused)?;
    let cost = bpf.cost_per_call_ns();
    let record = Record::begin(request, Backend::Bpf, cost);
    let watch = Watch::begin();
    let mut child = Child::start(program, request.identity, None, &watch.inherited())
        .map_err(Failure::system("fork(2)"))?;
    let Some(pidfd) = child.pidfd() else {
        return Err(refused("this kernel has no pidfd_open(2)".to_owned()));
    };
    bpf.adopt(pidfd).map_err(|error| {
        refused(format!("the command was not taken: {}", tollgate_model::text::plainly(&error)))
    })?;
    let course = unfollowed::let_go(&mut child, &watch, &record.household, request.linger, || bpf.alive())?;
    let followed = bpf.finish();
    record.end(program, &child, &watch, course, followed)
}

fn by_ptrace(request: &Request, program: &Program) -> Result<Trace, Failure> {
    let cost = calibration::by_ptrace()
        .map_err(|why| Failure::Refused(format!("ptrace(2) cannot follow here: {why}")))?;
    let record = Record::begin(request, Backend::Ptrace, Some(cost));
    let watch = Watch::begin();
    let mut filter = request.only.as_ref().and_then(|only| filter::for_calls(&filter::numbers(only)));
    let mut child = Child::start(program, request.identity, filter.as_mut(), &watch.inherited())
        .map_err(Failure::system("fork(2)"))?;
    let mut tracer = Tracer::seize(&child, request, filter.is_some()).map_err(|error| {
        Failure::Refused(format!("ptrace(2) cannot follow here: {}", tollgate_model::text::plainly(&error)))
    })?;
    watch.pass_to(child.pid(), child.pidfd(), false);
    child.release().map_err(Failure::system("write(2)"))?;
    let course =
        tracer.run(&child, &watch, &record.household, request.linger).map_err(Failure::system("wait4(2)"))?;
    record.end(program, &child, &watch, course, tracer.finish())
}

/// How the command itself ended, and after how long.
pub(crate) struct Course {
    pub ended: Ended,
    pub wall_ns: u64,
    /// What is to be said of it.
    pub notes: Vec<String>,
}

/// What is told of every command, whoever follows it.
struct Record {
    command: Vec<String>,
    identity: Option<Identity>,
    backend: Backend,
    processors: u32,
    cost_per_call_ns: Option<f64>,
    used_before: (u64, u64),
    household: household::Household,
}

impl Record {
    fn begin(request: &Request, backend: Backend, cost_per_call_ns: Option<f64>) -> Self {
        let processors = tollgate_os::processors::allowed(0).map_or(1, |allowed| allowed.len());
        Self {
            command: request.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            identity: request.identity,
            backend,
            processors: u32::try_from(processors).unwrap_or(u32::MAX),
            cost_per_call_ns,
            used_before: sys::used_by_children(),
            household: household::Household::begin(),
        }
    }

    fn end(
        self,
        program: &Program,
        child: &Child,
        watch: &Watch,
        course: Course,
        followed: Followed,
    ) -> Result<Trace, Failure> {
        self.household.wait_for_the_dead();
        watch.dismiss_the_witness();
        if let (Some(why), Some(identity)) = (child.identity_failed(), self.identity) {
            let error = IdentityError::Refused { uid: identity.uid, why };
            return Err(Failure::Final(TraceError::Unavailable(error.to_string())));
        }
        if let Some(signal) = watch.asked_by_command() {
            self.household.end_all();
            return Err(Failure::Final(TraceError::Asked(signal)));
        }
        if let Some(error) = child.failed() {
            return Err(match error.raw_os_error() {
                Some(libc::ENOEXEC) => Failure::UnknownFormat,
                _ => Failure::Final(program.refused(&error)),
            });
        }
        let used = sys::used_by_children();
        let witness = watch.used_by_witness();
        let mut notes = followed.notes;
        notes.extend(course.notes);
        let traced = Traced {
            command: self.command,
            backend: self.backend,
            ended: course.ended,
            processors: self.processors,
            wall_ns: course.wall_ns,
            user_ns: used.0.saturating_sub(self.used_before.0).saturating_sub(witness.user_ns),
            sys_ns: used.1.saturating_sub(self.used_before.1).saturating_sub(witness.sys_ns),
            idle: followed.idle,
            processes: followed.processes,
            threads: followed.threads,
            calls: followed.calls,
            outside: followed.outside,
            tree: followed.tree,
            files: followed.files,
            cost_per_call_ns: self.cost_per_call_ns,
            missed: followed.missed,
            notes,
        };
        let ended = watch.late().map_or(course.ended, Ended::Signal);
        Ok(Trace { traced, events: followed.events, ended })
    }
}

/// Calls that are asked for must be calls.
fn check_names(request: &Request) -> Result<(), TraceError> {
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
