//! Finds which environments work here. Each is asked for its version and runs this program once.

use std::time::{Duration, Instant};
use std::{io, thread};

use tollgate_model::text::said_by;
use tollgate_os::private::TrustedDirectory;

use crate::agent::Agent;
use crate::cleanup::Cleanup;
use crate::container::Paths;
use crate::error::{EnvironmentError, plainly, unusable};
use crate::known_directory;

/// Time limit for each, on a busy machine. They are tried at the same time, and usually answer within a second.
const MOST: Duration = Duration::from_secs(10);

/// An environment, and whether it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Possibility {
    /// How such an environment is named: `host`, `container:runtime=bwrap`, `ssh:HOST`.
    pub environment: String,
    /// Its names as `--in` takes them; none if the name has to include something else, such as another machine.
    pub names: Vec<String>,
    /// Its version and what else is known of it; or why it does not work, with the Debian package that is missing.
    pub found: Result<String, String>,
}

type Try = Box<dyn FnOnce(&Tools) -> Result<String, EnvironmentError> + Send>;

pub(crate) struct Candidate {
    environment: String,
    names: Vec<String>,
    try_it: Try,
}

impl Candidate {
    /// A candidate that `--in` takes under this name.
    pub fn named(
        environment: String,
        try_it: impl FnOnce(&Tools) -> Result<String, EnvironmentError> + Send + 'static,
    ) -> Self {
        Self { names: vec![environment.clone()], environment, try_it: Box::new(try_it) }
    }

    /// The same candidate, which `--in` takes under these names.
    pub fn with_names(self, names: Vec<String>) -> Self {
        Self { names, ..self }
    }
}

pub(crate) struct Tools {
    cleanup: Result<Cleanup, EnvironmentError>,
    agent: Result<Agent, EnvironmentError>,
}

impl Tools {
    /// Runs a trial in a private directory, which is removed afterwards, or when this program ends earlier.
    pub fn in_private<T>(
        &self,
        run: impl FnOnce(&Agent, Paths<'_>, &Cleanup) -> Result<T, EnvironmentError>,
    ) -> Result<T, EnvironmentError> {
        let cleanup = self.cleanup.as_ref().map_err(Clone::clone)?;
        let agent = self.agent.as_ref().map_err(Clone::clone)?;
        let (private, _promises) = known_directory::temporary(cleanup, TrustedDirectory::can_execute)?;
        run(agent, Paths::new(&private, None), cleanup)
    }
}

pub(super) fn all(candidates: Vec<Candidate>) -> Vec<Possibility> {
    let cleanup = Cleanup::begin()
        .map_err(|error| unusable!("the cleanup process could not be started: {}", plainly(error)));
    let tools = &Tools { cleanup, agent: Agent::with(&[]) };
    thread::scope(|scope| {
        let begin = |Candidate { environment, names, try_it }| {
            (environment, names, thread::Builder::new().spawn_scoped(scope, move || try_it(tools)))
        };
        let tried: Vec<_> = candidates.into_iter().map(begin).collect();
        let end = |(environment, names, thread): (_, _, io::Result<thread::ScopedJoinHandle<'_, _>>)| {
            let found = match thread {
                Ok(thread) => thread.join().unwrap_or(Err(EnvironmentError::Interrupted)),
                Err(error) => Err(unusable!("no thread is started: {}", said_by("thread", &error))),
            };
            Possibility { environment, names, found: found.map_err(said) }
        };
        tried.into_iter().map(end).collect()
    })
}

fn said(why: EnvironmentError) -> String {
    match why {
        EnvironmentError::Interrupted => format!("it did not answer within {} s", MOST.as_secs_f64()),
        why => why.to_string(),
    }
}

/// Returns a function that says whether a trial that begins now has taken too long.
pub(super) fn until() -> impl Fn() -> bool {
    let begun = Instant::now();
    move || begun.elapsed() > MOST
}
