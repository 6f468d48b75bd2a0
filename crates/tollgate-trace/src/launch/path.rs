//! Finds the file of a command, as execvp(3) and shells do.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{Access, AtFlags, CWD};

use crate::outcome::TraceError;

/// The search path of execvp(3) without PATH: `_CS_PATH` of confstr(3).
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// The interpreter of a script without an interpreter line, as POSIX specifies for execvp(3).
const SHELL: &str = "/bin/sh";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub path: CString,
    pub arguments: Vec<CString>,
    /// Its environment; `None` for that of this process.
    pub environment: Option<Vec<CString>>,
    /// The name as the user gave it, for messages.
    shown: String,
}

impl Program {
    /// Finds a command's file. A name with a slash is a path; any other is searched for in PATH.
    ///
    /// # Errors
    /// [`TraceError::NotFound`], [`TraceError::NotExecutable`], and [`TraceError::Request`] for a command that cannot be started.
    pub fn resolve(command: &[OsString], search: Option<&OsStr>) -> Result<Self, TraceError> {
        let Some(name) = command.first() else {
            return Err(TraceError::Request("no command to trace was given".to_owned()));
        };
        let shown = name.to_string_lossy().into_owned();
        let mut arguments = Vec::with_capacity(command.len());
        for argument in command {
            arguments.push(c_string(argument.as_bytes())?);
        }
        let path = if name.as_bytes().contains(&b'/') {
            executable(Path::new(name)).map_err(|error| refused(&shown, &error))?;
            PathBuf::from(name)
        } else {
            find(name, search.unwrap_or(OsStr::new(DEFAULT_PATH)))
                .map_err(|error| not_in_path(&shown, &error))?
        };
        Ok(Self {
            path: c_string(path.into_os_string().into_vec().as_slice())?,
            arguments,
            environment: None,
            shown,
        })
    }

    /// Adds these variables to the environment of this process.
    ///
    /// # Errors
    /// [`TraceError::Request`] for a variable that contains a NUL.
    pub fn with_variables(mut self, variables: &[(OsString, OsString)]) -> Result<Self, TraceError> {
        if variables.is_empty() {
            return Ok(self);
        }
        let is_replaced = |name: &OsString| variables.iter().any(|(new, _)| new == name);
        let inherited = std::env::vars_os().filter(|(name, _)| !is_replaced(name));
        let all = inherited.chain(variables.iter().cloned());
        let lines = all.map(|(name, value)| c_string(&[name.as_bytes(), b"=", value.as_bytes()].concat()));
        self.environment = Some(lines.collect::<Result<_, _>>()?);
        Ok(self)
    }

    /// Converts to a script for the shell, as execvp(3) does with a file whose format the kernel does not know.
    pub fn as_script(&self) -> Result<Self, TraceError> {
        let mut arguments = vec![c_string(SHELL.as_bytes())?, self.path.clone()];
        arguments.extend(self.arguments.iter().skip(1).cloned());
        let environment = self.environment.clone();
        Ok(Self { path: c_string(SHELL.as_bytes())?, arguments, environment, shown: self.shown.clone() })
    }

    pub fn refused(&self, error: &io::Error) -> TraceError {
        let there = Path::new(OsStr::from_bytes(self.path.as_bytes())).exists();
        match error.raw_os_error() {
            Some(libc::ENOENT) if there => TraceError::NotExecutable(format!(
                "`{}` exists, but the interpreter that it names does not",
                self.shown
            )),
            Some(libc::E2BIG) => TraceError::NotExecutable(format!(
                "`{}` cannot be executed: its arguments and environment exceed the kernel's limit",
                self.shown
            )),
            _ => refused(&self.shown, error),
        }
    }
}

