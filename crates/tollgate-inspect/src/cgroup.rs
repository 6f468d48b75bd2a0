//! Limits of the cgroups: the lowest limit of this process's cgroup and its ancestors, as far up as they are mounted here. A
//! limit above a container's own root is not visible from inside. Source: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1,
//! cgroups(7), proc_pid_mountinfo(5).

use tollgate_model::{FactValue, Unknown};

use crate::machine::{Answer, Machine, found};
use crate::mounts::{MOUNTS, Mount};
use crate::text::digits;

const MEMBERSHIPS: &str = "/proc/self/cgroup";
/// More nested cgroups than systems have.
const MAX_DEPTH: usize = 128;
/// The value by which v1 shows that memory is not limited: `LONG_MAX` in whole pages.
const V1_UNLIMITED: i64 = i64::MAX - 4095;

/// In processors.
pub(crate) fn cpu_max(machine: &Machine) -> Answer<FactValue> {
    limit(machine, "cpu", |machine, version, group| match version {
        Version::V1 => {
            let quota = machine.number(&format!("{group}/cpu.cfs_quota_us"))?;
            let period = machine.number(&format!("{group}/cpu.cfs_period_us"))?;
            let text = quota.map(|quota| format!("{quota} {}", period.value));
            text.parse("a quota and a period", quota_per_period)
        }
        Version::V2 => {
            machine.line(&format!("{group}/cpu.max"))?.parse("a quota and a period", quota_per_period)
        }
    })
}

/// In bytes.
pub(crate) fn memory_max(machine: &Machine) -> Answer<FactValue> {
    limit(machine, "memory", |machine, version, group| {
        bytes_in(machine, group, if version == Version::V1 { "memory.limit_in_bytes" } else { "memory.max" })
    })
}

/// Bytes that can still be allocated. File pages do not count as used, since the kernel reclaims them when memory is needed.
pub(crate) fn memory_left(machine: &Machine) -> Answer<FactValue> {
    limit(machine, "memory", |machine, version, group| {
        let (max, current, prefix) = match version {
            Version::V1 => ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
            Version::V2 => ("memory.max", "memory.current", ""),
        };
        let max = bytes_in(machine, group, max)?;
        let Some(bytes) = max.value else { return Ok(max) };
        let used = machine.number(&format!("{group}/{current}"))?.value;
        let stat = machine.text(&format!("{group}/memory.stat")).map(|text| text.value).unwrap_or_default();
        let of_files = |kind: &str| -> i64 {
            let key = format!("{prefix}{kind}_file ");
            stat.lines().find_map(|line| digits(line.strip_prefix(&key)?)).unwrap_or(0)
        };
        let files = of_files("inactive").saturating_add(of_files("active"));
        let left = bytes.saturating_sub(used.saturating_sub(files).max(0)).max(0);
        found(Some(left), format!("{} less {current}", max.source))
    })
}

/// Bytes beyond which tasks are throttled.
pub(crate) fn memory_high(machine: &Machine) -> Answer<FactValue> {
    limit(machine, "memory", |machine, version, group| match version {
        Version::V1 => Err(Unknown::Absent("the first version of control groups has no such limit".into())),
        Version::V2 => bytes_in(machine, group, "memory.high"),
    })
}

fn bytes_in(machine: &Machine, group: &str, file: &str) -> Answer<Option<i64>> {
    machine.line(&format!("{group}/{file}"))?.parse("a number of bytes or max", bytes_or_max)
}

/// The share of processor time under contention: of 100 in v2, 1024 in v1.
pub(crate) fn cpu_weight(machine: &Machine) -> Answer<i64> {
    let weight = of_own_group(machine, "cpu", "cpu.shares", "cpu.weight");
    weight.and_then(|line| line.parse("a whole number", digits::<i64>))
}

pub(crate) fn processors(machine: &Machine) -> Answer<String> {
    let set = of_own_group(machine, "cpuset", "cpuset.effective_cpus", "cpuset.cpus.effective");
    let set = set?.parse("a list of processors", crate::text::processors)?;
    Ok(set.map(|set| crate::text::show_processors(&set)))
}

pub(crate) fn io_max(machine: &Machine) -> Answer<Vec<String>> {
    let (_, own) = own_group(machine, "io")?;
    let text = machine.text(&format!("{own}/io.max"))?;
    Ok(text.map(|text| text.lines().map(str::to_owned).collect()))
}

