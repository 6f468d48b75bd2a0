//! Finds programs of this machine by name, as a shell does.
//!
//! execvp(3) treats an empty or relative part of PATH as a directory below the current one, which another user may own.
//! Such parts are skipped here.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Directories of system and other programs, for those that PATH omits.
const USUAL: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

/// Finds the file of a program in the absolute directories of PATH, and then in the usual ones.
pub fn find(program: impl AsRef<Path>) -> Option<PathBuf> {
    find_in(program, &path())
}

/// Like [`find`], with `path` instead of PATH.
pub fn find_in(program: impl AsRef<Path>, path: &OsStr) -> Option<PathBuf> {
    let directories = std::env::split_paths(path).chain(std::env::split_paths(USUAL));
    let mut files = directories.filter(|at| at.is_absolute()).map(|at| at.join(&program));
    files.find(|file| {
        file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    })
}

/// Finds the file of a program that is named as in a shell: by a path, which has a slash, or by a name for [`find`].
pub fn named(program: &OsStr) -> Option<PathBuf> {
    named_in(program, &path())
}

/// Returns PATH without its empty and relative parts, for a program that starts others, as cc(1) starts as(1) and ld(1).
pub fn search_path() -> OsString {
    absolute(&path())
}

fn absolute(path: &OsStr) -> OsString {
    let directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    match std::env::join_paths(directories) {
        Ok(path) if !path.is_empty() => path,
        _ => USUAL.into(),
    }
}

fn named_in(program: &OsStr, path: &OsStr) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') { Some(program.into()) } else { find_in(program, path) }
}

fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn program(mode: u32) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join(NAME);
        fs::write(&file, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        place
    }

    const NAME: &str = "tollgate-test-program";
    /// Set if this process runs with the other program's directory as its current directory.
    const INSIDE: &str = "TOLLGATE_TEST_INSIDE";

    #[test]
    fn a_name_is_looked_up_and_a_path_is_taken() {
        let place = program(0o755);
        assert_eq!(find_in(NAME, place.path().as_os_str()), Some(place.path().join(NAME)));
        assert_eq!(find_in(NAME, program(0o644).path().as_os_str()), None, "it cannot be executed");
        assert_eq!(named_in("a/b".as_ref(), "".as_ref()), Some(PathBuf::from("a/b")));
        assert_eq!(named_in(NAME.as_ref(), place.path().as_os_str()), Some(place.path().join(NAME)));
        assert!(find("sh").is_some_and(|shell| shell.is_absolute()));
    }

    #[test]
    fn others_are_looked_for_in_absolute_directories() {
        let left = |path: &str| absolute(path.as_ref()).into_string().unwrap();
        assert_eq!(left("/a:/b"), "/a:/b");
        assert_eq!(left(":/a:.:b/c::/b:"), "/a:/b");
        for nothing in ["", ".", ":", "bin:.."] {
            assert_eq!(left(nothing), USUAL);
        }
    }

    #[test]
    fn no_part_of_path_is_the_current_directory() {
        if std::env::var_os(INSIDE).is_some() {
            assert!(Path::new(NAME).exists());
            for path in ["", ":", ".", ":/nowhere:", "./"] {
                assert_eq!(named_in(NAME.as_ref(), path.as_ref()), None, "{path:?}");
            }
            return;
        }
        let place = program(0o755);
        let mut inside = std::process::Command::new(std::env::current_exe().unwrap());
        inside.args(["--exact", "programs::tests::no_part_of_path_is_the_current_directory"]);
        let ended = inside.env(INSIDE, "1").current_dir(place.path()).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    }
}
