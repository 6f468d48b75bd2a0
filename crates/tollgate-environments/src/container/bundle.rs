//! Directories and config.json of a container. config.json is as `runc spec` and `runc spec --rootless` write it, with this
//! program in it (OCI runtime specification, config.md and config-linux.md).

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Order, PROGRAM, WORK, system};
use crate::error::{EnvironmentError, plainly, unusable};

pub(crate) struct Bundle {
    /// Directory of config.json.
    pub path: PathBuf,
    /// Root file system: mount points and nothing else.
    pub root: PathBuf,
    pub work: PathBuf,
    /// State of the runtime's containers.
    pub state: PathBuf,
}

impl Bundle {
    pub fn make(order: &Order<'_>) -> Result<Self, EnvironmentError> {
        let made = Self {
            path: order.directory("bundle")?,
            root: order.directory("bundle/rootfs")?,
            work: order.work()?,
            state: order.directory("state")?,
        };
        // systemd-nspawn does not accept a directory without /usr as a root file system.
        for inner in ["/proc", "/dev", "/sys", "/tmp", "/usr", WORK].into_iter().chain(system::directories())
        {
            order.directory(&format!("bundle/rootfs{inner}"))?;
        }
        let file = made.root.join(&PROGRAM[1..]);
        let failed = |error| unusable!("{}: {}", file.display(), plainly(error));
        fs::write(&file, "").map_err(failed)?;
        Ok(made)
    }

    pub fn write(&self, config: &Value) -> Result<(), EnvironmentError> {
        let file = self.path.join("config.json");
        fs::write(&file, config.to_string())
            .map_err(|error| unusable!("{}: {}", file.display(), plainly(error)))
    }
}

/// How a container is separated from this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Separation {
    /// Made by root, with a cgroup of the container's name.
    OfRoot,
    /// Made by an unprivileged user, who is root in a user namespace.
    OfUser,
    /// Made by a kernel of its own, in a sandbox.
    Sandbox,
}

pub(crate) fn config(
    order: &Order<'_>,
    bundle: &Bundle,
    place: Separation,
    seccomp: Option<Value>,
) -> Result<Value, EnvironmentError> {
    let text = |path: &std::path::Path| {
        path.to_str()
            .map(str::to_owned)
            .ok_or_else(|| unusable!("{}: the path is not UTF-8, which config.json must be", path.display()))
    };
    let arguments = order.inside.iter().map(|argument| {
        argument.to_str().ok_or_else(|| {
            unusable!("{}: the word is not UTF-8, which config.json must be", argument.display())
        })
    });
    let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // As in `runc spec`.
    let capabilities = ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"];
    let mount = |destination: &str, kind: &str, source: &str, options: &[&str]| json!({ "destination": destination, "type": kind, "source": source, "options": options });
    let plain = ["nosuid", "noexec", "nodev"];
    let mut pts = vec!["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"];
    if place != Separation::OfUser {
        pts.push("gid=5");
    }
    let mut mounts = vec![
        mount("/proc", "proc", "proc", &[]),
        mount("/dev", "tmpfs", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
        mount("/dev/pts", "devpts", "devpts", &pts),
        mount("/dev/shm", "tmpfs", "shm", &[&plain[..], &["mode=1777", "size=65536k"]].concat()),
        mount("/dev/mqueue", "mqueue", "mqueue", &plain),
    ];
    if place == Separation::OfUser {
        mounts.push(mount("/sys", "none", "/sys", &[&plain[..], &["rbind", "ro"]].concat()));
    } else {
        mounts.push(mount("/sys", "sysfs", "sysfs", &[&plain[..], &["ro"]].concat()));
    }
    if place == Separation::OfRoot {
        mounts.push(mount("/sys/fs/cgroup", "cgroup", "cgroup", &[&plain[..], &["relatime", "ro"]].concat()));
    }
    mounts.extend([mount("/tmp", "tmpfs", "tmpfs", &["nosuid", "nodev", "mode=1777"])]);
    mounts.extend(
        system::directories()
            .map(|directory| mount(directory, "bind", directory, &["rbind", "ro", "nosuid", "nodev"])),
    );
    mounts.extend([
        mount(WORK, "bind", &text(&bundle.work)?, &["bind", "rw", "nosuid", "nodev"]),
        mount(PROGRAM, "bind", &text(order.program)?, &["bind", "ro", "nosuid", "nodev"]),
    ]);
    let mut namespaces = vec!["pid", "network", "ipc", "uts", "mount"];
    let mut linux = json!({
        "maskedPaths": ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
            "/proc/timer_stats", "/proc/sched_debug", "/sys/firmware", "/proc/scsi"],
        "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
    });
    match place {
        Separation::OfRoot => {
            linux["resources"] = json!({ "devices": [{ "allow": false, "access": "rwm" }] });
            linux["cgroupsPath"] = json!(format!("/{}", order.id));
            // As `runc spec` does if cgroup v2 is mounted.
            if std::path::Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
                namespaces.push("cgroup");
            }
        }
        Separation::OfUser => {
            namespaces.push("user");
            linux["uidMappings"] = json!([{ "containerID": 0, "hostID": uid, "size": 1 }]);
            linux["gidMappings"] = json!([{ "containerID": 0, "hostID": gid, "size": 1 }]);
        }
        Separation::Sandbox => {}
    }
    linux["namespaces"] = namespaces.iter().map(|namespace| json!({ "type": namespace })).collect();
    if let Some(seccomp) = seccomp {
        linux["seccomp"] = seccomp;
    }
    Ok(json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": { "uid": 0, "gid": 0 },
            "args": arguments,
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "cwd": "/",
            "capabilities": { "bounding": capabilities, "effective": capabilities, "permitted": capabilities },
            "noNewPrivileges": true,
        },
        "root": { "path": text(&bundle.root)?, "readonly": true },
        "hostname": "tollgate",
        "mounts": mounts,
        "linux": linux,
    }))
}
