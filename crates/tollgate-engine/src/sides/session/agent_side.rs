//! One environment of a session, as the coordinator sees it: its agent, its schedules, its facts.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use tollgate_arch::counter;
use tollgate_model::bounded::MAX_FACTS;
use tollgate_model::{Fact, FactValue, Facts};

use super::connection::{Connection, Gone, Stop, plain};
use super::{Link, Side};
use crate::bench_process::record::ProcessRecord;
use crate::machine::clock::Clock;
use crate::machine::ending::Ending;
use crate::rounds::schedule::Schedule;
use crate::sides::agent::Moment;
use crate::sides::agent::protocol::{Answer, Hello, Job, PATIENCE, Request};
use crate::{machine::interrupt, rounds::measure};

/// Added to the time that a request may take.
const MARGIN: Duration = Duration::from_secs(10);
/// The most seconds here per second of a counting environment, of whose 1,000 million instructions QEMU's translator makes 20 to 100 million.
const SLOWEST: u32 = 60;
/// The factor on the time in which a counting environment starts, and its agent gives a sign of life.
const SLOWER: u32 = 9;

pub struct AgentSide<'s, 'a> {
    pub side: &'s mut Side<'a>,
    /// A started environment, until its agent has greeted.
    link: Option<Link>,
    connection: Option<Connection>,
    pub hello: Hello,
    pub cpu: Option<usize>,
    pub clock: Clock,
    /// One for each suite, with the same cases as those of the other environments.
    pub schedules: Vec<Schedule>,
    pub facts: Facts,
    pub of_measuring: Vec<(String, Fact)>,
    /// Why it gives nothing more.
    pub lost: Option<String>,
    pub started: usize,
    /// The time that its last process took to start and to end.
    pub start_up: Duration,
}

impl<'s, 'a> AgentSide<'s, 'a> {
    pub fn new(side: &'s mut Side<'a>, schedules: Vec<Schedule>) -> Self {
        Self {
            side,
            link: None,
            connection: None,
            hello: Hello { protocol: 0, version: String::new(), allowed: Vec::new(), usual: None },
            cpu: None,
            clock: Clock::Kernel,
            schedules,
            facts: Facts::new(),
            of_measuring: Vec::new(),
            lost: None,
            started: 0,
            start_up: Duration::ZERO,
        }
    }

    pub fn is_here(&self) -> bool {
        self.connection.is_some()
    }

    /// Returns why it is not there, if so.
    pub fn must_be_here(&self) -> Result<(), String> {
        let why = || self.lost.clone().unwrap_or_else(|| "its agent has ended".to_owned());
        if self.is_here() { Ok(()) } else { Err(why()) }
    }

    pub fn close(&mut self) {
        self.connection = None;
    }

    /// Notes why it gives nothing more, and closes the line. Fails with the user's signal.
    pub fn lose(&mut self, gone: Gone) -> Result<(), Stop> {
        (self.link, self.connection) = (None, None);
        match gone {
            Gone::Interrupted(signal) => Err(Stop::Interrupted(signal)),
            Gone::Lost(why) => {
                self.lost.get_or_insert(why);
                Ok(())
            }
            Gone::Over(why) => {
                self.lost.get_or_insert(why);
                Err(Stop::Over)
            }
        }
    }

    pub fn settled<T>(&mut self, outcome: Result<T, Gone>) -> Result<Option<T>, Stop> {
        interrupt::check(Stop::Interrupted)?;
        match outcome {
            Ok(done) => Ok(Some(done)),
            Err(gone) => {
                self.lose(gone)?;
                Ok(None)
            }
        }
    }

    pub fn start(&mut self) -> Result<(), Gone> {
        self.start_within(self.patience())
    }

    pub fn start_within(&mut self, patience: Duration) -> Result<(), Gone> {
        self.launch()?;
        self.greet_within(patience)
    }

    /// Starts the environment without waiting for its agent.
    pub fn launch(&mut self) -> Result<(), Gone> {
        self.connection = None;
        self.started += 1;
        self.link = Some((self.side.start)().map_err(Gone::Lost)?);
        Ok(())
    }

    pub fn greet(&mut self) -> Result<(), Gone> {
        self.greet_within(self.patience())
    }

    fn greet_within(&mut self, patience: Duration) -> Result<(), Gone> {
        let (connection, hello) = Connection::greeted(self.link.take().ok_or_else(gone)?, patience)?;
        (self.connection, self.hello) = (Some(connection), hello);
        Ok(())
    }

    /// Starts it as for a measurement of itself, and reads its facts. Then it ends.
    pub fn look_inside(&mut self) -> Result<(), Gone> {
        let Some(life) = &mut self.side.life else { return Ok(()) };
        let link = life.start(&mut || {}).map_err(Gone::Lost)?;
        let (connection, hello) = Connection::greeted(link, self.patience())?;
        (self.connection, self.hello, self.started) = (Some(connection), hello, 1);
        self.read_facts(Moment::Before)?;
        self.read_facts(Moment::After)
    }

