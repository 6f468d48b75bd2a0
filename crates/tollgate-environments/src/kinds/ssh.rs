//! `ssh:HOST`: another machine.

use super::trial::{Candidate, until};
use super::{Description, EnvironmentKind, Stop};
use crate::commands;
use crate::error::{EnvironmentError, unusable};
use crate::making::Making;
use crate::prepared::Prepared;
use crate::reach::{Reach, Reached};
use crate::ready::Ready;

static DESCRIPTION: Description = Description { operand: Some("HOST"), ..Description::new("ssh", &[]) };

/// As ssh(1) takes it: `HOST`, `USER@HOST` or a name of ssh_config(5).
#[derive(Debug)]
pub(super) struct Ssh(String);

impl EnvironmentKind for Ssh {
    fn description() -> &'static Description {
        &DESCRIPTION
    }

    fn read(rest: Option<&str>) -> Result<Self, String> {
        let host = rest.unwrap_or_default();
        // ssh(1) would take a leading hyphen for an option, and host names have no spaces.
        if host.is_empty() || host.starts_with('-') || host.contains(char::is_whitespace) {
            return Err("ssh: is followed by a host as ssh(1) takes it, such as ssh:user@machine".to_owned());
        }
        Ok(Self(host.to_owned()))
    }

    fn candidates() -> Vec<Candidate> {
        vec![Candidate::named(DESCRIPTION.form(), |_| version()).with_names(Vec::new())]
    }

    fn settings(&self) -> Vec<String> {
        vec![self.0.clone()]
    }

    fn prepare(&self, _: &mut Making, _: Stop<'_>) -> Result<Box<dyn Ready>, EnvironmentError> {
        Ok(Box::new(Reached::new(self.reach(), false)?))
    }

    fn shell(&self, _: Option<&str>, _: &Making) -> Result<Prepared, EnvironmentError> {
        Ok(self.reach().shell())
    }

    fn hidden(&self, _runtime: Option<&str>) -> Option<&'static str> {
        Some("its processes are on another machine")
    }
}

impl Ssh {
    fn reach(&self) -> Reach {
        Reach::Host(self.0.clone())
    }
}

fn version() -> Result<String, EnvironmentError> {
    let program =
        commands::find("ssh").ok_or_else(|| unusable!("not installed (Debian package openssh-client)"))?;
    commands::run(&program, &["-V"], &until())
}