/// `1`, `2`, or both.
pub(crate) fn version(machine: &Machine) -> Answer<&'static str> {
    machine.text(MEMBERSHIPS).and_then(|text| {
        let lines = || text.value.lines().filter_map(|line| line.split(':').nth(1));
        let second = lines().any(str::is_empty);
        // A hierarchy without controllers, such as systemd's, limits nothing.
        let first = lines().any(|controllers| !controllers.is_empty() && !controllers.starts_with("name="));
        match (first, second) {
            (true, true) => found("1 and 2", MEMBERSHIPS),
            (true, false) => found("1", MEMBERSHIPS),
            (false, true) => found("2", MEMBERSHIPS),
            (false, false) => Err(Unknown::Absent(format!("{MEMBERSHIPS} names no group"))),
        }
    })
}

/// The depth of this process's deepest control group below the root that it sees.
pub(crate) fn depth(machine: &Machine) -> Answer<i64> {
    let text = machine.text(MEMBERSHIPS)?;
    text.parse("a list of control groups", |text| {
        let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
        let depth = paths.map(|path| path.split('/').filter(|part| !part.is_empty()).count()).max()?;
        i64::try_from(depth).ok()
    })
}

/// The controllers that account or limit this process.
pub(crate) fn controllers(machine: &Machine) -> Answer<Vec<String>> {
    let memberships = machine.text(MEMBERSHIPS)?;
    let named = memberships.value.lines().filter_map(|line| line.split(':').nth(1));
    let mut all: Vec<String> = named
        .filter(|names| !names.starts_with("name="))
        .flat_map(|names| names.split(',').filter(|name| !name.is_empty()).map(str::to_owned))
        .collect();
    // No first version has a controller of this name, so the group is that of the second.
    if let Ok((_, own)) = own_group(machine, "cgroup.controllers")
        && let Ok(line) = machine.line(&format!("{own}/cgroup.controllers"))
    {
        all.extend(line.value.split_whitespace().map(str::to_owned));
    }
    found(all, format!("{MEMBERSHIPS}, cgroup.controllers"))
}

fn of_own_group(machine: &Machine, controller: &str, first: &str, second: &str) -> Answer<String> {
    let (version, own) = own_group(machine, controller)?;
    machine.line(&format!("{own}/{}", if version == Version::V1 { first } else { second }))
}

pub(crate) fn pids_max(machine: &Machine) -> Answer<FactValue> {
    limit(machine, "pids", |machine, _, group| {
        machine.line(&format!("{group}/pids.max"))?.parse("a number of tasks or max", number_or_max)
    })
}

pub(crate) fn throttled(machine: &Machine) -> Answer<i64> {
    let (_, own) = own_group(machine, "cpu")?;
    let path = format!("{own}/cpu.stat");
    let text = machine.text(&path)?;
    let count = text.value.lines().find_map(|line| digits(line.strip_prefix("nr_throttled ")?));
    count.map_or_else(
        || Err(Unknown::Absent(format!("{path} has no nr_throttled"))),
        |count| found(count, path.as_str()),
    )
}

fn own_group(machine: &Machine, controller: &str) -> Result<(Version, String), Unknown> {
    let (version, groups) = groups(machine, controller)?;
    Ok((version, groups.into_iter().next().unwrap_or_default()))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// The lowest limit that `read` finds in any cgroup; a cgroup without the file limits nothing. If none has it, the controller is
/// not active here, which is a different answer than "no limit".
fn limit<T: PartialOrd + Into<FactValue>>(
    machine: &Machine,
    controller: &str,
    read: impl Fn(&Machine, Version, &str) -> Answer<Option<T>>,
) -> Answer<FactValue> {
    let (version, groups) = groups(machine, controller)?;
    let mut tightest = None;
    let mut unlimited = None;
    for group in &groups {
        match read(machine, version, group) {
            Ok(found) => match found.value {
                Some(value) if tightest.as_ref().is_none_or(|(least, _)| value < *least) => {
                    tightest = Some((value, found.source));
                }
                Some(_) => {}
                None => unlimited = unlimited.or(Some(found.source)),
            },
            Err(Unknown::Absent(_)) => {}
            Err(why) => return Err(why),
        }
    }
    match (tightest, unlimited) {
        (Some((value, source)), _) => found(value.into(), source),
        (None, Some(source)) => found("no limit".into(), source),
        (None, None) => {
            let own = groups.first().map_or("", String::as_str);
            Err(Unknown::Absent(format!("the {controller} controller limits nothing in {own} or above it")))
        }
    }
}

fn groups(machine: &Machine, controller: &str) -> Result<(Version, Vec<String>), Unknown> {
    let memberships = machine.text(MEMBERSHIPS)?.value;
    let (version, path) = membership(&memberships, controller)
        .ok_or_else(|| Unknown::Absent(format!("{MEMBERSHIPS} has no group for {controller}")))?;
    let mounts = machine.text(MOUNTS)?.value;
    let (mount, below) = mounts
        .lines()
        .filter_map(Mount::parse)
        .filter(|mount| serves(mount, version, controller))
        .find_map(|mount| Some((mount.point.clone(), below(path, &mount.root)?.to_owned())))
        .ok_or_else(|| {
            Unknown::Absent(format!("{MOUNTS} has no {controller} hierarchy with {path} in it"))
        })?;
    let parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty()).collect();
    if parts.len() > MAX_DEPTH {
        return Err(Unknown::Unreadable(format!("{MEMBERSHIPS}: more than {MAX_DEPTH} nested groups")));
    }
    let mount = mount.trim_end_matches('/');
    let group = |depth| std::iter::once(mount).chain(parts[..depth].iter().copied());
    let directories =
        (0..=parts.len()).rev().map(|depth| group(depth).collect::<Vec<_>>().join("/")).collect();
    Ok((version, directories))
}

