//! A state of the machine that two commands of the user set and take back, which a session alternates.

use std::env;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tollgate_engine::interrupt;
use tollgate_model::run::Switched;
use tollgate_model::text::{commands_a_reader, excerpt, plainly, quoted};

use crate::cleanup::{Cleanup, Promise};
use crate::error::{EnvironmentError, unusable};
use crate::prepared::Undo;
use crate::undo::shell::execute;

/// Longest command in bytes.
const MOST: usize = 1 << 12;

/// A state that is off at first. Both commands are executed by sh(1), in the directory of this process and with its rights.
#[derive(Debug)]
pub struct Switch {
    switched: Switched,
    directory: PathBuf,
    is_on: bool,
    /// How long the two commands took when they were tried.
    took: Duration,
    promise: Option<(Promise, Cleanup)>,
}

impl Switch {
    /// With the name by which outputs call it. Nothing is executed.
    ///
    /// # Errors
    /// A sentence, if a command is empty or not one line, or the working directory is gone.
    pub fn new(switched: Switched) -> Result<Self, EnvironmentError> {
        for text in [&switched.name, &switched.on, &switched.off] {
            if text.trim().is_empty() || text.len() >= MOST || text.contains(commands_a_reader) {
                return Err(unusable!(
                    "ON, OFF and NAME are each one line of text, not {}",
                    quoted(&excerpt(text))
                ));
            }
        }
        let directory = env::current_dir()
            .map_err(|error| unusable!("the working directory is not known: {}", plainly(&error)))?;
        Ok(Self { switched, directory, is_on: false, took: Duration::ZERO, promise: None })
    }

    /// Describes what is about to be done, for the user to read first.
    pub fn sentence(&self) -> String {
        let Switched { name, on, off } = &self.switched;
        format!(
            "{}: sh executes `{}` before turns with it, `{}` before turns without it, and `{}` at the end, however the session ends",
            excerpt(name),
            excerpt(on),
            excerpt(off),
            excerpt(off)
        )
    }

    /// Its name and commands, for a run's document.
    pub fn switched(&self) -> &Switched {
        &self.switched
    }

    /// How long it takes to switch it on and off again, measured by [`Self::promise`].
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Whether it is on, or may be after a command failed.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Has the cleanup process switch it off later, then switches it on and off once.
    ///
    /// # Errors
    /// A sentence: a command fails or does not end.
    pub fn promise(&mut self, cleanup: &Cleanup) -> Result<(), EnvironmentError> {
        let off = Undo::Shell { command: self.switched.off.clone(), directory: self.directory.clone() };
        let promise = cleanup.promise(&[off]);
        let promise = promise.map_err(|error| unusable!("the cleanup process: {}", plainly(&error)))?;
        self.promise = Some((promise, cleanup.clone()));
        let began = Instant::now();
        let tried = self.switch(true).and_then(|()| self.switch(false));
        self.took = began.elapsed();
        tried
    }

    /// Executes the command of a state, unless the state is that already.
    ///
    /// # Errors
    /// A sentence. It also fails before [`Self::promise`], and if the cleanup process was killed.
    pub fn switch(&mut self, on: bool) -> Result<(), EnvironmentError> {
        if self.is_on == on {
            return Ok(());
        }
        let Switched { name, on: set, off } = &self.switched;
        let guarded = self.promise.as_ref().filter(|(promise, _)| promise.is_guarded());
        let Some((_, cleanup)) = guarded else {
            return Err(unusable!(
                "{} is not switched: the cleanup process that would execute `{}` is missing",
                excerpt(name),
                excerpt(off)
            ));
        };
        // A command that fails, or is ended, may have done a part.
        self.is_on = true;
        let mut running = None;
        // If this process is killed, the cleanup process ends what still runs before it executes OFF.
        // A request to stop does not interrupt OFF, because the state must not stay on.
        let stop = || on && interrupt::requested().is_some();
        let executed = execute(if on { set } else { off }, &self.directory, &stop, &mut |group| {
            running = cleanup.promise(group).ok();
        });
        if let Some(running) = running {
            running.forget();
        }
        executed?;
        self.is_on = on;
        Ok(())
    }

