//! The chosen configurations: files, captured machines, standard input, or the running kernel's.

use std::path::{Path, PathBuf};

use tollgate_inspect::{Machine, RunningConfig, Tried, running_config};
use tollgate_kconfig::output::Chosen;
use tollgate_model::Unknown;

use crate::failure::Failure;

/// The most that are compared; one letter and one column each.
const MOST: usize = 8;
const OWN: &str = "/proc/config.gz";

/// # Errors
/// The first of them that is not a configuration, with the reason.
pub fn chosen(named: &[PathBuf]) -> Result<Vec<Chosen>, Failure> {
    match named {
        [] => Ok(vec![of_machine(&Machine::here(), None)?]),
        _ if named.len() > MOST => {
            let sentence =
                format!("{} configurations were named; at most {MOST} can be compared", named.len());
            Err(Failure::input(sentence))
        }
        named if named.iter().filter(|path| path.as_os_str() == "-").count() > 1 => {
            Err(Failure::input("standard input was named twice; it can be read once"))
        }
        named => named.iter().map(|path| choose(path)).collect(),
    }
}

fn choose(path: &Path) -> Result<Chosen, Failure> {
    if path.as_os_str() == "-" {
        let reading = tollgate_kconfig::read(std::io::stdin().lock());
        let reading = reading.map_err(|error| Failure::input(format!("standard input {error}")))?;
        return Ok(Chosen { path: "standard input".to_owned(), reading, command_line: None, running: false });
    }
    if path.is_dir() {
        let machine = if path == Path::new("/") {
            Machine::here()
        } else {
            // Only the recorded answers of the tree's calls are used.
            Machine::open(path).unwrap_or_else(|_| Machine::captured(path))
        };
        return of_machine(&machine, Some(path));
    }
    if path == Path::new(OWN)
        && let Ok(running) = running_config(&Machine::here())
        && running.path == OWN
    {
        return Ok(of_running(running, None));
    }
    let name = path.display().to_string();
    let reading = tollgate_kconfig::open(path).map_err(|error| Failure::input(format!("{name} {error}")))?;
    Ok(Chosen { path: name, reading, command_line: None, running: false })
}

fn of_machine(machine: &Machine, root: Option<&Path>) -> Result<Chosen, Failure> {
    match running_config(machine) {
        Ok(running) => Ok(of_running(running, root)),
        Err(tried) => Err(Failure::input(not_found(&tried, root))),
    }
}

fn of_running(running: RunningConfig, root: Option<&Path>) -> Chosen {
    let path = match root {
        Some(root) => root.join(running.path.trim_start_matches('/')).display().to_string(),
        None => running.path,
    };
    Chosen { path, reading: running.reading, command_line: running.command_line, running: true }
}

fn not_found(tried: &[Tried], root: Option<&Path>) -> String {
    let whose = match root {
        Some(root) => format!("the machine in {}", root.display()),
        None => "the running kernel".to_owned(),
    };
    let mut absent = Vec::new();
    let mut answers = Vec::new();
    for Tried { path, why } in tried {
        match why {
            // If the release is not known, the path does not name a file.
            Unknown::Absent(_) if !path.contains("RELEASE") => absent.push(path.as_str()),
            Unknown::Absent(why) => answers.push(format!("{path}: {why}")),
            Unknown::Refused(why) => answers.push(format!("refused: {why}")),
            Unknown::Unreadable(why) => answers.push(why.clone()),
        }
    }
    if !absent.is_empty() {
        answers.push(format!("absent: {}", absent.join(", ")));
    }
    format!("no configuration of {whose} was found; name a file instead; {}", answers.join("; "))
}
