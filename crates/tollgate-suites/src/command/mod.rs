//! Executes the user's commands on this machine, one after the other.
//!
//! - `helper`: the process that executes one command and waits for it. A command that kills its process group kills the helper
//!   with it.
//! - `answer`: the result that the helper returns. `listener`: a process that keeps the end of the command's output.
//! - `cooling`: drops files from the page cache.

pub(crate) mod answer;
mod cooling;
pub(crate) mod helper;
mod listener;

use std::time::{Duration, Instant};

use tollgate_engine::versus::{Cooled, End, Execution, Executor, Halt, How, Order, Output, counted};
use tollgate_engine::{BenchError, Ending, group, interrupt};
use tollgate_os::children::{Inherited, Subreaper};
use tollgate_os::process::{self, Child};

use answer::Answer;
use cooling::Cooling;
use helper::Ran;
use listener::Listener;

const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Executes commands in this process, which must have one thread. On drop, ends what [`Order::keeps`] left.
#[derive(Debug)]
pub struct Here {
    before: Inherited,
    cooling: Cooling,
    staying: Vec<Child>,
    _subreaper: Subreaper,
}

impl Here {
    /// Makes this process the subreaper of processes that commands leave.
    pub fn new() -> Self {
        Self {
            before: Inherited::now(),
            cooling: Cooling::default(),
            staying: Vec::new(),
            _subreaper: Subreaper::begin(),
        }
    }
}

impl Here {
    /// Reaps processes of earlier preparations that have ended. Each would stay a zombie until the last command has ended.
    fn reap(&mut self) {
        self.staying.retain_mut(|listener| matches!(listener.try_wait(), Ok(None)));
        for pid in self.before.later() {
            let is_listener = self.staying.iter().any(|listener| listener.pid() == pid);
            if !is_listener && !group::is_running(pid) {
                let _ = process::wait4(pid, libc::WNOHANG);
            }
        }
    }
}

impl Default for Here {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.staying.drain(..).for_each(Child::leave);
        group::end_strays(&self.before);
    }
}

impl Executor for Here {
    fn execute(&mut self, order: &Order, tick: &mut dyn FnMut()) -> Result<Execution, Halt> {
        match order.how {
            How::Counted => return Ok(counted::execute(order)),
            How::Recalled { number } => return Ok(counted::recalled(order, number)),
            How::Timed | How::Traced { .. } => self.reap(),
        }
        let no_process = |error| Halt::Run(BenchError::NoProcess(error));
        // Taken before the listener starts: if /proc does not list children, any child makes this search one by one.
        let inherited = Inherited::now();
        let listener = match order.output {
            Output::Inherit => None,
            _ => Some(Listener::start(order.keeps).map_err(no_process)?),
        };
        let answer = Answer::new().map_err(no_process)?;
        let began = Instant::now();
        let deadline = began + order.within.unwrap_or(FOREVER).min(FOREVER);
        let to = listener.as_ref().map(Listener::pipe);
        let mut full = None;
        let goes_on = || {
            tick();
            full = order.full();
            full.is_none()
        };
        let ending = group::run(|| helper::life(order, to, &answer), deadline, goes_on);
        let wall = began.elapsed();
        let is_whole = matches!(ending, Ok(Ending::Finished));
        let (said, staying) = listener.map(Listener::end).unwrap_or_default();
        self.staying.extend(staying);
        let left = if order.keeps && is_whole { 0 } else { group::end_strays(&inherited) };
        let end = match ending.map_err(no_process)? {
            Ending::Finished => match answer.take::<Result<Ran, End>>() {
                Ok(Ok(ran)) => return Ok(ran.execution(order, said)),
                Ok(Err(end)) => end,
                Err(error) => End::NotStarted(format!("the result of its execution cannot be read: {error}")),
            },
            Ending::OutOfTime => full.unwrap_or(End::OutOfTime),
            Ending::Killed(signal) => End::KilledGroup(signal),
            Ending::Interrupted => {
                let signal = interrupt::requested().unwrap_or(libc::SIGINT);
                return Err(Halt::Run(BenchError::Interrupted(signal)));
            }
            other => End::NotStarted(format!("it was not executed: {}", other.describe(Duration::ZERO))),
        };
        let wall_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
        Ok(Execution { wall_ns, said, left, ..Execution::ended(end) })
    }

    fn cool(&mut self, files: &[String]) -> Result<Cooled, Halt> {
        self.cooling.cool(files)
    }
}
