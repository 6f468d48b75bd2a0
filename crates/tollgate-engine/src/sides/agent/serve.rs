//! The agent's life: requests from standard input, answers to standard output. The end of its input ends the agent at once, also
//! while its bench process runs: the coordinator has ended, and this environment will be removed.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tollgate_model::text::said_by;
use tollgate_os::children::{Inherited, Subreaper};

use super::bench::Bench;
use super::commands::AgentLine;
use super::functions;
use super::itself;
use super::protocol::{Answer, Hello, Job, MAGIC, PROTOCOL, Request, SIGN};
use super::streams::Streams;
use super::{Means, Moment};
use crate::bench_process::frame::{self, Inbox};
use crate::bench_process::supervisor::Isolation;
use crate::bench_process::worker::Task;
use crate::machine::ending::Ending;
use crate::machine::group;
use crate::machine::limits::Limits;
use crate::machine::other_cpus::OtherCpus;
use crate::machine::storage::Storage;
use crate::rounds::commands::{CommandRequest, Served};
use crate::sides::versus::{self, Halt};
use crate::{machine::cpu, machine::interrupt, machine::topology};

/// Serves as an agent until standard input ends. Returns the exit status of the program.
///
/// Nothing else in this process may use standard input and output. The agent also ends if standard output is closed.
pub fn serve(means: Means<'_>) -> i32 {
    let served = Streams::take().and_then(|streams| Agent::begin(means, streams)?.run());
    match served {
        Ok(()) => 0,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            eprintln!("tollgate: agent: {}", said_by("agent", &error));
            1
        }
    }
}

struct Agent<'a> {
    means: Means<'a>,
    streams: Streams,
    inbox: Inbox,
    isolation: Isolation,
    other_cpus: Option<OtherCpus>,
    allowed: Vec<usize>,
    cpu: Option<usize>,
    affinity: Result<(), String>,
    limits: Option<Limits>,
    storage: Option<Result<Storage, String>>,
    bench: Option<Bench>,
    served: Served,
    left: Left,
    _subreaper: Subreaper,
}

/// Processes that commands of workloads leave. They end with the commands' fixture, when this process has no other children.
#[derive(Default)]
struct Left {
    before: Option<Inherited>,
}

impl Left {
    fn begin(&mut self) {
        self.before.get_or_insert_with(Inherited::now);
    }

    fn end(&mut self) {
        if let Some(before) = self.before.take() {
            group::end_strays(&before);
        }
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        self.end();
    }
}

impl<'a> Agent<'a> {
    fn begin(means: Means<'a>, mut streams: Streams) -> io::Result<Self> {
        let allowed = cpu::allowed();
        let usual = topology::usual(&allowed);
        let version = means.version.to_owned();
        io::Write::write_all(&mut streams.output, &MAGIC)?;
        let hello = Hello { protocol: PROTOCOL, version, allowed: allowed.clone(), usual };
        frame::write(&mut streams.output, &hello)?;
        Ok(Self {
            isolation: Isolation::here(means.executes),
            means,
            streams,
            inbox: Inbox::default(),
            other_cpus: None,
            allowed,
            cpu: None,
            affinity: Ok(()),
            limits: None,
            storage: None,
            bench: None,
            served: Served::default(),
            left: Left::default(),
            _subreaper: Subreaper::begin(),
        })
    }

    fn run(mut self) -> io::Result<()> {
        loop {
            while let Some(request) = self.inbox.next::<Request>().map_err(io::Error::other)? {
                self.meet(request)?;
            }
            if !self.wait()? || interrupt::requested().is_some() {
                return Ok(());
            }
        }
    }

    fn say(&mut self, answer: &Answer) -> io::Result<()> {
        frame::write(&mut self.streams.output, answer)
    }

