//! The disk of a guest: virtio-blk over a sparse file on the host, where the guest measures files. A guest has one if the
//! processor executes it, or if `cache=` asks for one.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::file_system;
use super::kernel::Kernel;
use super::modules::{Has, Modules};
use super::settings::{Accel, Cache, Vm, Vmm};
use crate::commands;
use crate::error::{EnvironmentError, bytes, plainly, unusable};
use crate::ram::options_of_mkfs;

/// The most common one in guests.
pub(super) const FILE_SYSTEM: &str = "ext4";
const DRIVER: &str = "virtio_blk";
/// Room for a file system with its journal, and for what is measured.
const SMALLEST: u64 = 256 << 20;
/// The host's file systems may not support larger files.
const LARGEST: u64 = 1 << 40;

#[derive(Debug, Clone)]
pub(super) struct Disk {
    file: PathBuf,
    size: u64,
    cache: Cache,
    mkfs: PathBuf,
}

/// Returns whether a guest of this name has a disk if its kernel has the driver.
pub(super) fn is_wanted(spec: &Vm, accel: Accel) -> bool {
    spec.on.is_none() && (accel == Accel::Kvm || spec.cache.is_some())
}

impl Disk {
    /// Chooses its modules, and finds the program that makes its file system. Its file will be in this directory. `None` if
    /// the disk was not asked for and cannot be had: files are then in the guest's memory. Fails if `cache=` needs something
    /// that is missing.
    pub fn prepare(
        spec: &Vm,
        kernel: &Kernel,
        modules: &mut Modules,
        directory: &Path,
    ) -> Result<Option<Self>, EnvironmentError> {
        match Self::find(spec, kernel, modules, directory) {
            Ok(disk) => Ok(Some(disk)),
            Err(why) if spec.cache.is_some() => Err(unusable!("vm: cache=: {why}")),
            Err(_) => Ok(None),
        }
    }

    fn find(spec: &Vm, kernel: &Kernel, modules: &mut Modules, directory: &Path) -> Result<Self, String> {
        if modules.has(DRIVER) == Has::No {
            return Err(format!("{kernel} has no disk driver ({DRIVER})"));
        }
        let mkfs = commands::find("mkfs.ext4").ok_or_else(|| {
            format!(
                "there is no mkfs.ext4 on the host (Debian package {})",
                file_system::package(FILE_SYSTEM)
            )
        })?;
        let stat = rustix::fs::statvfs(directory)
            .map_err(|error| format!("{}: {}", directory.display(), plainly(error)))?;
        // The guest writes at most a tenth of it, like all measurements.
        let free = tollgate_os::space::free(&stat).unwrap_or(LARGEST);
        let size = (free >> 20 << 20).min(LARGEST);
        if size < SMALLEST {
            return Err(format!(
                "{} has {} left, but a disk takes {}",
                directory.display(),
                bytes(size),
                bytes(SMALLEST)
            ));
        }
        modules.choose(DRIVER).map_err(|why| format!("{kernel}: {why}"))?;
        file_system::choose(FILE_SYSTEM, modules).map_err(|why| format!("{kernel}: {why}"))?;
        // QEMU's own default.
        let cache = spec.cache.unwrap_or(Cache::Writeback);
        Ok(Self { file: directory.join("disk"), size, cache, mkfs })
    }

    pub fn renew(&self, stop: &dyn Fn() -> bool) -> Result<(), EnvironmentError> {
        let made = File::create(&self.file).and_then(|file| file.set_len(self.size));
        made.map_err(|error| unusable!("vm: the disk {}: {}", self.file.display(), plainly(error)))?;
        let mut arguments: Vec<&OsStr> = options_of_mkfs(FILE_SYSTEM).iter().map(OsStr::new).collect();
        arguments.push(self.file.as_os_str());
        commands::run(&self.mkfs, &arguments, stop).map(drop)
    }

    pub fn arguments(&self, vmm: Vmm) -> [String; 4] {
        let device = if vmm == Vmm::Microvm { "virtio-blk-device" } else { "virtio-blk-pci" };
        // A comma separates options; two commas stand for one.
        let file = self.file.display().to_string().replace(',', ",,");
        [
            "-drive".to_owned(),
            format!("if=none,id=work,format=raw,cache={},file={file}", self.cache.name()),
            "-device".to_owned(),
            format!("{device},drive=work"),
        ]
    }

    pub fn fact(&self) -> String {
        format!("virtio-blk, {}, cache={}", bytes(self.size), self.cache.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::EnvironmentKind;

    fn spec(name: &str) -> Vm {
        Vm::read(name.strip_prefix("vm:")).unwrap()
    }

    #[test]
    fn a_guest_that_is_timed_or_asked_for_it_has_a_disk() {
        assert!(is_wanted(&spec("vm"), Accel::Kvm) && is_wanted(&spec("vm:cache=none"), Accel::Tcg));
        assert!(!is_wanted(&spec("vm"), Accel::Tcg) && !is_wanted(&spec("vm:on=ram"), Accel::Kvm));
    }

    #[test]
    fn a_file_with_a_comma_is_one_argument() {
        let disk = Disk { file: "/a,b/disk".into(), size: 1 << 30, cache: Cache::None, mkfs: "/mkfs".into() };
        let arguments = disk.arguments(Vmm::Qemu);
        assert_eq!(arguments[1], "if=none,id=work,format=raw,cache=none,file=/a,,b/disk");
        assert_eq!(disk.arguments(Vmm::Microvm)[3], "virtio-blk-device,drive=work");
        assert_eq!(disk.fact(), "virtio-blk, 1024 MiB, cache=none");
    }

    #[test]
    fn each_start_has_a_fresh_file_system() {
        let directory = tempfile::tempdir().unwrap();
        let Some(mkfs) = commands::find("mkfs.ext4") else {
            return println!("skipped: there is no mkfs.ext4");
        };
        let disk = Disk { file: directory.path().join("disk"), size: SMALLEST, cache: Cache::None, mkfs };
        for _ in 0..2 {
            std::fs::write(&disk.file, "what was there").unwrap();
            disk.renew(&|| false).unwrap();
            let bytes = std::fs::read(&disk.file).unwrap();
            // ext4's superblock has its magic at 38h (Documentation/filesystems/ext4/super.rst).
            assert_eq!((bytes.len() as u64, &bytes[1024 + 0x38..][..2]), (SMALLEST, &[0x53, 0xef][..]));
            assert!(!bytes.starts_with(b"what was there"));
        }
    }
}
