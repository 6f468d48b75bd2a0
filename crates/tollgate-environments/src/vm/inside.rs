//! Reports of an agent in a guest about the disk and the host's programs that the guest was given. Elsewhere there are none.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tollgate_model::Fact;

use super::layout::{DISK, MARK, SHARES, WORK};
use crate::commands;

/// Programs that workloads run, and that print their versions.
const PROGRAMS: [&str; 4] = ["git", "make", "cc", "ctags"];
/// Time limit for each; a translated guest is slow.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns where the guest's disk is mounted, if this is a guest that has one.
pub fn disk() -> Option<PathBuf> {
    has(DISK).then(|| PathBuf::from(WORK))
}

/// Returns the versions of the host's programs, if this is a guest that has them.
pub fn programs() -> Vec<(String, Fact)> {
    let all = has(SHARES).then_some(PROGRAMS);
    all.into_iter().flatten().map(|name| (format!("guest.{name}"), version(name))).collect()
}

fn has(file: &str) -> bool {
    [MARK, file].iter().all(|file| Path::new("/").join(file).is_file())
}

fn version(name: &str) -> Fact {
    let Some(program) = commands::find(name) else {
        return Fact::absent(format!("there is no {name} in the directories that the host shares"));
    };
    let began = Instant::now();
    match commands::run(&program, &["--version"], &|| began.elapsed() > PATIENCE) {
        Ok(version) => Fact::known(version, format!("{} --version, in the guest", program.display())),
        Err(error) => Fact::unreadable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_of_a_guest_there_is_nothing_to_say() {
        assert_eq!((disk(), programs()), (None, Vec::new()));
    }

    #[test]
    fn a_program_says_its_version_or_why_not() {
        let of_shell = version("tar");
        assert!(of_shell.value().is_some() || commands::find("tar").is_none(), "{of_shell:?}");
        assert!(matches!(version("tollgate-no-such-program"), Fact::Unknown { .. }));
    }
}