    /// Switches it off for good.
    ///
    /// # Errors
    /// A sentence with the command, which has to be executed by hand.
    pub fn end(mut self) -> Result<(), EnvironmentError> {
        let off = excerpt(&self.switched.off).into_owned();
        let ended = self.promise.take().map_or(Ok(()), |(promise, _)| promise.keep());
        ended.map_err(|error| unusable!("{error}; execute `{off}` to switch it off"))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use tollgate_os::process;

    use super::*;

    const LOOK: Duration = Duration::from_millis(1);

    fn switch(place: &std::path::Path, on: &str, off: &str) -> Switch {
        let [on, off] = [on, off].map(|text| text.replace("FILE", &place.join("said").display().to_string()));
        Switch::new(Switched { name: "it".to_owned(), on, off }).unwrap()
    }

    fn said(place: &std::path::Path) -> String {
        fs::read_to_string(place.join("said")).unwrap_or_default()
    }

    #[test]
    fn it_is_tried_once_and_switched_when_the_state_is_another() {
        let (place, cleanup) = (tempfile::tempdir().unwrap(), Cleanup::begin().unwrap());
        let place = place.path();
        let mut switch = switch(place, "echo on >> FILE", "echo off >> FILE");
        assert!(switch.switch(true).unwrap_err().to_string().contains("is not switched"));
        switch.promise(&cleanup).unwrap();
        assert_eq!(said(place), "on\noff\n");
        for on in [false, true, true, false, true] {
            switch.switch(on).unwrap();
        }
        assert_eq!(said(place), "on\noff\non\noff\non\n");
        switch.end().unwrap();
        assert_eq!(said(place), "on\noff\non\noff\non\noff\n");
        drop(cleanup);
        assert_eq!(said(place), "on\noff\non\noff\non\noff\n", "the cleanup process has nothing left to do");
    }

    #[test]
    fn a_command_that_fails_is_quoted_and_what_it_may_have_done_is_taken_back() {
        let (place, cleanup) = (tempfile::tempdir().unwrap(), Cleanup::begin().unwrap());
        let place = place.path();
        let mut failing =
            switch(place, "echo on >> FILE; echo 'no such\u{e9}' >&2; exit 4", "echo off >> FILE");
        let error = failing.promise(&cleanup).unwrap_err().to_string();
        assert!(error.contains("it failed: exit status: 4: no such") && error.contains("echo on"), "{error}");
        drop(failing);
        assert_eq!(said(place), "on\noff\n");
        let mut stuck = switch(place, "true", "exit 3");
        assert!(stuck.promise(&cleanup).unwrap_err().to_string().contains("`exit 3`: it failed"));
        let error = stuck.end().unwrap_err().to_string();
        assert!(error.ends_with("execute `exit 3` to switch it off"), "{error}");
        for wrong in ["", " ", "a\nb"] {
            let switched = Switched { name: "it".to_owned(), on: wrong.to_owned(), off: "true".to_owned() };
            Switch::new(switched).unwrap_err();
        }
    }

    #[test]
    fn a_session_that_is_killed_leaves_it_off_even_while_it_is_switched() {
        // Each attempt is killed at another step: the states are written with steps between them.
        for lines in 1..8 {
            let place = tempfile::tempdir().unwrap();
            let step = "for n in 1 2 3; do echo STATE >> FILE; done";
            let [on, off] = ["on", "off"].map(|state| step.replace("STATE", state));
            let mut session = process::fork_bound(|| {
                let Ok(cleanup) = Cleanup::begin() else { return 1 };
                let mut switch = switch(place.path(), &on, &off);
                if switch.promise(&cleanup).is_err() {
                    return 2;
                }
                loop {
                    if switch.switch(true).and_then(|()| switch.switch(false)).is_err() {
                        return 3;
                    }
                }
            })
            .unwrap();
            while said(place.path()).lines().count() < lines {
                assert_eq!(session.try_wait().unwrap(), None);
                thread::sleep(LOOK);
            }
            session.end().unwrap();
            let began = Instant::now();
            let is_off = |text: &str| text.ends_with("off\noff\noff\n");
            let mut last = String::new();
            loop {
                let now = said(place.path());
                // Nothing is written any more, and the last command was whole.
                if is_off(&now) && now == last {
                    break;
                }
                last = now;
                assert!(began.elapsed() < Duration::from_secs(120), "{last}");
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
}
