//! The file system under a directory, its mount options, and its device. Source: proc_pid_mountinfo(5), statx(2), statvfs(3),
//! Documentation/ABI/stable/sysfs-block.

use std::path::Path;

use tollgate_model::Unknown;

use crate::calls;
use crate::machine::{Answer, Machine, found};
use crate::mounts::{MOUNTS, Mount};
use crate::text::{digits, marked, zero_or_one};

pub(crate) fn directory(_: &Machine, directory: &Path) -> Answer<String> {
    found(directory.to_string_lossy().into_owned(), "the directory that was named")
}

pub(crate) fn of_mount(machine: &Machine, directory: &Path, property: fn(Mount) -> String) -> Answer<String> {
    Ok(mount(machine, directory)?.map(property))
}

/// In bytes, for users other than root.
pub(crate) fn free(machine: &Machine, directory: &Path) -> Answer<i64> {
    let name = format!("statvfs(3) {}", directory.display());
    let stated = machine.call(&name, || calls::free_space(directory))?;
    match stated.value.map(i64::try_from) {
        Some(Ok(bytes)) => found(bytes, name),
        _ => Err(Unknown::Absent(format!("{name}: the file system states no size"))),
    }
}

pub(crate) fn device(machine: &Machine, directory: &Path) -> Answer<String> {
    Ok(block(machine, directory)?.map(|block| block.name))
}

/// The selected scheduler; `none` for a device without a choice.
pub(crate) fn scheduler(machine: &Machine, directory: &Path) -> Answer<String> {
    let chosen = |text: &str| match text {
        "none" => Some("none".to_owned()),
        _ => marked(text, '[', ']').map(str::to_owned),
    };
    of_disk(machine, directory, "queue/scheduler")?.parse("a line of schedulers with one in brackets", chosen)
}

/// The kind of mapping: the first part of such a device's identifier, `CRYPT`, `LVM`.
pub(crate) fn mapping(machine: &Machine, directory: &Path) -> Answer<String> {
    let kind = |text: &str| text.split('-').next().filter(|kind| !kind.is_empty()).map(str::to_owned);
    of_disk(machine, directory, "dm/uuid")?.parse("the identifier of a mapped device", kind)
}

pub(crate) fn number(machine: &Machine, directory: &Path, attribute: &str) -> Answer<i64> {
    of_disk(machine, directory, attribute)?.parse("a whole number", digits)
}

pub(crate) fn flag(machine: &Machine, directory: &Path, attribute: &str) -> Answer<bool> {
    of_disk(machine, directory, attribute)?.parse("0 or 1", zero_or_one)
}

pub(crate) fn of_disk(machine: &Machine, directory: &Path, attribute: &str) -> Answer<String> {
    let disk = block(machine, directory)?.value.disk;
    machine.line(&format!("/sys/block/{disk}/{attribute}"))
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    name: String,
    disk: String,
}

impl Block {
    /// Parses the target of a link in `/sys/dev/block`: `../../devices/pci0000:00/…/block/sda/sda1`.
    fn at(target: &str, is_partition: bool) -> Option<Self> {
        let fit = |name: &&str| !name.is_empty() && *name != "." && *name != "..";
        let mut from_behind = target.rsplit('/');
        let name = from_behind.next().filter(fit)?;
        let disk = if is_partition { from_behind.next().filter(fit)? } else { name };
        Some(Self { name: name.to_owned(), disk: disk.to_owned() })
    }
}