    /// The factor on the usual time of its messages.
    fn slower(&self) -> u32 {
        if self.side.is_counting { SLOWER } else { 1 }
    }

    pub fn patience(&self) -> Duration {
        PATIENCE * self.slower()
    }

    /// Makes the setting that the side's turns need.
    pub fn wake(&mut self) -> Result<(), Gone> {
        self.side.wake.as_mut().map_or(Ok(()), |wake| wake().map_err(Gone::Over))
    }

    /// Makes the agent stay off the processor of its bench processes.
    pub fn settle(&mut self, cpu: Option<usize>) -> Result<(), Gone> {
        self.cpu = cpu;
        if let Some(asked) = cpu.filter(|asked| !self.hello.allowed.contains(asked)) {
            let allowed: Vec<String> = self.hello.allowed.iter().take(64).map(usize::to_string).collect();
            let allowed = allowed.join(", ");
            return Err(Gone::Lost(format!("processor {asked} is not allowed in it; {allowed} are")));
        }
        self.send(&Request::Settle { cpu }, self.patience())?;
        match self.receive(self.patience())? {
            Answer::Settled { isolation } => {
                let isolation = plain(&isolation, 40);
                self.note("run.isolation", Fact::known(isolation, "fork(2), execveat(2)"));
                Ok(())
            }
            other => Err(unexpected(other)),
        }
    }

    pub fn read_facts(&mut self, moment: Moment) -> Result<(), Gone> {
        self.ask_for_facts(moment)?;
        self.receive_facts()
    }

    pub fn ask_for_facts(&mut self, moment: Moment) -> Result<(), Gone> {
        if let (Moment::After, Some(outside)) = (moment, &self.side.outside) {
            self.facts.extend(outside());
        }
        self.send(&Request::Facts(moment), self.patience())
    }

    pub fn receive_facts(&mut self) -> Result<(), Gone> {
        match self.receive(self.patience())? {
            Answer::Facts(facts) => {
                self.facts.extend(facts.into_iter().filter_map(settled).take(MAX_FACTS / 2));
                Ok(())
            }
            other => Err(unexpected(other)),
        }
    }

    pub fn find_clock(&mut self, stall: Duration, within: Duration) -> Result<(), Gone> {
        let began = Instant::now();
        let mut found = self.run(Job::Clock, stall, within, &mut |_| {})?;
        // On a busy machine the process may not have run, so it gets a second try.
        if found.0 == Ending::Stalled {
            found = self.run(Job::Clock, stall, within, &mut |_| {})?;
        }
        self.start_up = began.elapsed();
        let (clock, _, facts) =
            measure::clock_found(found.0, &found.1.report, self.cpu, stall, self.counter());
        self.clock = clock;
        for (name, fact) in facts {
            self.note(&name, fact);
        }
        Ok(())
    }

