//! Which environments work here: each is asked for its version, and runs this program once.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use tollgate_model::text::listed;
use tollgate_os::private::{Place, PrivateDirectory};

use crate::agent::Agent;
use crate::commands;
use crate::container::{self, Paths};
use crate::error::{EnvironmentError, plainly, unusable};
use crate::guardian::Guardian;
use crate::gvisor;
use crate::known_directory;
use crate::spec::{Gvisor, Runtime};
use crate::vm;

/// The most time for one, on a machine with much other work. They are asked at the same time, and answer within a second otherwise.
const MOST: Duration = Duration::from_secs(10);

/// The device that one platform needs.
const KVM: &str = "/dev/kvm";

/// An environment, and whether it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Possibility {
    /// `host`, `container`, `gvisor`, `vm`, `ssh` or `exec`.
    pub kind: &'static str,
    /// The runtime, of a container.
    pub runtime: Option<Runtime>,
    /// The version, and what else is known of it; or why it does not work, with the Debian package that brings it.
    pub found: Result<String, String>,
}

impl Possibility {
    /// Its name as `--in` takes it; None where that has to name something else, such as another machine.
    pub fn spec(&self) -> Option<String> {
        match (self.kind, self.runtime) {
            ("ssh" | "exec", _) => None,
            (kind, Some(runtime)) => Some(format!("{kind}:runtime={runtime}")),
            (kind, None) => Some(kind.to_owned()),
        }
    }
}

/// What works here, in the order of the kinds. It takes a second or two, and leaves nothing.
pub fn survey() -> Vec<Possibility> {
    let guardian = Guardian::begin().map_err(|error| unusable!("no guardian is started: {}", plainly(error)));
    let agent = Agent::with(&[]);
    let made = |kind, runtime, found: Result<String, EnvironmentError>| {
        let found = found.map_err(|why| match why {
            EnvironmentError::Interrupted => format!("it did not answer within {} s", MOST.as_secs_f64()),
            why => why.to_string(),
        });
        Possibility { kind, runtime, found }
    };
    let tools = || Some((guardian.as_ref().ok()?, agent.as_ref().ok()?));
    let why_not = || {
        let of_guardian = guardian.as_ref().err().cloned();
        of_guardian.or(agent.as_ref().err().cloned()).unwrap_or(EnvironmentError::Interrupted)
    };
    thread::scope(|scope| {
        let containers: Vec<_> = Runtime::ALL
            .into_iter()
            .map(|runtime| {
                let try_it = move |(guardian, agent)| container(runtime, guardian, agent);
                let tools = tools();
                (runtime, scope.spawn(move || tools.map(try_it)))
            })
            .collect();
        let tools = tools();
        let sandbox = scope.spawn(move || tools.map(|(guardian, agent)| sandbox(guardian, agent)));
        let mut all = vec![made("host", None, Ok(kernel()))];
        for (runtime, thread) in containers {
            let found = thread.join().unwrap_or(None).unwrap_or_else(|| Err(why_not()));
            all.push(made("container", Some(runtime), found));
        }
        let found = sandbox.join().unwrap_or(None).unwrap_or_else(|| Err(why_not()));
        all.push(made("gvisor", None, found));
        all.push(made("vm", None, vm::survey(&until(Instant::now()))));
        all.push(made("ssh", None, ssh()));
        let any = "any command that runs a program and passes its standard input and output";
        all.push(made("exec", None, Ok(any.to_owned())));
        all
    })
}

fn kernel() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
}

fn ssh() -> Result<String, EnvironmentError> {
    let program =
        commands::find("ssh").ok_or_else(|| unusable!("not installed (Debian package openssh-client)"))?;
    commands::run(&program, &["-V"], &until(Instant::now()))
}

fn container(runtime: Runtime, guardian: &Guardian, agent: &Agent) -> Result<String, EnvironmentError> {
    let stop = until(Instant::now());
    runtime.find()?;
    with_private(guardian, |private| {
        let paths = Paths::of(private, None);
        let version = runtime.version(private.path(), &stop)?;
        container::try_out(runtime, agent, paths, guardian, &stop)?;
        Ok(version)
    })
}

fn sandbox(guardian: &Guardian, agent: &Agent) -> Result<String, EnvironmentError> {
    let version = gvisor::version(&until(Instant::now()))?;
    let found = gvisor::PLATFORMS.map(|platform| {
        if platform == "kvm" && !Path::new(KVM).exists() {
            return Err(unusable!("there is no {KVM}"));
        }
        let spec = Gvisor { platform: Some(platform.to_owned()) };
        with_private(guardian, |private| {
            let paths = Paths::of(private, None);
            gvisor::try_out(&spec, agent, paths, guardian, &until(Instant::now()))
        })
    });
    let (works, fails): (Vec<_>, Vec<_>) =
        gvisor::PLATFORMS.into_iter().zip(found).partition(|(_, found)| found.is_ok());
    let reasons: Vec<String> = fails
        .into_iter()
        .filter_map(|(platform, found)| {
            Some(format!("{platform} does not start: {}", cause(&found.err()?.to_string())))
        })
        .collect();
    let works: Vec<&str> = works.into_iter().map(|(platform, _)| platform).collect();
    match (works.as_slice(), reasons.as_slice()) {
        ([], reasons) => Err(unusable!("{version}, but no platform starts ({})", reasons.join("; "))),
        (works, []) => Ok(format!("{version}; platforms {}", listed(works))),
        (works, reasons) => Ok(format!("{version}; platforms {} ({})", listed(works), reasons.join("; "))),
    }
}

/// The last two parts of an error of a Go program, which has its cause at the end.
fn cause(said: &str) -> &str {
    said.rmatch_indices(": ").nth(1).map_or(said, |(at, divider)| &said[at + divider.len()..])
}

/// A private directory that goes when `run` has run, or when this program ends before.
fn with_private<T>(
    guardian: &Guardian,
    run: impl FnOnce(&PrivateDirectory) -> Result<T, EnvironmentError>,
) -> Result<T, EnvironmentError> {
    let (private, _promises) = known_directory::temporary(guardian, Place::can_execute)?;
    run(&private)
}

fn until(begun: Instant) -> impl Fn() -> bool {
    move || begun.elapsed() > MOST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_at_the_end() {
        assert_eq!(
            cause("running: creating: waiting for sandbox to start: EOF"),
            "waiting for sandbox to start: EOF"
        );
        assert_eq!(cause("creating: EOF"), "creating: EOF");
        assert_eq!(cause("EOF"), "EOF");
    }

    #[test]
    fn each_kind_and_runtime_is_there_once_with_its_version_or_the_reason() {
        let begun = Instant::now();
        let found = survey();
        println!("{} ms", begun.elapsed().as_millis());
        for one in &found {
            println!("{one:?}");
        }
        let kinds: Vec<_> = found.iter().map(|one| (one.kind, one.runtime)).collect();
        let mut expected = vec![("host", None)];
        expected.extend(Runtime::ALL.map(|runtime| ("container", Some(runtime))));
        expected.extend([("gvisor", None), ("vm", None), ("ssh", None), ("exec", None)]);
        assert_eq!(kinds, expected);
        for one in &found {
            let said = one.found.as_ref().unwrap_or_else(|why| why);
            assert!(!said.is_empty() && !said.contains('\n'), "{one:?}");
            let program = one.runtime.map(Runtime::program);
            if program.is_some_and(|program| commands::find(program).is_none()) {
                assert!(said.starts_with("not installed (Debian package "), "{one:?}");
            }
        }
    }
}