/// Finds the device by the numbers of the mounted file system. File systems with their own device numbers (btrfs) are looked up
/// by the name of the mounted source.
fn block(machine: &Machine, directory: &Path) -> Answer<Block> {
    let mount = mount(machine, directory)?.value;
    let numbered = format!("/sys/dev/block/{}", mount.device);
    let named = mount.source.rsplit_once('/').map(|(_, name)| format!("/sys/class/block/{name}"));
    let of = |path: &str| {
        let is_partition = machine.there(&format!("{path}/partition")).is_ok();
        machine.link(path)?.parse("a link to a block device", |target| Block::at(target, is_partition))
    };
    match (of(&numbered), named) {
        (Err(Unknown::Absent(_)), Some(named)) if machine.there(&named).is_ok() => of(&named),
        (Err(Unknown::Absent(_)), _) if mount.device.starts_with("0:") => {
            Err(Unknown::Absent(format!("{} has no block device of its own", mount.file_system)))
        }
        (answer, _) => answer,
    }
}

/// The mount that the kernel reports for the directory, or the last one of the longest mount point above, which covers the others.
fn mount(machine: &Machine, directory: &Path) -> Answer<Mount> {
    let name = format!("statx(2) {}", directory.display());
    let id = machine.call(&name, || calls::mount_id(directory).ok_or(libc::ENOSYS));
    let id = id.ok().map(|found| found.value);
    machine.text(MOUNTS)?.parse("a list of mounts with this directory", |text| {
        let mounts: Vec<Mount> = text.lines().filter_map(Mount::parse).collect();
        chosen(mounts, directory, id)
    })
}