/// Searches a path. Like execvp(3), goes on after a file that may not be executed, and skips unsearchable directories.
fn find(name: &OsStr, search: &OsStr) -> io::Result<PathBuf> {
    let mut denied = None;
    if name.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    for directory in search.as_bytes().split(|byte| *byte == b':') {
        // An empty entry is the current directory. With `.` the result has a slash, so it is not searched for again.
        let directory = if directory.is_empty() { b"." } else { directory };
        let candidate = Path::new(OsStr::from_bytes(directory)).join(name);
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) if fs::metadata(&candidate).is_ok() => {
                denied.get_or_insert(error);
            }
            Err(_) => {}
        }
    }
    Err(denied.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

/// Checks that a path is a regular file that may be executed with the effective rights.
fn executable(path: &Path) -> io::Result<()> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::from_raw_os_error(libc::EACCES));
    }
    match rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS) {
        // Kernels before 5.8 and some sandboxes have no faccessat2(2): then execve(2) finds out.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL) => Ok(()),
        answer => Ok(answer?),
    }
}

fn not_in_path(shown: &str, error: &io::Error) -> TraceError {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return TraceError::NotExecutable(format!(
            "`{shown}` was found in PATH, but may not be executed: it needs execute permission (chmod +x)"
        ));
    }
    TraceError::NotFound(format!("`{shown}` was not found in PATH; a path with a slash is used as it is"))
}

fn refused(shown: &str, error: &io::Error) -> TraceError {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => TraceError::NotFound(format!("there is no file `{shown}`")),
        Some(libc::EACCES) => match fs::metadata(shown) {
            Ok(data) if data.is_dir() => {
                TraceError::NotExecutable(format!("`{shown}` is a directory, not a program"))
            }
            _ => TraceError::NotExecutable(format!(
                "`{shown}` may not be executed: the file needs execute permission (chmod +x), and its file system must allow it"
            )),
        },
        _ => TraceError::NotExecutable(format!(
            "`{shown}` cannot be executed: {}",
            tollgate_model::text::plainly(error)
        )),
    }
}

fn c_string(bytes: &[u8]) -> Result<CString, TraceError> {
    CString::new(bytes).map_err(|_| {
        let text = String::from_utf8_lossy(bytes).replace('\0', "\\0");
        TraceError::Request(format!("the argument `{text}` contains a NUL, which no argument may"))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(directory: &Path, name: &str, mode: u32) -> PathBuf {
        let path = directory.join(name);
        fs::create_dir_all(directory).unwrap();
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn resolve(command: &[&str], search: &str) -> Result<Program, TraceError> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        Program::resolve(&command, Some(OsStr::new(search)))
    }

    #[test]
    fn the_search_goes_on_behind_what_may_not_be_executed_and_remembers_it() {
        let directory = tempfile::tempdir().unwrap();
        let (first, second) = (directory.path().join("first"), directory.path().join("second"));
        file(&first, "tool", 0o644);
        fs::create_dir_all(first.join("folder")).unwrap();
        let both = format!("{}:{}", first.display(), second.display());
        assert!(matches!(resolve(&["tool"], &both), Err(TraceError::NotExecutable(_))));
        let right = file(&second, "tool", 0o755);
        let program = resolve(&["tool", "-x"], &both).unwrap();
        assert_eq!(program.path.as_bytes(), right.as_os_str().as_bytes());
        assert_eq!(program.arguments, [c"tool".to_owned(), c"-x".to_owned()]);
        assert!(matches!(resolve(&["folder"], &both), Err(TraceError::NotExecutable(_))));
        assert!(matches!(resolve(&["nothing"], &both), Err(TraceError::NotFound(_))));
        assert!(matches!(resolve(&[""], &both), Err(TraceError::NotFound(_))));
        assert!(matches!(resolve(&[], &both), Err(TraceError::Request(_))));
        assert!(matches!(resolve(&["a\0b"], &both), Err(TraceError::Request(_))));
    }

    #[test]
    fn a_path_is_not_looked_for() {
        let directory = tempfile::tempdir().unwrap();
        let tool = file(directory.path(), "tool", 0o755);
        let shown = tool.display().to_string();
        assert_eq!(resolve(&[&shown], "/nonexistent").unwrap().path.to_str().unwrap(), shown);
        assert!(matches!(resolve(&["./nonexistent/tool"], "/bin"), Err(TraceError::NotFound(_))));
        let error = resolve(&[&directory.path().display().to_string()], "/bin").unwrap_err();
        assert!(error.to_string().ends_with("is a directory, not a program"), "{error}");
    }
}
