//! Environments that a command reaches: a prefix of command lines, or ssh(1). It tries three ways to start this program
//! there, and keeps the first that answers.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use tollgate_engine::agent::PATIENCE;
use tollgate_engine::session::Mark;
use tollgate_model::text::{commands_a_reader, excerpt};

use crate::agent::Agent;
use crate::cleanup::{Cleanup, Promise};
use crate::error::{EnvironmentError, plainly, unusable};
use crate::greeting::{self, Seen};
use crate::known_directory;
use crate::prepared::{Prepared, Undo};
use crate::ready::{Begin, Ready};
use crate::shell::SHELL;
use crate::started::{self, Start, Started};
use crate::upload;

/// How this program gets there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The environment has this machine's files: nice(1), taskset(1), sudo(8).
    Path,
    /// It has a program `tollgate`.
    Name,
    /// It has a shell, which reads this program from its standard input.
    Upload,
}

pub(crate) enum Reach {
    Prefix(Vec<OsString>),
    /// A host of ssh(1).
    Host(String),
}

impl Reach {
    fn ways(&self) -> &'static [Way] {
        match self {
            Self::Prefix(_) => &[Way::Path, Way::Name, Way::Upload],
            Self::Host(_) => &[Way::Upload],
        }
    }

    fn command(&self, way: Way, agent: &Agent, name: &str) -> Result<Vec<OsString>, EnvironmentError> {
        let behind: Vec<OsString> = match way {
            Way::Path => [&[agent.program().into()], agent.arguments()].concat(),
            Way::Name => [&["tollgate".into()], agent.arguments()].concat(),
            Way::Upload => {
                let script = upload::script(name, agent.open()?.1);
                match self {
                    Self::Prefix(_) => vec!["sh".into(), "-c".into(), script.into()],
                    // One word, so that any kind of shell over there can parse it.
                    Self::Host(_) => vec![format!("sh -c '{}'", script.replace('\'', "'\\''")).into()],
                }
            }
        };
        Ok(self.before(behind))
    }

    /// A shell in place of an agent, which ends by itself.
    pub fn shell(&self) -> Prepared {
        let behind = match self {
            Self::Prefix(_) => SHELL.map(OsString::from).to_vec(),
            Self::Host(_) => vec![format!("{} -c '{}'", SHELL[0], SHELL[2]).into()],
        };
        Prepared { command: self.before(behind), ..Prepared::default() }
    }

    fn before(&self, behind: Vec<OsString>) -> Vec<OsString> {
        match self {
            Self::Prefix(words) => [words.as_slice(), &behind].concat(),
            Self::Host(host) => {
                let options = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-T", "--", host];
                options.into_iter().map(OsString::from).chain(behind).collect()
            }
        }
    }
}

pub(crate) struct Reached {
    reach: Reach,
    known: Option<Way>,
    agent: Agent,
    is_paired: bool,
}

impl Reached {
    pub fn new(reach: Reach, is_paired: bool) -> Result<Self, EnvironmentError> {
        Ok(Self { reach, known: None, agent: Agent::with(&[])?, is_paired })
    }
}

impl Ready for Reached {
    fn start(&mut self, begin: Begin<'_>) -> Result<(Started, Vec<Mark>), EnvironmentError> {
        let Begin { cleanup, stop, begin, .. } = begin;
        let started = start(&self.reach, &mut self.known, &self.agent, cleanup, stop, begin)?;
        Ok((started, Vec::new()))
    }

    fn details(&self, name: &str) -> Result<Vec<String>, EnvironmentError> {
        Ok(vec![format!("reached by: {name}")])
    }

    fn is_paired(&self) -> bool {
        self.is_paired
    }
}

/// Starts an agent in the known way, or finds a way.
fn start(
    reach: &Reach,
    known: &mut Option<Way>,
    agent: &Agent,
    cleanup: &Cleanup,
    stop: &dyn Fn() -> bool,
    begin: &mut dyn FnMut(),
) -> Result<Started, EnvironmentError> {
    start_within(PATIENCE, reach, known, agent, cleanup, stop, begin)
}

fn start_within(
    patience: Duration,
    reach: &Reach,
    known: &mut Option<Way>,
    agent: &Agent,
    cleanup: &Cleanup,
    stop: &dyn Fn() -> bool,
    begin: &mut dyn FnMut(),
) -> Result<Started, EnvironmentError> {
    let mut others: Vec<String> = Vec::new();
    let mut said: Vec<String> = Vec::new();
    // The time limit is for all ways together.
    let mut heard = Instant::now();
    for way in known.as_ref().map_or(reach.ways(), std::slice::from_ref) {
        let name = upload::name()?;
        let command = reach.command(*way, agent, &name)?;
        // Promised for the moment in which the copy has a name, if it is made on this machine.
        let copy = match (way, reach) {
            (Way::Upload, Reach::Prefix(_)) => Some(promised(cleanup, &name)?),
            _ => None,
        };
        let start = Start { command: &command, variables: &[], is_bound: false, files: &[] };
        let started = started::start(&start, cleanup, begin).map_err(|error| match reach {
            Reach::Host(_) => unusable!("{error}; it is in the package openssh-client"),
            Reach::Prefix(_) => error,
        })?;
        let early = match way {
            Way::Upload => upload::write(agent, &started.to, &started.from, &mut heard, patience, stop)?,
            Way::Path | Way::Name => None,
        };
        let seen = match early {
            Some(seen) => seen,
            None => greeting::look(&started.from, patience.saturating_sub(heard.elapsed()), stop)
                .map_err(|error| unusable!("the command's output: {}", plainly(error)))?,
        };
        match seen {
            Seen::Greeting => {
                *known = Some(*way);
                drop(copy);
                return Ok(started);
            }
            Seen::Stopped => return Err(EnvironmentError::Interrupted),
            Seen::Other(text) => others.push(text),
            Seen::Nothing => {
                let said = started
                    .said
                    .first_line()
                    .map(|line| format!("; the command said: {line}"))
                    .unwrap_or_default();
                return Err(unusable!("no agent answered within {} s{said}", patience.as_secs()));
            }
            Seen::End => {}
        }
        // Closing both pipes first ends what still runs.
        let Started { to, from, said: says, promise, pid: _ } = started;
        drop((to, from, promise, copy));
        said.extend(says.first_line());
    }
    Err(refusal(&others, said))
}

fn promised(cleanup: &Cleanup, name: &str) -> Result<Promise, EnvironmentError> {
    let words = ["rm", "-rf", "--"].into_iter().map(OsString::from);
    let directories = upload::directories_here(name).into_iter().map(OsString::from);
    known_directory::promised(cleanup, &[Undo::Program(words.chain(directories).collect())])
}

fn refusal(others: &[String], mut said: Vec<String>) -> EnvironmentError {
    said.dedup();
    match (others.first(), said.is_empty()) {
        (Some(other), _) => {
            let is_text = !other.chars().any(|c| commands_a_reader(c) || c == char::REPLACEMENT_CHARACTER);
            let printed =
                if is_text { format!("`{}`", excerpt(other)) } else { "bytes that are not text".to_owned() };
            unusable!(
                "the command printed {printed} where an agent of tollgate answers; it must pass standard input and output on unchanged and print nothing itself"
            )
        }
        (None, false) => unusable!("the command ended before an agent answered: {}", said.join("; ")),
        (None, true) => unusable!(
            "the command ended before an agent answered, without a word; it must run the program that follows it"
        ),
    }
}

#[cfg(test)]
mod tests;
