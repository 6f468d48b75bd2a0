//! The machine of figure 11, modelled a second time for SPIN (`figure_11.pml`): SPIN's search must reach exactly as many
//! states and find the same harms. Skipped without SPIN or a C compiler.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tollgate_schedules::subject::Wish;
use tollgate_schedules::{Harm, Limits, mips};

/// A subject, its setting, and the equivalent options for SPIN.
const MACHINES: &[(&str, u8, u8, &[&str])] = &[
    ("figure-11", 1, 1, &["-DN=1", "-DR=1"]),
    ("figure-11", 2, 1, &["-DN=2", "-DR=1"]),
    ("figure-11", 2, 3, &["-DN=2", "-DR=3"]),
    ("figure-11", 3, 1, &["-DN=3", "-DR=1"]),
    ("figure-11-k1-not-set", 2, 1, &["-DN=2", "-DR=1", "-DK1=0"]),
    ("figure-11-no-handler", 2, 1, &["-DN=2", "-DR=1", "-DHANDLER=0"]),
    ("figure-11-handler-resumes-at-store", 2, 1, &["-DN=2", "-DR=1", "-DHANDLER=2"]),
];

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn spin_comes_into_the_same_states() {
    for tool in [("spin", "-V"), ("cc", "--version")] {
        match Command::new(tool.0).arg(tool.1).output() {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!("skipped: there is no {} here", tool.0);
                return;
            }
            Err(error) => panic!("{}: {error}", tool.0),
        }
    }
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/figure_11.pml");
    for &(name, processes, rounds, defines) in MACHINES {
        let subject = mips::subjects().iter().find(|subject| subject.name() == name).unwrap();
        let wish = Wish { processes: Some(processes), rounds: Some(rounds), ..Wish::default() };
        let checked = subject.check(subject.setting(wish).unwrap(), Limits::default());
        let pan = compile(&model, &format!("{name}-{processes}-{rounds}"), defines);
        // First every state, then the harms.
        assert_eq!(number(&search(&pan, &["-A"]), "states, stored"), checked.states, "{name} {defines:?}");
        let wrong = number(&search(&pan, &[]), "errors:") > 0;
        // SPIN does not check whether every process finishes.
        let never = [Harm::Exclusion, Harm::Crash, Harm::LostLock].map(|harm| checked.never(harm));
        assert_eq!(wrong, never.contains(&false), "{name} {defines:?}");
    }
}

/// Compiles the verifier that SPIN generates, in a directory of its own.
fn compile(model: &Path, name: &str, defines: &[&str]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("spin-{name}"));
    std::fs::create_dir_all(&directory).unwrap();
    run(Command::new("spin").args(defines).arg("-a").arg(model).current_dir(&directory));
    run(Command::new("cc")
        .args(["-w", "-O1", "-DSAFETY", "-DNOREDUCE", "-o", "pan", "pan.c"])
        .current_dir(&directory));
    directory.join("pan")
}

fn search(pan: &Path, options: &[&str]) -> String {
    let directory = pan.parent().unwrap();
    let output = run(Command::new(pan).args(options).args(["-E", "-m1000000"]).current_dir(directory));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{output:?}");
    output
}

/// Returns the number before or after some words.
fn number(text: &str, words: &str) -> usize {
    let (before, behind) = text.split_once(words).unwrap_or_else(|| panic!("no {words} in\n{text}"));
    let number = if words.ends_with(':') {
        behind.split_whitespace().next()
    } else {
        before.split_whitespace().last()
    };
    number.unwrap().parse().unwrap()
}