    /// The name of its processor's counter.
    pub fn counter(&self) -> &'static str {
        match self.facts.get("cpu.architecture").and_then(Fact::value) {
            Some(FactValue::Text(name)) if name == "aarch64" => "cntvct",
            Some(FactValue::Text(name)) if name == "x86_64" => "tsc",
            _ => counter::NAME,
        }
    }

    /// Notes a fact of the measuring, which replaces an earlier one of that name.
    pub fn note(&mut self, name: &str, fact: Fact) {
        match self.of_measuring.iter_mut().find(|(other, _)| other == name) {
            Some((_, earlier)) => *earlier = fact,
            None => self.of_measuring.push((name.to_owned(), fact)),
        }
    }

    pub fn run(
        &mut self,
        job: Job,
        stall: Duration,
        most: Duration,
        tick: &mut dyn FnMut(Option<usize>),
    ) -> Result<(Ending, ProcessRecord), Gone> {
        let instances = job.instances();
        self.send(&Request::Start { job, stall, most }, self.patience())?;
        self.wait(most, instances, tick)
    }

    pub fn wait(
        &mut self,
        most: Duration,
        instances: usize,
        tick: &mut dyn FnMut(Option<usize>),
    ) -> Result<(Ending, ProcessRecord), Gone> {
        let ended = self.answer(most, instances, tick)?;
        ended.ok_or_else(|| Gone::Lost("its agent sent an unexpected answer".to_owned()))
    }

    /// Starts a bench process that waits for turns. Returns its end if it ended instead.
    pub fn prepare(
        &mut self,
        job: Job,
        stall: Duration,
        most: Duration,
        tick: &mut dyn FnMut(Option<usize>),
    ) -> Result<Option<(Ending, ProcessRecord)>, Gone> {
        let instances = job.instances();
        self.ask(&Request::Start { job, stall, most }, most, instances, tick)
    }

    /// Sends a request to a bench process, and waits until it is ready, done, or has ended.
    pub fn ask(
        &mut self,
        request: &Request,
        most: Duration,
        instances: usize,
        tick: &mut dyn FnMut(Option<usize>),
    ) -> Result<Option<(Ending, ProcessRecord)>, Gone> {
        self.send(request, self.patience())?;
        self.answer(most, instances, tick)
    }

    fn answer(
        &mut self,
        most: Duration,
        instances: usize,
        tick: &mut dyn FnMut(Option<usize>),
    ) -> Result<Option<(Ending, ProcessRecord)>, Gone> {
        let last = self.end_of(most);
        loop {
            // Signs of life come four times a second; a very busy machine delays them.
            let left = last.saturating_duration_since(Instant::now());
            let answer = self.receive(left.min(self.patience()))?;
            match taken(answer, instances, tick)? {
                Taken::Running => {}
                Taken::Ready => return Ok(None),
                Taken::Ended(ending, record) => return Ok(Some((ending, *record))),
            }
            if left.is_zero() {
                return Err(busy());
            }
        }
    }

    /// Returns the record of the requested bench process, if it has ended. `last` is its deadline.
    pub fn answered_by_now(
        &mut self,
        last: Instant,
        instances: usize,
        tick: &mut dyn FnMut(Option<usize>),
    ) -> Result<Option<(Ending, ProcessRecord)>, Gone> {
        while let Some(answer) = self.connection.as_mut().ok_or_else(gone)?.received()? {
            match taken(answer, instances, tick)? {
                Taken::Running => {}
                Taken::Ready => return Err(unexpected(Answer::Ready)),
                Taken::Ended(ending, record) => return Ok(Some((ending, *record))),
            }
        }
        if Instant::now() > last { Err(busy()) } else { Ok(None) }
    }

    /// The deadline of the answer to a request that may take `most`.
    pub fn end_of(&self, most: Duration) -> Instant {
        let most = if self.side.is_counting { most * SLOWEST } else { most };
        Instant::now() + most + MARGIN * self.slower()
    }

    pub fn output(&self) -> Option<BorrowedFd<'_>> {
        let of_link = || self.link.as_ref().map(|link| link.from.as_fd());
        self.connection.as_ref().map(Connection::output).or_else(of_link)
    }

    /// Reports that it was silent for too long, and closes the line.
    pub fn silent(&mut self) -> Gone {
        let patience = self.patience();
        let connection = self.connection.take().or_else(|| self.link.take().map(Connection::new));
        connection.map_or_else(gone, |mut connection| connection.silent(patience))
    }

    pub fn send(&mut self, request: &Request, patience: Duration) -> Result<(), Gone> {
        self.connection.as_mut().ok_or_else(gone)?.send(request, patience)
    }

    pub fn receive(&mut self, patience: Duration) -> Result<Answer, Gone> {
        self.connection.as_mut().ok_or_else(gone)?.receive(patience)
    }
}

enum Taken {
    Running,
    Ready,
    Ended(Ending, Box<ProcessRecord>),
}

fn taken(answer: Answer, instances: usize, tick: &mut dyn FnMut(Option<usize>)) -> Result<Taken, Gone> {
    match answer {
        Answer::Running(instance) => {
            tick(instance.filter(|&instance| instance < instances));
            Ok(Taken::Running)
        }
        Answer::Ready | Answer::Done => Ok(Taken::Ready),
        Answer::Ended { ending, record } => {
            let record = record.checked(instances);
            let record = record.map_err(|why| Gone::Lost(format!("its agent sent {why}")))?;
            Ok(Taken::Ended(ending, Box::new(record)))
        }
        other => Err(unexpected(other)),
    }
}

fn gone() -> Gone {
    Gone::Lost("its agent has ended".to_owned())
}

fn busy() -> Gone {
    Gone::Lost("its agent was busy for longer than its time".to_owned())
}

pub fn unexpected(answer: Answer) -> Gone {
    Gone::Lost(match answer {
        Answer::Failed(why) => plain(&why, 400),
        _ => "its agent sent an unexpected answer".to_owned(),
    })
}

/// Makes an agent's fact fit for a run document; `None` if its name is not that of a fact.
fn settled((name, mut fact): (String, Fact)) -> Option<(String, Fact)> {
    /// Characters of the longest text: a kernel command line, or a list of mitigations.
    const MOST: usize = 1 << 13;
    let is_name = |c: char| c.is_ascii_graphic();
    if name.is_empty() || name.len() > 128 || !name.chars().all(is_name) || name.starts_with("run.") {
        return None;
    }
    let cut = |text: &mut String| {
        *text = text.chars().take(MOST).map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
    };
    match &mut fact {
        Fact::Known { value, source } => {
            cut(source);
            match value {
                FactValue::Text(text) => cut(text),
                FactValue::List(texts) => texts.iter_mut().for_each(cut),
                FactValue::Real(number) if !number.is_finite() => return None,
                _ => {}
            }
        }
        Fact::Unknown { .. } => {}
    }
    Some((name, fact))
}
