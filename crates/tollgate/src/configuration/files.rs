//! The files that are looked for, and which of them are read.
//!
//! A file that another user can have written is not read: this is reported, and the program goes on.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tollgate_os::paths::{PathError, read_regular};
use tollgate_os::trust::{TrustError, read_own};

use crate::failure::{Failure, plainly};
use crate::say;

const PROJECT: &str = "tollgate.toml";
const USER: &str = "tollgate/config.toml";
/// A file with every option of every verb is a tenth of this.
const MOST_BYTES: u64 = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The command line names it.
    Given,
    /// It lies in the current directory or above it.
    Found,
    User,
}

#[derive(Debug)]
pub struct File {
    pub path: PathBuf,
    pub origin: Origin,
    pub entries: usize,
    /// Why it is not read: it is missing, or another user can have written it.
    pub why: Option<String>,
}

/// The files with their text, the one with precedence first.
///
/// # Errors
/// A file of the user that cannot be read.
pub fn all(named: Option<&Path>) -> Result<Vec<(File, Option<String>)>, Failure> {
    if let Some(path) = named {
        let fault =
            |why: &dyn std::fmt::Display| Failure::input(format!("--config {}: {why}", path.display()));
        let bytes = read_regular(path, MOST_BYTES).map_err(|why| match why {
            PathError::Io(why) => fault(&plainly(&why)),
            why => fault(&why),
        })?;
        return Ok(vec![(file(path.to_owned(), Origin::Given, None), Some(text(path, bytes)?))]);
    }
    let project = project().map(|path| (path, Origin::Found));
    let user = user().map(|path| (path, Origin::User));
    project.into_iter().chain(user).map(|(path, origin)| found(path, origin)).collect()
}

fn file(path: PathBuf, origin: Origin, why: Option<String>) -> File {
    File { path, origin, entries: 0, why }
}

fn found(path: PathBuf, origin: Origin) -> Result<(File, Option<String>), Failure> {
    if !is_there(&path) {
        return Ok((file(path, origin, Some("not there".to_owned())), None));
    }
    match read_own(&path, MOST_BYTES) {
        Ok(bytes) => {
            let text = text(&path, bytes)?;
            Ok((file(path, origin, None), Some(text)))
        }
        Err(TrustError::Io(_, why)) => {
            Err(Failure::input(format!("{} cannot be read: {}", path.display(), plainly(&why))))
        }
        Err(TrustError::Link(why @ (PathError::TooLarge(..) | PathError::NotRegular(..)))) => {
            Err(Failure::input(why.to_string()))
        }
        Err(why) => {
            say::say(&format!("{} is not read: {why}", path.display()));
            Ok((file(path, origin, Some(why.to_string())), None))
        }
    }
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|_| Failure::input(format!("{} is not UTF-8", path.display())))
}

/// A dangling link exists; a directory that may not be searched has nothing.
fn is_there(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(why) => !matches!(
            why.kind(),
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied
        ),
    }
}

/// The nearest file of a project: in the current directory, or above it up to the root of git's work tree; outside of a work tree
/// only in the current directory. `None` if the current directory is gone.
fn project() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let root = here.ancestors().find(|above| is_there(&above.join(".git")));
    let end = root.unwrap_or(&here);
    let below = here.ancestors().take_while(|above| above.starts_with(end));
    let mut files = below.map(|above| above.join(PROJECT));
    let nearest = files.find(|path| is_there(path));
    Some(nearest.unwrap_or_else(|| here.join(PROJECT)))
}

/// The user's file by the XDG Base Directory specification, which ignores a relative XDG_CONFIG_HOME.
fn user() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".config"));
    absolute("XDG_CONFIG_HOME").or_else(home).map(|directory| directory.join(USER))
}
