//! The marks that containers leave. No single file proves a container. A layer is detected by live marks (facts of this
//! process), or by marker files together with namespaces that are not the machine's initial ones. Files alone are not enough: an
//! image that is started as a virtual machine keeps them.

use tollgate_model::Unknown;

use crate::machine::{Answer, Machine, found};
use crate::mounts::{MOUNTS, Mount};

const CGROUP: &str = "/proc/self/cgroup";
const NAMESPACES: &str = "/proc/self/ns";

const MARKER_FILES: [(&str, &str); 7] = [
    ("/.dockerenv", "docker"),
    ("/run/.containerenv", "podman"),
    ("/.flatpak-info", "flatpak"),
    ("/.singularity.d", "apptainer"),
    ("/run/.toolboxenv", "toolbox"),
    ("/var/run/secrets/kubernetes.io", "kubernetes"),
    ("/dev/lxd/sock", "lxd"),
];
/// Files to which a manager writes its name.
const NAME_FILES: [&str; 2] = ["/run/systemd/container", "/run/host/container-manager"];

/// Inode numbers of the initial namespaces: `enum init_ns_ino` in linux/nsfs.h, on older kernels in `proc_ns.h`. Those of the
/// mount and network namespaces are not fixed on older kernels.
const FIRST_NAMESPACES: [(&str, u64); 6] = [
    ("cgroup", 0xEFFF_FFFB),
    ("ipc", 0xEFFF_FFFF),
    ("pid", 0xEFFF_FFFC),
    ("user", 0xEFFF_FFFD),
    ("time", 0xEFFF_FFFA),
    ("uts", 0xEFFF_FFFE),
];

/// Files that container managers leave in a root. Their absence is known only if each was looked for.
pub(crate) fn files(machine: &Machine) -> Answer<Vec<String>> {
    let marks: Vec<String> = file_marks(machine).into_iter().map(|(_, path)| path).collect();
    let all = || MARKER_FILES.iter().map(|(path, _)| *path).chain(NAME_FILES);
    let unseen = all().find_map(|path| match machine.there(path) {
        Err(Unknown::Absent(_)) | Ok(_) => None,
        Err(why) => Some(why),
    });
    match unseen {
        Some(why) if marks.is_empty() => Err(why),
        _ => found(marks, all().collect::<Vec<_>>().join(", ")),
    }
}

fn file_marks(machine: &Machine) -> Vec<(String, String)> {
    let markers = MARKER_FILES.into_iter().filter(|(path, _)| machine.there(path).is_ok());
    let markers = markers.map(|(path, name)| (name.to_owned(), path.to_owned()));
    let named =
        NAME_FILES.into_iter().filter_map(|path| Some((machine.line(path).ok()?.value, path.to_owned())));
    markers.chain(named.filter(|(name, _)| is_name(name))).collect()
}

pub(crate) fn variable_in(machine: &Machine, path: &str) -> Answer<String> {
    let bytes = machine.bytes(path)?;
    match container_variable(&bytes.value) {
        Some(name) => found(name, format!("{path} container=")),
        None => Err(Unknown::Absent(format!("{path} has no container="))),
    }
}

/// The value of `container=` among NUL-terminated variables (the container interface of systemd).
fn container_variable(environ: &[u8]) -> Option<String> {
    let values = environ.split(|&byte| byte == 0).filter_map(|variable| variable.strip_prefix(b"container="));
    values.map(|value| String::from_utf8_lossy(value).into_owned()).find(|name| is_name(name))
}

fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

pub(crate) fn groups(machine: &Machine) -> Answer<Vec<String>> {
    let managers = machine.text(CGROUP)?.map(|text| {
        let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
        let mut managers: Vec<&str> = paths.filter_map(manager_of).collect();
        managers.sort_unstable();
        managers.dedup();
        managers.into_iter().map(str::to_owned).collect()
    });
    Ok(managers)
}