fn chosen(mounts: Vec<Mount>, directory: &Path, id: Option<u64>) -> Option<Mount> {
    if let Some(mount) = mounts.iter().find(|mount| Some(mount.id) == id) {
        return Some(mount.clone());
    }
    let above = mounts.into_iter().filter(|mount| directory.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.len())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tollgate_model::{Fact, FactValue};

    use super::*;
    use crate::{registry::storage, testing};

    const CAPTURED: &str = "\
21 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw,discard,errors=remount-ro
22 21 0:20 / /proc rw,nosuid,nodev,noexec,relatime shared:5 - proc proc rw
40 21 0:35 / /dev/shm rw,nosuid,nodev shared:3 master:1 - tmpfs tmpfs rw,size=24682416k,inode64
41 21 8:2 /sub /mnt/a\\040place rw,noatime - xfs /dev/sda2 rw,attr2
42 21 0:41 /root /srv rw - btrfs /dev/mapper/pool rw,ssd,subvol=/root
43 21 0:50 / /over rw - overlay overlay rw,lowerdir=/a\\134:b
";

    fn tree() -> tempfile::TempDir {
        let root = testing::tree(&[
            ("proc/self/mountinfo", CAPTURED),
            ("sys/devices/pci0/block/sda/sda2/partition", "2\n"),
            ("sys/devices/pci0/block/sda/queue/rotational", "1\n"),
            ("sys/devices/pci0/block/sda/queue/scheduler", "none [mq-deadline] kyber\n"),
            ("sys/devices/pci0/block/sda/queue/logical_block_size", "512\n"),
            ("sys/devices/pci0/block/sda/queue/physical_block_size", "4096\n"),
            ("sys/devices/pci0/block/sda/queue/write_cache", "write back\n"),
            ("sys/devices/pci0/block/sda/queue/dax", "0\n"),
            ("sys/devices/pci0/block/sda/device/model", "A DISK          \n"),
            ("sys/devices/virtual/block/dm-0/queue/scheduler", "none\n"),
        ]);
        for directory in ["sys/dev/block", "sys/block", "sys/class/block"] {
            std::fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        let link = |to: &str, at: &str| symlink(to, root.path().join(at)).unwrap();
        link("../../devices/pci0/block/sda/sda2", "sys/dev/block/8:2");
        link("../devices/pci0/block/sda", "sys/block/sda");
        link("../devices/virtual/block/dm-0", "sys/block/dm-0");
        link("../../devices/virtual/block/dm-0", "sys/class/block/pool");
        root
    }

    fn value(root: &Path, directory: &str, name: &str) -> Option<FactValue> {
        let facts = storage(&Machine::captured(root), Path::new(directory));
        facts.into_iter().find(|(known, _)| known == name).unwrap().1.value().cloned()
    }

    #[test]
    fn a_partition_is_known_by_its_disk() {
        let root = tree();
        let known = |name: &str| value(root.path(), "/mnt/a place/deep/er", name).unwrap().to_string();
        assert_eq!(known("files.fs"), "xfs");
        assert_eq!(known("files.mount"), "/mnt/a place");
        assert_eq!(known("files.options"), "rw,noatime,attr2");
        assert_eq!(known("files.source"), "/dev/sda2");
        assert_eq!(known("files.device"), "sda2");
        assert_eq!(known("files.device.model"), "A DISK");
        assert_eq!(known("files.device.rotational"), "yes");
        assert_eq!(known("files.device.scheduler"), "mq-deadline");
        assert_eq!(known("files.device.logical_block"), "512");
        assert_eq!(known("files.device.physical_block"), "4096");
        assert_eq!(known("files.device.write_cache"), "write back");
        assert_eq!(known("files.device.dax"), "no");
    }

    #[test]
    fn a_file_system_without_a_device_says_so() {
        let root = tree();
        let facts = storage(&Machine::captured(root.path()), Path::new("/dev/shm/x"));
        let device = facts.into_iter().find(|(name, _)| name == "files.device").unwrap().1;
        assert_eq!(device, Fact::absent("tmpfs has no block device of its own"));
        assert_eq!(value(root.path(), "/over", "files.options").unwrap().to_string(), "rw,lowerdir=/a\\:b");
    }

    #[test]
    fn a_size_that_the_file_system_does_not_state_is_absent() {
        let free = |answer: &str| {
            let record = format!(
                r#"{{"format": 1, "directory": "/", "cpuid": [], "errors": {{}},
                "calls": {{"statvfs(3) /srv": {answer}}}}}"#
            );
            let root = testing::tree(&[("tollgate.json", record)]);
            free(&Machine::open(root.path()).unwrap(), Path::new("/srv"))
        };
        assert_eq!(free(r#"{"value": 4096}"#).unwrap().value, 4096);
        assert!(matches!(free(r#"{"value": null}"#), Err(Unknown::Absent(why)) if why.contains("no size")));
        assert!(matches!(free(r#"{"errno": 13}"#), Err(Unknown::Refused(_))));
    }

    #[test]
    fn one_that_counts_its_own_devices_is_known_by_what_was_mounted() {
        let root = tree();
        assert_eq!(value(root.path(), "/srv", "files.device").unwrap().to_string(), "dm-0");
        assert_eq!(value(root.path(), "/srv", "files.device.scheduler").unwrap().to_string(), "none");
    }

    #[test]
    fn the_number_of_the_mount_counts_before_its_name() {
        let mounts = || CAPTURED.lines().filter_map(Mount::parse).collect::<Vec<_>>();
        assert_eq!(mounts().len(), 6);
        let fs = |id| chosen(mounts(), Path::new("/dev/shm/x"), id).unwrap().file_system;
        assert_eq!(fs(None), "tmpfs");
        assert_eq!(fs(Some(21)), "ext4");
        assert_eq!(fs(Some(999)), "tmpfs", "not listed");
        assert_eq!(chosen(mounts(), Path::new("/dev/shmem"), None).unwrap().point, "/", "whole names only");
    }

    #[test]
    fn here_every_one_ends_in_an_answer() {
        let facts = storage(&Machine::here(), Path::new("/tmp"));
        assert_eq!(facts.len(), crate::STORAGE.len());
        let known = |name: &str| facts.iter().any(|(known, fact)| known == name && fact.value().is_some());
        assert!(known("files.free"), "{facts:?}");
        if Path::new(MOUNTS).exists() {
            assert!(known("files.fs") && known("files.options"), "{facts:?}");
        }
    }

    takes_any! {
        text in "\\PC{0,200}|[0-9: /a-z,\\\\-]{0,200}", partition in any::<bool>() =>
        Block::at(&text, partition)
    }
}
