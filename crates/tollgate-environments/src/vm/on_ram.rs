//! `on=ram`: what a guest needs to make a file system on a block device in its memory, as `--on ram` does on the host:
//! modprobe(8) with the module brd in a module tree, or the module loop; mkfs(8), and the file system's own module.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::file_system;
use super::kernel::Kernel;
use super::modules::{Has, Modules};
use super::programs;
use crate::commands;
use crate::error::{EnvironmentError, plainly, unusable};
use crate::ram::{Driver, OnRam};

/// Files that the guest gets from the host.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub programs: Vec<PathBuf>,
    /// Plain files: paths in the guest, from the root, and on the host.
    pub plain: Vec<(String, PathBuf)>,
}

/// Finds all files, and chooses the modules of the file system. `private` is a directory of this environment alone. An error
/// says what is missing, with its package, or that the kernel has neither the module nor the file system.
pub(super) fn prepare(
    on: &OnRam,
    kernel: &Kernel,
    modules: &mut Modules,
    private: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<Files, EnvironmentError> {
    let OnRam { driver, file_system } = on;
    let missing = |name: &str| unusable!("vm: on=ram: {kernel} has no module {name}");
    // The guest loads it with parameters when it makes the device.
    let loaded = (*driver != Driver::Loop).then_some(Driver::Brd.name());
    if let Some(name) = loaded
        && modules.has(name) != Has::Module
    {
        return Err(missing(name));
    }
    if *driver == Driver::Loop {
        modules.choose(driver.name()).map_err(|_| missing(driver.name()))?;
    }
    file_system::choose(file_system, modules).map_err(|why| unusable!("vm: on={on}: {kernel}: {why}"))?;
    let mkfs = format!("mkfs.{file_system}");
    let mut programs = programs::files(&mkfs, file_system::package(file_system), stop)?;
    programs.extend(programs::files("modprobe", "kmod", stop)?);
    programs.sort();
    programs.dedup();
    let mut plain = loaded.map_or(Ok(Vec::new()), |name| tree(name, kernel, modules, private, stop))?;
    let defaults = Path::new("/etc/mke2fs.conf");
    if defaults.is_file() {
        plain.push(("etc/mke2fs.conf".to_owned(), defaults.to_owned()));
    }
    Ok(Files { programs, plain })
}

/// Makes a module tree with this module alone, and with the index of depmod(8) that modprobe(8) uses.
fn tree(
    name: &str,
    kernel: &Kernel,
    modules: &Modules,
    private: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<(String, PathBuf)>, EnvironmentError> {
    let depmod = commands::find("depmod").ok_or_else(|| {
        unusable!("vm: on=ram: depmod, which lists the guest's modules, is not installed on the host (Debian package kmod)")
    })?;
    let place = format!("lib/modules/{}", kernel.release);
    let directory = private.join("modules").join(&place);
    let fault = |error: io::Error| unusable!("vm: on=ram: {}: {}", directory.display(), plainly(error));
    let fill = || -> io::Result<()> {
        fs::create_dir_all(directory.join("kernel"))?;
        let bytes = modules.bytes(name)?;
        fs::write(directory.join("kernel").join(format!("{name}.ko")), bytes)?;
        // depmod(8) warns if these are missing.
        fs::write(directory.join("modules.order"), format!("kernel/{name}.ko\n"))?;
        fs::write(directory.join("modules.builtin"), "")
    };
    fill().map_err(fault)?;
    let base = private.join("modules");
    let arguments = ["-b".as_ref(), base.as_os_str(), kernel.release.as_ref()];
    commands::run(&depmod, &arguments, stop)?;
    let mut found = Vec::new();
    for (below, directory) in [("", directory.clone()), ("kernel/", directory.join("kernel"))] {
        for entry in fs::read_dir(&directory).map_err(fault)?.flatten() {
            let path = entry.path();
            if path.is_file() {
                found.push((format!("{place}/{below}{}", entry.file_name().to_string_lossy()), path));
            }
        }
    }
    found.sort();
    Ok(found)
}
