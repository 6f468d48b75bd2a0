//! `exec:PREFIX`: the environment that a command sets up before it runs a program.

use std::ffi::OsString;
use std::path::Path;

use super::trial::Candidate;
use super::{Description, EnvironmentKind, Stop};
use crate::error::EnvironmentError;
use crate::making::Making;
use crate::prepared::Prepared;
use crate::reach::{Reach, Reached};
use crate::ready::Ready;

static DESCRIPTION: Description = Description { operand: Some("PREFIX"), ..Description::new("exec", &[]) };

/// Programs that run their arguments on another machine.
const AFAR: [&str; 4] = ["ssh", "kubectl", "oc", "mosh"];

/// The prefix as it was given, and split into at least one word.
#[derive(Debug)]
pub(super) struct Exec {
    prefix: String,
    words: Vec<String>,
}

impl EnvironmentKind for Exec {
    fn description() -> &'static Description {
        &DESCRIPTION
    }

    fn read(rest: Option<&str>) -> Result<Self, String> {
        let prefix = rest.unwrap_or_default();
        let words = tollgate_os::words::split(prefix).map_err(|why| why.to_string())?;
        if words.first().is_none_or(String::is_empty) {
            return Err(
                "exec: is followed by a command that runs a program, such as exec:'nice -n 5'".to_owned()
            );
        }
        Ok(Self { prefix: prefix.to_owned(), words })
    }

    fn candidates() -> Vec<Candidate> {
        let any = "any command that runs a program and passes its standard input and output";
        vec![Candidate::named(DESCRIPTION.form(), move |_| Ok(any.to_owned())).with_names(Vec::new())]
    }

    fn settings(&self) -> Vec<String> {
        vec![self.prefix.clone()]
    }

    fn prepare(&self, _: &mut Making, _: Stop<'_>) -> Result<Box<dyn Ready>, EnvironmentError> {
        let name = self.words.first().map(Path::new).and_then(Path::file_name);
        let is_afar = name.is_some_and(|name| AFAR.iter().any(|afar| name == *afar));
        Ok(Box::new(Reached::new(self.reach(), !is_afar)?))
    }

    fn shell(&self, _: Option<&str>, _: &Making) -> Result<Prepared, EnvironmentError> {
        Ok(self.reach().shell())
    }

    fn hidden(&self, _runtime: Option<&str>) -> Option<&'static str> {
        Some("the prefix may have processes that it did not start")
    }
}

impl Exec {
    fn reach(&self) -> Reach {
        Reach::Prefix(self.words.iter().map(OsString::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_split_into_words() {
        let exec = Exec::read(Some("ssh -p 22 'a b',c")).unwrap();
        assert_eq!(exec.words, ["ssh", "-p", "22", "a b,c"]);
    }
}
