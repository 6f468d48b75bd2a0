use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tollgate_os::programs;

use super::*;

/// The uploaded program: it prints its working directory, its argument, and its number of links.
const PROGRAM: &str = "#!/bin/sh\npwd -P; echo \"$1\"; stat -L -c %h /proc/self/fd/4\n";

/// A test's own directory with its own programs, a working directory, and one for temporary files.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let all = Self(tempfile::tempdir().unwrap());
        for name in ["bin", "work", "temporary", "home"] {
            fs::create_dir(all.path(name)).unwrap();
        }
        all
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap().join(name)
    }

    /// Adds a program that is found first.
    fn program(&self, name: &str, script: &str) {
        let mut file = File::create(self.path("bin").join(name)).unwrap();
        writeln!(file, "#!/bin/sh\n{script}").unwrap();
        file.set_permissions(Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the script in this shell, as a user at home there would, and checks that nothing is left.
    fn run(&self, shell: &[&str]) -> Output {
        let name = name().unwrap();
        let ended = self.run_as(&name, shell);
        for place in [self.path("temporary"), self.path("home"), "/var/tmp".into(), "/dev/shm".into()] {
            assert!(!place.join(&name).exists(), "{} is left", place.display());
        }
        ended
    }

    fn run_as(&self, name: &str, shell: &[&str]) -> Output {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new(programs::find(shell[0]).unwrap());
        command.args(&shell[1..]).args(["-c", &script(name, PROGRAM.len() as u64)]);
        command.env("PATH", path).env("TMPDIR", self.path("temporary")).env("HOME", self.path("home"));
        command.current_dir(self.path("work")).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A script that takes no program does not read one.
        let _ = child.stdin.take().unwrap().write_all(PROGRAM.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn expect_run(&self, shell: &[&str]) {
        let ended = self.run(shell);
        let said = String::from_utf8(ended.stdout).unwrap();
        let expected = format!("{}\nagent\n0\n", self.path("work").display());
        assert_eq!(said, expected, "{shell:?}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}

fn changed(directory: &Path) -> (i64, i64) {
    let metadata = fs::metadata(directory).unwrap();
    (metadata.mtime(), metadata.mtime_nsec())
}

#[test]
fn each_shell_takes_the_program_and_leaves_no_name() {
    for shell in [&["sh"][..], &["dash"], &["bash"], &["busybox", "sh"], &["mksh"]] {
        if programs::find(shell[0]).is_none() {
            println!("skipped: there is no {}", shell[0]);
            continue;
        }
        let machine = Machine::new();
        let before = changed(&machine.path("temporary"));
        machine.expect_run(shell);
        assert_ne!(changed(&machine.path("temporary")), before, "{shell:?} used another one");
    }
}

#[test]
fn a_directory_that_another_user_could_exchange_is_passed_by() {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped in part: needs root (to give a directory to another user)");
    }
    for (mode, owner, is_used) in [
        (0o1777, None, true),
        (0o777, None, false),
        (0o775, None, false),
        (0o755, Some(54_321), false),
        (0o1777, Some(54_321), false),
    ] {
        if owner.is_some() && !is_root {
            continue;
        }
        let machine = Machine::new();
        let temporary = machine.path("temporary");
        fs::set_permissions(&temporary, Permissions::from_mode(mode)).unwrap();
        chown(&temporary, owner, None).unwrap();
        let before = changed(&temporary);
        machine.expect_run(&["sh"]);
        assert_eq!(changed(&temporary) != before, is_used, "{mode:o} of {owner:?}");
    }
}

/// The owner of a directory above can always be faster than the script's checks.
#[test]
fn what_stands_in_for_the_directory_that_was_made_is_not_executed() {
    let exchanges = [
        // A stranger's directory with a program of that name.
        "mkdir $last; printf '#!/bin/sh\\necho stranger\\n' >$last/f; chmod 755 $last $last/f",
        // A symbolic link to a directory of the user's own, which is not empty.
        "ln -s $0.kept $last",
        // Nothing.
        ":",
    ];
    for exchange in exchanges {
        let machine = Machine::new();
        let mkdir = programs::find("mkdir").unwrap();
        let kept = machine.path("bin").join("mkdir.kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("f"), "precious").unwrap();
        fs::set_permissions(&kept, Permissions::from_mode(0o700)).unwrap();
        machine.program(
            "mkdir",
            &format!(
                "PATH=/usr/bin:/bin; {} \"$@\" || exit; for last; do :; done; case $last in */temporary/*) \
                 mv $last $last.aside; {exchange};; esac",
                mkdir.display()
            ),
        );
        // The files that strangers put there stay.
        let ended = machine.run_as(&name().unwrap(), &["sh"]);
        let said = String::from_utf8(ended.stdout).unwrap();
        assert!(said.starts_with(&format!("{}\nagent\n", machine.path("work").display())), "{said}");
        assert_eq!(fs::read_to_string(kept.join("f")).unwrap(), "precious", "{exchange}");
    }
}

#[test]
fn where_no_program_can_be_executed_the_reason_is_said() {
    let machine = Machine::new();
    machine.program("chmod", "exit 1");
    let ended = machine.run(&["sh"]);
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(said.starts_with("no directory there allows a program"), "{said}");
}
