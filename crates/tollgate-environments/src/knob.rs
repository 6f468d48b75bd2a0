//! A setting of the machine that a session alternates between its present value and another one.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::{fs, fs::File};

use rustix::io::Errno;
use tollgate_model::run::Knob;
use tollgate_model::text::{excerpt, listed, plainly};

use crate::cleanup::{Cleanup, Promise};
use crate::error::{EnvironmentError, unusable};
use crate::prepared::Undo;
use crate::undo::write_setting;

use claim::Claim;

mod claim;

/// Longest value in bytes. Files in /sys have at most a page.
const MOST: usize = 4096;
/// `PROC_SUPER_MAGIC` and `SYSFS_MAGIC` in linux/magic.h.
const FILE_SYSTEMS: [(&str, i64); 2] = [("/proc/sys", 0x9fa0), ("/sys", 0x6265_6572)];
/// Files whose value is a command, or that cannot be set back before the next boot.
const ORDERS: [(&str, &str); 11] = [
    ("/sys/power", "it suspends the machine"),
    ("/proc/sys/vm/drop_caches", "it is a command, not a setting"),
    ("/proc/sys/vm/compact_memory", "it is a command, not a setting"),
    ("/proc/sys/vm/stat_refresh", "it is a command, not a setting"),
    ("/proc/sys/kernel/modules_disabled", "it cannot be set back before the next boot"),
    ("/proc/sys/kernel/kexec_load_disabled", "it cannot be set back before the next boot"),
    ("/proc/sys/kernel/unprivileged_bpf_disabled", "it may not be settable back before the next boot"),
    ("/proc/sys/kernel/yama/ptrace_scope", "it may not be settable back before the next boot"),
    ("/proc/sys/kernel/random", "it is not a setting"),
    ("/proc/sys/fs/binfmt_misc", "it is not a setting"),
    ("/sys/kernel/uevent_helper", "the kernel would execute it"),
];
/// Names of files in /sys whose value is a command.
const ORDER_NAMES: [&str; 9] =
    ["remove", "rescan", "reset", "delete", "unbind", "bind", "uevent", "new_id", "remove_id"];

/// A setting with its present value and another one. No other session can have it at the same time.
#[derive(Debug)]
pub struct KnobSetting {
    path: PathBuf,
    was: String,
    value: String,
    is_on: bool,
    promise: Option<Promise>,
    /// After the promise, so the value is set back before the claim is dropped.
    claim: Claim,
}

impl KnobSetting {
    /// Parses `PATH=VALUE`. PATH is a file in /proc/sys or /sys, or a name of sysctl(8) such as `kernel.numa_balancing`.
    /// Nothing is changed. The setting stays locked until this is dropped and the cleanup process that has [`Self::lock`] has
    /// ended.
    ///
    /// # Errors
    /// A sentence: there is no such file, it cannot be read or written, is a command and not a setting, has the value
    /// already, or another session changes it.
    pub fn claim(text: &str) -> Result<Self, EnvironmentError> {
        let wrong = |why: String| unusable!("{}: {why}", excerpt(text));
        let (name, value) = text
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| wrong("a setting is PATH=VALUE, such as kernel.numa_balancing=0".to_owned()))?;
        let value = value.trim();
        if value.is_empty() || value.len() >= MOST || value.contains(char::is_control) {
            return Err(wrong("the value is one line of text".to_owned()));
        }
        let path = file_of(name).map_err(&wrong)?;
        // Locked before it is read, so the value is the one before this session's change, not another session's.
        let claim = Claim::take(&path).map_err(&wrong)?;
        let was = present(&path).map_err(&wrong)?;
        if let Some(words) = &was.words
            && !words.iter().any(|word| word == value)
        {
            return Err(wrong(format!("the value is one of {}", listed(words))));
        }
        if is_same(&was.value, value) {
            return Err(wrong(format!("it already is {}; name another value", excerpt(&was.value))));
        }
        Ok(Self { path, was: was.value, value: value.to_owned(), is_on: false, promise: None, claim })
    }

    /// The lock, for the cleanup process that sets the value back if this process is killed.
    pub fn lock(&self) -> BorrowedFd<'_> {
        self.claim.as_fd()
    }

    /// Describes what is about to be done, for the user to read first.
    pub fn sentence(&self) -> String {
        format!(
            "{} is set to {} in every second turn and back to {} after it; it is {} again when the session ends, however it ends",
            self.path.display(),
            excerpt(&self.value),
            excerpt(&self.was),
            excerpt(&self.was)
        )
    }

    /// Its file.
    pub fn path(&self) -> &str {
        // Paths in these file systems are valid UTF-8.
        self.path.to_str().unwrap_or_default()
    }

    /// The original value.
    pub fn was(&self) -> &str {
        &self.was
    }

    /// The other value.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The setting, for a run's document.
    pub fn knob(&self) -> Knob {
        Knob { path: self.path().to_owned(), was: self.was.clone(), value: self.value.clone() }
    }

    /// Has the cleanup process set it back later, and tries the value once.
    ///
    /// # Errors
    /// A sentence: the kernel refuses the value or changes it.
    pub fn promise(&mut self, cleanup: &Cleanup) -> Result<(), EnvironmentError> {
        let undo = Undo::Setting { path: self.path.clone(), value: self.was.clone() };
        let promise = cleanup.promise(&[undo]);
        self.promise = Some(promise.map_err(|error| unusable!("the cleanup process: {}", plainly(&error)))?);
        self.switch(true).and_then(|()| self.switch(false)).inspect_err(|_| self.promise = None)
    }

    /// Sets the other value, or the original one, and reads it back. Does nothing if it is set already.
    ///
    /// # Errors
    /// A sentence. It also fails before [`Self::promise`], and if the cleanup process was killed.
    pub fn switch(&mut self, on: bool) -> Result<(), EnvironmentError> {
        let shown = self.path.display();
        if self.is_on == on {
            return Ok(());
        }
        // Without the cleanup process, the value would stay if this process were killed as well.
        if on && !self.promise.as_ref().is_some_and(Promise::is_guarded) {
            return Err(unusable!(
                "{shown} is not changed: the cleanup process that would restore it is missing"
            ));
        }
        let value = if on { &self.value } else { &self.was };
        write_setting(&self.path, value).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::INVAL | Errno::RANGE) => {
                unusable!("{shown}: the kernel rejects the value {}", excerpt(value))
            }
            _ => unusable!("{shown}: {} cannot be written: {}", excerpt(value), plainly(&error)),
        })?;
        let now = present(&self.path).map_err(|why| unusable!("{shown}: {why}"))?.value;
        if !is_same(&now, value) {
            let (now, value) = (excerpt(&now), excerpt(value));
            return Err(unusable!("{shown}: {value} was written, but it now reads {now}"));
        }
        self.is_on = on;
        Ok(())
    }

    /// Sets the original value for good.
    ///
    /// # Errors
    /// A sentence: the file still has the other value.
    pub fn end(mut self) -> Result<(), EnvironmentError> {
        self.promise.take().map_or(Ok(()), Promise::keep)
    }
}