/// The manager of the container that a cgroup belongs to. The managers' own services, such as `docker.service`, do not count.
fn manager_of(path: &str) -> Option<&'static str> {
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        let has_child = parts.peek().is_some();
        let manager = match part {
            "docker" if has_child => "docker",
            "lxc" | "lxc.payload" if has_child => "lxc",
            "garden" if has_child => "garden",
            "ecs" if has_child => "ecs",
            "libpod_parent" => "podman",
            _ if part.starts_with("kubepods") => "kubernetes",
            _ if part.starts_with("docker-") && part.ends_with(".scope") => "docker",
            _ if part.starts_with("libpod-") => "podman",
            _ if part.starts_with("lxc.payload.") => "lxc",
            _ if part.starts_with("cri-containerd-") => "containerd",
            _ if part.starts_with("crio-") => "cri-o",
            _ if part.starts_with("systemd-nspawn@") => "systemd-nspawn",
            _ => continue,
        };
        return Some(manager);
    }
    None
}

/// The kinds of namespaces of this process that are not the machine's initial ones.
pub(crate) fn namespaces(machine: &Machine) -> Answer<Vec<String>> {
    let mut own = Vec::new();
    for (kind, first) in FIRST_NAMESPACES {
        match machine.link(&format!("{NAMESPACES}/{kind}")) {
            Ok(link) => {
                let number = link.parse("a namespace", |text| namespace_number(text, kind))?;
                if number.value != first {
                    own.push(kind.to_owned());
                }
            }
            // A kernel may lack a kind, but not all of them: a tree without the PID kind shows nothing.
            Err(Unknown::Absent(_)) if kind != "pid" => {}
            Err(why) => return Err(why),
        }
    }
    found(own, NAMESPACES)
}

/// Parses `pid:[4026531836]`.
fn namespace_number(link: &str, kind: &str) -> Option<u64> {
    crate::text::digits(link.strip_prefix(kind)?.strip_prefix(":[")?.strip_suffix(']')?)
}

/// The type of the root file system: the last one that was mounted there covers the others.
pub(crate) fn root_file_system(machine: &Machine) -> Answer<String> {
    machine.text(MOUNTS).and_then(|text| {
        let root = text.value.lines().filter_map(Mount::parse).rfind(|mount| mount.point == "/");
        root.map_or_else(
            || Err(Unknown::Absent(format!("{MOUNTS} has no mount at /"))),
            |mount| found(mount.file_system, format!("{MOUNTS} /")),
        )
    })
}

pub(crate) fn mounts(machine: &Machine) -> Answer<Vec<String>> {
    Ok(machine.text(MOUNTS)?.map(|text| {
        let roots = text.lines().filter_map(Mount::parse);
        let managers: std::collections::BTreeSet<&str> =
            roots.filter_map(|mount| mounted_by(&mount.root)).collect();
        managers.into_iter().map(str::to_owned).collect()
    }))
}

fn mounted_by(root: &str) -> Option<&'static str> {
    const DIRECTORIES: [(&str, &str); 5] = [
        ("/docker/containers/", "docker"),
        ("/kubelet/pods/", "kubernetes"),
        ("/overlay-containers/", "podman"),
        ("/io.containerd.", "containerd"),
        ("/buildkit/", "buildkit"),
    ];
    DIRECTORIES.into_iter().find(|(directory, _)| root.contains(directory)).map(|(_, name)| name)
}

/// The kinds of namespaces that this process does not share with the first process that it can see.
pub(crate) fn unshared(machine: &Machine) -> Answer<Vec<String>> {
    const KINDS: [&str; 8] = ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];
    let apart = || {
        let mut apart = Vec::new();
        for kind in KINDS {
            let own = match machine.link(&format!("{NAMESPACES}/{kind}")) {
                Err(Unknown::Absent(_)) if kind != "pid" => continue,
                answer => answer?,
            };
            if machine.link(&format!("/proc/1/ns/{kind}"))?.value != own.value {
                apart.push(kind.to_owned());
            }
        }
        found(apart, format!("{NAMESPACES}, /proc/1/ns"))
    };
    apart()
}

/// The mapping of user IDs to the outside: `all as they are`, or ranges `inside outside count`.
pub(crate) fn users(machine: &Machine) -> Answer<String> {
    machine.text("/proc/self/uid_map")?.parse("ranges of user numbers", ranges)
}