    fn meet(&mut self, request: Request) -> io::Result<()> {
        match request {
            Request::Facts(moment) => {
                let facts = self.facts(moment);
                self.say(&Answer::Facts(facts))
            }
            Request::Settle { cpu } => {
                self.cpu = cpu;
                self.other_cpus = None;
                self.other_cpus = Some(OtherCpus::except(cpu, self.allowed.clone()));
                self.limits = Some((self.means.limits)());
                let isolation = self.isolation.describe().to_owned();
                self.say(&Answer::Settled { isolation })
            }
            Request::Start { job, stall, most } => match self.start(job, stall, most) {
                Ok(bench) => {
                    self.bench = Some(bench);
                    Ok(())
                }
                Err(error) => {
                    let why = format!("a bench process could not be started: {}", said_by("process", &error));
                    self.say(&Answer::Failed(why))
                }
            },
            Request::Turn(order) => {
                let Some(bench) = &mut self.bench else {
                    return self.say(&Answer::Failed("no bench process is waiting for a turn".to_owned()));
                };
                match bench.turn(&order) {
                    Ok(()) => Ok(()),
                    Err(why) => self.say(&Answer::Failed(why)),
                }
            }
            Request::Command(request) => self.command(request),
            Request::Execute { number, order } => self.at_work(|executor, tick| {
                let execution = Box::new(executor.execute(&order, tick)?);
                Ok(Answer::Executed { number, execution })
            }),
            Request::Cool { number, files } => self.at_work(|executor, _| {
                let cooled = executor.cool(&files)?;
                Ok(Answer::Cooled { number, cooled })
            }),
            Request::Memory => {
                let used = itself::used().map_or_else(Answer::Failed, Answer::Used);
                self.say(&used)
            }
            Request::Touch { pages } => {
                let touched = itself::touch(pages).map_or_else(Answer::Failed, |()| Answer::Done);
                self.say(&touched)
            }
            Request::Functions(addresses) => {
                let answer = match functions::here(&addresses) {
                    Ok(functions) => Answer::Functions(functions),
                    Err(why) => Answer::Failed(why),
                };
                let said = self.say(&answer);
                drop((answer, addresses));
                // The next command begins as a copy of this process, which should not include megabytes of free memory.
                // SAFETY: malloc_trim(3) has no preconditions.
                unsafe { libc::malloc_trim(0) };
                said
            }
            Request::End => {
                let Some(bench) = self.bench.take() else {
                    return self.say(&Answer::Failed("there is no bench process".to_owned()));
                };
                // The next environment goes on while this process ends.
                self.say(&Answer::Ended { ending: Ending::Finished, record: bench.left() })?;
                bench.end();
                Ok(())
            }
        }
    }

    /// Takes a step of whole commands. They may use all processors.
    fn command(&mut self, request: CommandRequest) -> io::Result<()> {
        (self.bench, self.other_cpus) = (None, None);
        let is_last = request == CommandRequest::Finish;
        self.left.begin();
        let storage = self.storage.get_or_insert_with(|| (self.means.storage)()).clone();
        let mut line = AgentLine { streams: &mut self.streams, inbox: &mut self.inbox };
        line.work(|say| {
            let answer =
                self.served.meet(request, storage, self.means.find, &mut |progress| say(&progress.what));
            if is_last {
                self.left.end();
            }
            Ok(Answer::Command(answer?))
        })?;
        if is_last {
            self.other_cpus = Some(OtherCpus::except(self.cpu, self.allowed.clone()));
        }
        Ok(())
    }

    fn at_work(
        &mut self,
        work: impl FnOnce(&mut dyn versus::Executor, &mut dyn FnMut()) -> Result<Answer, Halt>,
    ) -> io::Result<()> {
        (self.bench, self.other_cpus) = (None, None);
        let mut line = AgentLine { streams: &mut self.streams, inbox: &mut self.inbox };
        line.work(|say| work(self.means.executor, &mut || say("")))
    }

    fn facts(&mut self, moment: Moment) -> tollgate_model::Facts {
        if moment == Moment::After {
            // Its maker may remove the directory now.
            self.served.end();
            self.left.end();
            (self.bench, self.storage) = (None, None);
        }
        (self.means.facts)(moment)
    }

    fn start(&mut self, job: Job, stall: Duration, most: Duration) -> io::Result<Bench> {
        // The previous one has ended, or is no longer wanted.
        self.bench = None;
        let storage =
            if job.orders().iter().any(|order| {
                (self.means.find)(&order.benchmark).is_some_and(|benchmark| benchmark.uses_files)
            }) {
                self.storage.get_or_insert_with(|| (self.means.storage)()).clone()
            } else {
                Err("this process was started for cases without a directory".to_owned())
            };
        let task = |work| Task {
            cpu: self.cpu,
            allowed: self.allowed.clone(),
            affinity: self.affinity.clone(),
            limits: self.limits.clone().unwrap_or_default(),
            storage,
            work,
        };
        Bench::start(job, task, (stall, most), &self.isolation, self.means.find)
    }

    /// Waits for input or news of the bench process, and sends the news. False at the end of the input.
    fn wait(&mut self) -> io::Result<bool> {
        let look = self.bench.as_ref().map_or(SIGN * 4, Bench::look);
        let (readable, done) = {
            let mut all = vec![PollFd::new(&self.streams.input, PollFlags::IN)];
            let bench = self.bench.iter().flat_map(Bench::descriptors);
            all.extend(bench.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)));
            let most = Timespec { tv_sec: look.as_secs().cast_signed(), tv_nsec: look.subsec_nanos().into() };
            match poll(&mut all, Some(&most)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let is_ready = |at: usize| all.get(at).is_some_and(|one| !one.revents().is_empty());
            (
                is_ready(0),
                self.bench.as_ref().and_then(Bench::place_of_done).is_some_and(|at| is_ready(at + 1)),
            )
        };
        if readable && !self.streams.read_to(&mut self.inbox)? {
            return Ok(false);
        }
        let Some(bench) = &mut self.bench else { return Ok(true) };
        let Some(answer) = bench.news(done) else { return Ok(true) };
        if let Answer::Ended { record, .. } = &answer {
            if let Some(observed) = &record.report.affinity {
                self.affinity = observed.binds();
            }
            self.bench = None;
        }
        self.say(&answer)?;
        Ok(true)
    }
}