/// The cgroup path of this process for a controller, from lines `ID:CONTROLLERS:PATH`. A controller that is in no v1 hierarchy
/// belongs to v2, whose line is `0::PATH`.
fn membership<'a>(text: &'a str, controller: &str) -> Option<(Version, &'a str)> {
    let mut unified = None;
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        if controllers.split(',').any(|name| name == controller) {
            return Some((Version::V1, path));
        }
        if controllers.is_empty() {
            unified = Some((Version::V2, path));
        }
    }
    unified
}

/// `path` relative to `root`; `None` if it is not below. A path with `..` leads out of the mount.
fn below<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(root.trim_end_matches('/'))?;
    let inside = rest.is_empty() || rest.starts_with('/');
    (inside && !rest.split('/').any(|part| part == "..")).then_some(rest)
}

fn serves(mount: &Mount, version: Version, controller: &str) -> bool {
    match version {
        Version::V1 => mount.file_system == "cgroup" && mount.has(controller),
        Version::V2 => mount.file_system == "cgroup2",
    }
}

/// Parses `50000 100000`, half a processor. No quota is `max` or -1.
fn quota_per_period(text: &str) -> Option<Option<f64>> {
    let (quota, period) = text.split_once(' ')?;
    let period: u64 = digits(period.trim()).filter(|period| *period > 0)?;
    if matches!(quota, "max" | "-1") {
        return Some(None);
    }
    let quota: u64 = digits(quota)?;
    Some(Some(quota as f64 / period as f64))
}

fn bytes_or_max(text: &str) -> Option<Option<i64>> {
    Some(number_or_max(text)?.filter(|bytes| *bytes < V1_UNLIMITED))
}

fn number_or_max(text: &str) -> Option<Option<i64>> {
    if text == "max" { Some(None) } else { digits(text).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memberships() {
        let hybrid = "4:cpu,cpuacct:/a\n3:name=systemd:/s\n0::/u:v\n";
        assert_eq!(membership(hybrid, "cpu"), Some((Version::V1, "/a")));
        assert_eq!(membership(hybrid, "pids"), Some((Version::V2, "/u:v")));
        assert_eq!(membership("4:cpuset:/a\n", "cpu"), None);
        assert_eq!(membership("nonsense\n\n", "cpu"), None);
    }

    #[test]
    fn hierarchies() {
        let mount = Mount::parse("31 23 0:26 / /sys/fs/cgroup ro - cgroup cgroup rw,cpu,cpuacct").unwrap();
        assert!(serves(&mount, Version::V1, "cpu") && !serves(&mount, Version::V1, "cpuset"));
        assert!(!serves(&mount, Version::V2, "cpu"));
    }

    #[test]
    fn paths_below_roots() {
        assert_eq!(below("/docker/x/y", "/docker/x"), Some("/y"));
        assert_eq!(below("/docker/x", "/docker/x"), Some(""));
        assert_eq!(below("/docker/xy", "/docker/x"), None);
        assert_eq!(below("/a", "/"), Some("/a"));
        assert_eq!(below("/../host", "/"), None);
    }

    #[test]
    fn limits() {
        assert_eq!(quota_per_period("150000 100000"), Some(Some(1.5)));
        assert_eq!(quota_per_period("max 100000"), Some(None));
        assert_eq!(quota_per_period("-1 100000"), Some(None));
        for text in ["", "max", "100000", "5 0", "-2 100000", "a b"] {
            assert_eq!(quota_per_period(text), None, "{text}");
        }
        assert_eq!(bytes_or_max("9223372036854771712"), Some(None));
        assert_eq!(bytes_or_max("1048576"), Some(Some(1 << 20)));
        assert_eq!(bytes_or_max("-1"), None);
    }

    takes_any! {
        text in "\\PC{0,120}|[0-9a-z:,/ \\\\.\n-]{0,200}", name in "[a-z]{0,6}" =>
        membership(&text, &name), below(&text, &name),
        quota_per_period(&text), bytes_or_max(&text), number_or_max(&text)
    }
}
