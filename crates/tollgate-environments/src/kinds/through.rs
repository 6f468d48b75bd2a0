//! A kind for tests, `through[:program=FILE,says=WORD]`: runs the agent through a program such as env(1), which sets
//! variables and executes its arguments. This file and a line in a registry are all that a kind needs.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use tollgate_engine::session::Link;

use super::trial::Candidate;
use super::{ALL, Description, Entry, EnvironmentKind, KINDS, Kinds, Stop};
use crate::cleanup::Cleanup;
use crate::commands;
use crate::environment::Environment;
use crate::error::{EnvironmentError, unusable};
use crate::making::Making;
use crate::pairs::{Key, pairs};
use crate::prepared::{Prepared, Undo};
use crate::ready::{Command, Ready};
use crate::shell::SHELL;

const KEYS: &[Key] = &[Key::own("program", "FILE"), Key::own("says", "WORD")];

static DESCRIPTION: Description = Description { starts: 3, ..Description::new("through", KEYS) };

#[derive(Debug)]
struct Through {
    program: String,
    says: String,
}

impl EnvironmentKind for Through {
    fn description() -> &'static Description {
        &DESCRIPTION
    }

    fn read(rest: Option<&str>) -> Result<Self, String> {
        let mut made = Self { program: "env".to_owned(), says: "hello".to_owned() };
        for (key, value) in pairs(DESCRIPTION.name, KEYS, rest)? {
            let place = if key == "says" { &mut made.says } else { &mut made.program };
            value.clone_into(place);
        }
        Ok(made)
    }

    fn candidates() -> Vec<Candidate> {
        vec![Candidate::named(DESCRIPTION.form(), |_| {
            let program = commands::find("env").ok_or_else(|| unusable!("there is no env"))?;
            Ok(program.display().to_string())
        })]
    }

    fn settings(&self) -> Vec<String> {
        vec![format!("program={}", self.program), format!("says={}", self.says)]
    }

    fn prepare(&self, making: &mut Making, _: Stop<'_>) -> Result<Box<dyn Ready>, EnvironmentError> {
        making.make_own_directory()?;
        let own = making.paths()?.private().to_owned();
        let undo = vec![Undo::Program(vec!["touch".into(), ended(&own).into()])];
        making.promise(&undo)?;
        let variable = format!("OWN={}", own.display());
        let script = format!("echo {} $OWN; exec cat", self.says);
        let command = [self.program.as_str(), &variable, "/bin/sh", "-c", &script];
        let command = command.map(Into::into).to_vec();
        Ok(Box::new(Command { prepared: Prepared { command, undo, ..Prepared::default() }, is_bound: false }))
    }

    fn shell(&self, _: Option<&str>, _: &Making) -> Result<Prepared, EnvironmentError> {
        let command = [&[self.program.as_str()], SHELL.as_slice()].concat();
        Ok(Prepared { command: command.into_iter().map(Into::into).collect(), ..Prepared::default() })
    }
}

/// The file whose existence shows that such an environment was undone.
fn ended(own: &Path) -> PathBuf {
    own.with_extension("ended")
}

fn said(link: Link) -> String {
    let mut line = String::new();
    BufReader::new(File::from(link.from)).read_line(&mut line).unwrap();
    line
}

#[test]
fn a_kind_is_a_file_and_a_line_of_the_registry() {
    let entries = [KINDS, &[Entry::for_kind::<Through>()]].concat();
    let kinds = Kinds(&entries);
    assert_eq!(kinds.forms("or"), ALL.forms(",").replace(" ,", ",") + " or through");
    let typed = ("through".to_owned(), ["program=", "says="].map(str::to_owned).to_vec());
    assert!(kinds.typed().contains(&typed));
    let surveyed = Kinds(&entries[KINDS.len()..]).survey();
    assert_eq!(
        (surveyed.len(), &*surveyed[0].environment, &*surveyed[0].names[0]),
        (1, "through", "through")
    );
    let refused = |given: &str| kinds.read(given).unwrap_err().to_string();
    assert_eq!(
        refused("through:prgram=x"),
        "through:prgram=x: through has no key prgram (did you mean program?); its keys are program and says"
    );
    assert!(refused("thruogh").contains("(did you mean through?)"));
    let spec = kinds.read("through:program=/usr/bin/env").unwrap();
    assert_eq!(spec.to_string(), "through:program=/usr/bin/env,says=hello");
    if !Path::new("/usr/bin/env").exists() {
        return println!("skipped: there is no /usr/bin/env");
    }
    // It is prepared, started twice and as a shell, and ended.
    let cleanup = Cleanup::begin().unwrap();
    let mut environment = Environment::prepare(&spec, &cleanup, &|| false).unwrap();
    assert_eq!((environment.starts(), environment.is_paired()), (3, true));
    let first = said(environment.start().unwrap());
    let own = PathBuf::from(first.strip_prefix("hello ").unwrap().trim_end());
    let variable = commands::quoted(&format!("OWN={}", own.display()));
    let command = format!("command: /usr/bin/env {variable} /bin/sh -c 'echo hello $OWN; exec cat'");
    assert_eq!(environment.details().unwrap(), [command]);
    assert!(own.is_dir() && !ended(&own).exists());
    assert_eq!(said(environment.start().unwrap()), first);
    assert_eq!(said(environment.start_shell(&mut || {}).unwrap()), "\n");
    // The leftovers of its starts are gone.
    fs::remove_file(ended(&own)).unwrap();
    drop(environment);
    assert!(ended(&own).exists() && !own.exists());
    fs::remove_file(ended(&own)).unwrap();
}