fn ranges(text: &str) -> Option<String> {
    let mut ranges = Vec::new();
    for line in text.lines().take(340) {
        let numbers: Vec<u32> = line.split_whitespace().map(crate::text::digits).collect::<Option<_>>()?;
        let [inside, outside, count] = numbers[..] else { return None };
        if (inside, outside, count) == (0, 0, u32::MAX) {
            return Some("all as they are".to_owned());
        }
        ranges.push(format!("{inside} {outside} {count}"));
    }
    Some(if ranges.is_empty() { "none".to_owned() } else { ranges.join(", ") })
}

pub(crate) fn layers(machine: &Machine) -> Answer<Vec<String>> {
    let namespaces = namespaces(machine);
    let own: &[String] = namespaces.as_ref().map_or(&[], |found| &found.value);
    let mut names = Vec::new();
    let mut marks = Vec::new();
    for managers in [groups(machine), mounts(machine)].into_iter().flatten() {
        if !managers.value.is_empty() {
            marks.push(managers.source);
            names.extend(managers.value);
        }
    }
    for manager in
        ["/proc/1/environ", "/proc/self/environ"].into_iter().flat_map(|path| variable_in(machine, path))
    {
        marks.push(manager.source);
        names.push(manager.value);
    }
    for (name, path) in file_marks(machine) {
        if namespaces.is_ok() && own.is_empty() {
            marks.push(format!("{path} is there, but every namespace is the machine's first"));
        } else {
            marks.push(path);
            names.push(name);
        }
    }
    if own.iter().any(|kind| kind == "pid") {
        marks.push(format!("{NAMESPACES}/pid"));
        if names.is_empty() {
            names.push("process namespace".to_owned());
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    match namespaces {
        Err(why) if names.is_empty() => Err(why),
        _ if marks.is_empty() => found(names, format!("no marks; {NAMESPACES}")),
        _ => found(names, marks.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managers() {
        for (path, manager) in [
            ("/docker/8e0f", Some("docker")),
            ("/system.slice/docker-8e0f.scope", Some("docker")),
            ("/system.slice/docker.service", None),
            ("/docker", None),
            ("/kubepods.slice/kubepods-burstable.slice/cri-containerd-1.scope", Some("kubernetes")),
            ("/lxc.payload.web/init.scope", Some("lxc")),
            ("/lxc.monitor.web", None),
            ("/user.slice/libpod-1.scope/container", Some("podman")),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(manager_of(path), manager, "{path}");
        }
    }

    #[test]
    fn variables() {
        assert_eq!(container_variable(b"PATH=/bin\0container=lxc\0"), Some("lxc".into()));
        assert_eq!(container_variable(b"mycontainer=lxc\0"), None);
        assert_eq!(container_variable(b"container=\0"), None);
        assert_eq!(container_variable(b"container=\x1b[31m\0"), None);
    }

    #[test]
    fn mounts_and_users() {
        assert_eq!(mounted_by("/var/lib/docker/containers/8e/resolv.conf"), Some("docker"));
        assert_eq!(mounted_by("/var/lib/kubelet/pods/1/etc-hosts"), Some("kubernetes"));
        assert_eq!(mounted_by("/docker"), None);
        assert_eq!(ranges("         0          0 4294967295\n").as_deref(), Some("all as they are"));
        assert_eq!(ranges("0 1000 1\n1 100000 65536\n").as_deref(), Some("0 1000 1, 1 100000 65536"));
        assert_eq!(ranges("").as_deref(), Some("none"));
        assert_eq!(ranges("0 -1 2"), None);
    }

    #[test]
    fn namespace_numbers() {
        assert_eq!(namespace_number("pid:[4026531836]", "pid"), Some(0xEFFF_FFFC));
        for link in ["pid:[]", "pid:[x]", "uts:[4026531836]", "pid:4026531836", ""] {
            assert_eq!(namespace_number(link, "pid"), None, "{link}");
        }
    }

    takes_any! {
        text in "\\PC{0,100}|[a-z/.:\\[\\]0-9-]{0,100}", bytes in any::<Vec<u8>>() =>
        mounted_by(&text), ranges(&text),
        manager_of(&text), namespace_number(&text, "pid"), container_variable(&bytes)
    }
}
