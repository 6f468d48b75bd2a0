//! Cgroups that a runtime makes, by their paths in each hierarchy (cgroups(7)).

use std::fs;
use std::path::PathBuf;

use crate::prepared::Undo;

#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    mounted: PathBuf,
    /// Second field of its line in /proc/self/cgroup: a name, controllers, or nothing for cgroup v2.
    name: String,
}

pub(super) fn named(name: &str) -> Vec<Undo> {
    hierarchies().into_iter().map(|hierarchy| Undo::Cgroup(hierarchy.mounted.join(name))).collect()
}

/// Directories for cgroups of this name below this process's own cgroup, in the hierarchies that systemd uses.
pub(super) fn below_own(name: &str) -> Vec<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_systemd =
        hierarchies().into_iter().filter(|hierarchy| ["", "name=systemd"].contains(&hierarchy.name.as_str()));
    let below = of_systemd.filter_map(|hierarchy| {
        let path = own.lines().find_map(|line| path_in(line, &hierarchy.name))?;
        Some(hierarchy.mounted.join(path.trim_start_matches('/')).join(name))
    });
    below.collect()
}

/// Returns the path in a line `NUMBER:NAME:PATH` if it has that name.
fn path_in<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let mut parts = line.splitn(3, ':').skip(1);
    (parts.next()? == name).then(|| parts.next())?
}

fn hierarchies() -> Vec<Hierarchy> {
    of_mounts(&fs::read_to_string("/proc/self/mounts").unwrap_or_default())
}

/// Parses the hierarchies in /proc/self/mounts, which escapes blanks as octal numbers (fstab(5)).
fn of_mounts(mounts: &str) -> Vec<Hierarchy> {
    let of_line = |line: &str| {
        let [_, mounted, kind, options] = line.split(' ').take(4).collect::<Vec<_>>().try_into().ok()?;
        let name = match kind {
            "cgroup2" => String::new(),
            "cgroup" => options
                .split(',')
                .find(|option| option.starts_with("name="))
                .unwrap_or("controllers")
                .to_owned(),
            _ => return None,
        };
        Some(Hierarchy { mounted: mounted.replace("\\040", " ").into(), name })
    };
    mounts.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_those_that_are_mounted() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
            cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\ncgroup2 /a\\040b cgroup2 rw 0 0\nx\n";
        let found = of_mounts(mounts);
        let found: Vec<_> =
            found.iter().map(|one| (one.mounted.to_str().unwrap(), one.name.as_str())).collect();
        let expected =
            [("/sys/fs/cgroup/cpu", "controllers"), ("/sys/fs/cgroup/systemd", "name=systemd"), ("/a b", "")];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_own_path_is_of_its_hierarchy() {
        assert_eq!(path_in("0::/user.slice/a:b", ""), Some("/user.slice/a:b"));
        assert_eq!(path_in("1:name=systemd:/x", "name=systemd"), Some("/x"));
        assert_eq!(path_in("4:memory:/x", ""), None);
        assert_eq!(path_in("", ""), None);
    }
}
