//! A control group: its processes, and its identity in the kernel.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tollgate_model::text::plainly;

use crate::request::Group;

/// Limits on the depth and number of nested groups that are searched.
const DEEPEST: usize = 24;
const MOST_GROUPS: usize = 10_000;
const MOUNTS: &str = "/sys/fs/cgroup";

pub(super) struct Directory(PathBuf);

impl Directory {
    /// Finds the directory at this path, or at this path below [`MOUNTS`].
    pub fn find(path: &Path) -> Result<Self, String> {
        let below = Path::new(MOUNTS).join(path.strip_prefix("/").unwrap_or(path));
        let paths = [path, &below];
        let found = paths.into_iter().find(|path| path.join("cgroup.procs").exists());
        found.map(|path| Self(path.to_owned())).ok_or_else(|| {
            let [path, below] = paths.map(Path::display);
            format!("{path} is not a control group: it has no file cgroup.procs, and neither has {below}")
        })
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn processes(&self) -> Result<BTreeSet<u32>, String> {
        let mut processes = BTreeSet::new();
        let mut groups = 0;
        gather(&self.0, 0, &mut groups, &mut processes)
            .map_err(|error| format!("{}: {}", self.0.display(), plainly(&error)))?;
        Ok(processes)
    }

    /// Returns the kernel's identity of the group; `None` if it cannot be determined, for example without /proc.
    pub fn group(&self) -> Option<Group> {
        let metadata = fs::metadata(&self.0).ok()?;
        let (major, minor) = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let hierarchy = hierarchy(&mounts, &groups, &format!("{major}:{minor}"))?;
        Some(Group { hierarchy, id: metadata.ino() })
    }
}

fn gather(
    directory: &Path,
    depth: usize,
    groups: &mut usize,
    processes: &mut BTreeSet<u32>,
) -> io::Result<()> {
    *groups += 1;
    let text = fs::read_to_string(directory.join("cgroup.procs"))?;
    // 0 is a process in another PID namespace.
    processes.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|pid| *pid > 0));
    for entry in fs::read_dir(directory)?.flatten() {
        let is_group = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_group && depth < DEEPEST && *groups < MOST_GROUPS {
            match gather(&entry.path(), depth + 1, groups, processes) {
                // It was removed in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                gathered => gathered?,
            }
        }
    }
    Ok(())
}

/// Returns the number of the hierarchy that is mounted with this device: proc_pid_mountinfo(5) has its controllers, and
/// /proc/self/cgroup (cgroups(7)) the number of the hierarchy with these controllers.
fn hierarchy(mounts: &str, groups: &str, device: &str) -> Option<u32> {
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    let mut behind = mount.split_once(" - ")?.1.split(' ');
    if behind.next()? == "cgroup2" {
        return Some(0);
    }
    let options: BTreeSet<&str> = behind.nth(1)?.split(',').collect();
    groups.lines().find_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let controllers = rest.split_once(':')?.0;
        let is_it = !controllers.is_empty() && controllers.split(',').all(|one| options.contains(one));
        is_it.then(|| number.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hierarchy_is_found_by_its_controllers() {
        let mounts = "\
35 25 0:30 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
36 25 0:31 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
37 25 0:32 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
38 25 0:33 / /tmp rw - tmpfs tmpfs rw
";
        let groups = "9:name=systemd:/\n4:memory:/a:b\n1:cpu,cpuacct:/\n0::/\n";
        let of = |device| hierarchy(mounts, groups, device);
        assert_eq!([of("0:30"), of("0:31"), of("0:32"), of("0:33")], [Some(1), Some(9), Some(0), None]);
        assert_eq!(of("9:9"), None);
    }

    #[test]
    fn what_is_no_control_group_is_said() {
        let why = Directory::find(Path::new("/tmp")).map(drop).unwrap_err();
        assert!(why.starts_with("/tmp is not a control group"), "{why}");
    }
}