/// Returns the file of a path or of a name of sysctl(8). In a name, the first `.` or `/` decides which of them separates.
fn file_of(name: &str) -> Result<PathBuf, String> {
    let named = if name.starts_with('/') {
        PathBuf::from(name)
    } else {
        let is_dotted = name.find(['.', '/']).is_none_or(|at| name[at..].starts_with('.'));
        let swap = |c: char| match c {
            '.' => '/',
            '/' => '.',
            other => other,
        };
        let inner: String = if is_dotted { name.chars().map(swap).collect() } else { name.to_owned() };
        Path::new("/proc/sys").join(inner)
    };
    let allowed = "a setting is a file in /proc/sys or /sys";
    let path = fs::canonicalize(&named).map_err(|error| match error.kind() {
        _ if !FILE_SYSTEMS.iter().any(|(above, _)| named.starts_with(above)) => allowed.to_owned(),
        io::ErrorKind::NotFound => {
            format!(
                "there is no setting {}; sysctl -a lists those of /proc/sys",
                excerpt(&named.display().to_string())
            )
        }
        _ => plainly(&error),
    })?;
    let (_, magic) =
        FILE_SYSTEMS.iter().find(|(above, _)| path.starts_with(above)).ok_or(allowed.to_owned())?;
    let shown = path.display();
    if !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(format!("{shown} is not a file; {allowed}"));
    }
    // Other file systems are mounted below /sys: cgroups, tracefs, the firmware's.
    if rustix::fs::statfs(&path).is_ok_and(|stat| stat.f_type != *magic) {
        return Err(format!("{shown} is in another file system, mounted there; {allowed}"));
    }
    if let Some((_, why)) = ORDERS.iter().find(|(order, _)| path.starts_with(order)) {
        return Err(format!("{shown} is not changed: {why}"));
    }
    let is_order = path.file_name().is_some_and(|name| ORDER_NAMES.iter().any(|order| name == *order));
    if is_order && path.starts_with("/sys") {
        return Err(format!("{shown} is not changed: it is a command, not a setting"));
    }
    Ok(path)
}

struct Present {
    value: String,
    /// All possible values, if the file lists them and marks the present one.
    words: Option<Vec<String>>,
}

/// Reads `always [madvise] never` as `madvise`, and other files unchanged.
fn present(path: &Path) -> Result<Present, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => "its value cannot be read, so it could not be restored".to_owned(),
        _ => format!("its value cannot be read: {}", plainly(&error)),
    })?;
    value_of(&bytes)
}

fn value_of(bytes: &[u8]) -> Result<Present, String> {
    let text = std::str::from_utf8(bytes).ok().map(str::trim).filter(|text| text.len() < MOST);
    let text = text.filter(|text| !text.contains('\n')).ok_or("its value is not a line of text")?;
    if text.is_empty() {
        return Err("it has no value, so it could not be restored".to_owned());
    }
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let marked: Vec<&str> =
        words.iter().filter_map(|word| word.strip_prefix('[')?.strip_suffix(']')).collect();
    match marked.as_slice() {
        [one] if words.len() > 1 => {
            let all = words.iter().map(|word| word.trim_matches(['[', ']']).to_owned()).collect();
            Ok(Present { value: (*one).to_owned(), words: Some(all) })
        }
        _ => Ok(Present { value: text.to_owned(), words: None }),
    }
}

/// Compares values. Numbers in a list may be separated by tabs or blanks.
fn is_same(one: &str, other: &str) -> bool {
    one.split_ascii_whitespace().eq(other.split_ascii_whitespace())
}

fn unwritable(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::ACCESS | Errno::PERM) if rustix::process::geteuid().is_root() => {
            "it cannot be written here, not even by root".to_owned()
        }
        Some(Errno::ACCESS | Errno::PERM) => "it can be written by root only".to_owned(),
        Some(Errno::ROFS) => "it is read-only here, as in most containers".to_owned(),
        _ => format!("it cannot be written: {}", plainly(error)),
    }
}

#[cfg(test)]
mod tests;
