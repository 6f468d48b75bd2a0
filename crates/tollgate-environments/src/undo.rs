//! Undoes what was made for an environment. Each action can be repeated, and does nothing if nothing is left to undo.
//!
//! `group`: a process group. `mounts`: mounts below a directory. `cgroup`: a cgroup and its processes. `left`: private
//! directories of a killed program. `shell`: a command of the user.

use std::ffi::OsString;
use std::path::Path;
use std::{fs, io, io::Write};

use tollgate_os::temporary;

use crate::commands;
use crate::error::{EnvironmentError, plainly, unusable};
use crate::prepared::Undo;
use crate::{holders, ram};

mod cgroup;
pub(crate) mod group;
mod left;
mod mounts;
pub(crate) mod shell;

pub(crate) use group::started;

/// Undoes all of a list, the last first. Returns the errors of what could not be undone.
pub(crate) fn undo_all(list: &[Undo]) -> Vec<EnvironmentError> {
    list.iter().rev().filter_map(|one| undo(one).err()).collect()
}

fn undo(one: &Undo) -> Result<(), EnvironmentError> {
    let of = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| unusable!("{}: {}", path.display(), plainly(error))
    };
    match one {
        Undo::Group { pid, started } => {
            if group::end(*pid, *started) {
                Ok(())
            } else {
                Err(unusable!("a process of the group {pid} does not end (it waits in the kernel)"))
            }
        }
        Undo::Program(words) => {
            program(words);
            Ok(())
        }
        Undo::Unmount(path) => mounts::unmount_below(path).map_err(of(path)),
        Undo::Cgroup(path) => cgroup::remove(path).map_err(of(path)),
        Undo::Directory { path, device, inode } => {
            // A file system that stays mounted is not removed: the walk does not cross into other file systems.
            let unmounted = mounts::unmount_below(path);
            temporary::remove(path, *device, *inode)
                .map_err(|error| unmounted.err().unwrap_or(error))
                .map_err(of(path))
        }
        Undo::Left { under, pid } => left::remove(under, *pid),
        Undo::Ram { pid, home, outside } => match holders::end(home, outside) {
            (_, true) => ram::clean_after(*pid, home),
            (_, false) => Err(unusable!(
                "a process that uses the device in memory does not end (it waits in the kernel)"
            )),
        },
        Undo::Shell { command, directory } => shell::execute(command, directory, &|| false, &mut |_| {}),
        Undo::Setting { path, value } => write_setting(path, value).map_err(of(path)),
    }
}

/// Runs a program to its end, within the time limit for this crate's programs. Its failure is not an error.
fn program(words: &[OsString]) {
    let Some((name, arguments)) = words.split_first() else { return };
    if let Some(file) = commands::named(name) {
        let _ = commands::run(&file, arguments, &|| false);
    }
}

/// Writes a setting with one write(2) of the value and a newline, like `echo VALUE > FILE`.
pub(crate) fn write_setting(path: &Path, value: &str) -> io::Result<()> {
    let line = format!("{value}\n");
    let mut file = fs::File::options().write(true).open(path)?;
    match file.write(line.as_bytes())? {
        written if written == line.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

#[cfg(test)]
mod tests;
