//! The processors, the ones that this process may use, and what they share. Source:
//! Documentation/ABI/stable/sysfs-devices-system-cpu and Documentation/admin-guide/cputopology.rst.

use std::collections::BTreeSet;

use tollgate_model::{Fact, Unknown};

use crate::machine::{Answer, Found, Machine, fact, found, unknown};
use crate::text::{self, digits, show_processors};
use crate::{calls, leaves::CacheLeaf, process};

const CPU: &str = "/sys/devices/system/cpu";

pub(crate) fn count_of(machine: &Machine, name: &str) -> Answer<i64> {
    set(machine, name).map(count)
}

pub(crate) fn list_of(machine: &Machine, name: &str) -> Answer<String> {
    set(machine, name).map(list)
}

/// The attributes of processors that share a package or a core, and their names before Linux 5.3.
pub(crate) const PACKAGES: [&str; 2] = ["package_cpus_list", "core_siblings_list"];
pub(crate) const CORES: [&str; 2] = ["core_cpus_list", "thread_siblings_list"];

pub(crate) fn number_of_groups(machine: &Machine, attributes: [&str; 2]) -> Answer<i64> {
    Ok(groups(machine, attributes)?.map(number_of))
}

pub(crate) fn siblings(machine: &Machine) -> Answer<Vec<String>> {
    Ok(groups(machine, CORES)?.map(|cores| cores.iter().map(|core| show_processors(core)).collect()))
}

pub(crate) fn threads_per_core(machine: &Machine) -> Answer<i64> {
    Ok(groups(machine, CORES)?.map(|cores| cores.into_iter().map(number_of).max().unwrap_or(0)))
}

pub(crate) fn shared_by_cpuid(machine: &Machine, of: fn((u32, u32)) -> u32) -> Answer<i64> {
    let sharing = machine.leaves()?.sharing();
    let why = || Unknown::Absent("neither CPUID.1fh nor CPUID.bh counts processors".to_owned());
    let (leaf, threads, package) = sharing.ok_or_else(why)?;
    found(i64::from(of((threads, package))), format!("CPUID.{leaf:x}h:EBX"))
}

pub(crate) fn nodes(machine: &Machine) -> Answer<i64> {
    let nodes = machine.line("/sys/devices/system/node/online");
    nodes.and_then(|line| line.parse("a list of nodes", text::processors)).map(count)
}

/// The processors of each memory node, `0: 0-23`; empty for a node that has only memory.
pub(crate) fn node_processors(machine: &Machine) -> Answer<Vec<String>> {
    of_nodes(machine, "cpulist")
}

/// The distances between nodes, `0: 10 21`: 10 is the node itself (ACPI, System Locality Distance Information Table).
pub(crate) fn node_distances(machine: &Machine) -> Answer<Vec<String>> {
    of_nodes(machine, "distance")
}

fn of_nodes(machine: &Machine, file: &str) -> Answer<Vec<String>> {
    const NODES: &str = "/sys/devices/system/node";
    let nodes = machine.line(&format!("{NODES}/online"))?.parse("a list of nodes", text::processors)?;
    let line = |node: &u32| {
        let line = machine.line(&format!("{NODES}/node{node}/{file}"))?;
        Ok(format!("{node}: {}", line.value.split_whitespace().collect::<Vec<_>>().join(" ")))
    };
    let lines: Result<Vec<String>, Unknown> = nodes.value.iter().map(line).collect();
    found(lines?, format!("{NODES}/node*/{file}"))
}

/// The caches of processor 0: `cache.l1d` in bytes, `cache.l1d.ways`, `cache.l1d.shared`, the processors that share it, and if
/// CPUID differs, `cache.l1d.cpuid`. Over all processors: `cache.l1d.instances`, and `cache.l1d.sizes` if they differ.
pub(crate) fn caches(machine: &Machine) -> Vec<(String, Fact)> {
    let mut facts = caches_of_kernel(machine);
    let differing: Vec<(String, Fact)> = match machine.leaves() {
        Ok(leaves) => other_caches(&facts, &leaves.caches()),
        Err(_) => Vec::new(),
    };
    facts.extend(differing);
    facts
}

/// CPUID's answer if the kernel's differs or is missing.
fn other_caches(kernel: &[(String, Fact)], reported: &[CacheLeaf]) -> Vec<(String, Fact)> {
    let of_kernel = |name: &str| {
        let fact = kernel.iter().find(|(other, _)| other.strip_prefix("cache.") == Some(name));
        fact.and_then(|(_, fact)| fact.value()?.as_f64())
    };
    let cpuid = |name: &str, fact: Fact| (format!("cache.{name}.cpuid"), fact);
    let mut facts: Vec<(String, Fact)> = reported
        .iter()
        .filter(|cache| of_kernel(&cache.name) != Some(cache.bytes as f64))
        .map(|cache| cpuid(&cache.name, fact(found(cache.bytes as i64, cache.source.as_str()))))
        .collect();
    if !reported.is_empty() {
        let names = kernel.iter().filter_map(|(name, _)| name.strip_prefix("cache."));
        let of_kernel_alone = names
            .filter(|name| !name.contains('.') && !reported.iter().any(|cache| cache.name == *name))
            .map(|name| cpuid(name, unknown(Unknown::Absent("CPUID describes no such cache".into()))));
        facts.extend(of_kernel_alone.collect::<Vec<_>>());
    }
    facts
}

fn caches_of_kernel(machine: &Machine) -> Vec<(String, Fact)> {
    let directory = format!("{CPU}/cpu0/cache");
    let names = match machine.names(&directory) {
        Ok(names) => names.value,
        Err(why) => return vec![("cache".into(), unknown(why))],
    };
    let indices = names.iter().filter(|name| name.strip_prefix("index").and_then(digits::<u8>).is_some());
    let facts: Vec<_> = indices.flat_map(|index| cache(machine, index)).collect();
    if facts.is_empty() {
        let why = Unknown::Absent(format!("{directory} lists no caches"));
        return vec![("cache".into(), unknown(why))];
    }
    facts
}

/// Empty for a cache of unknown level or kind: it has no name.
fn cache(machine: &Machine, index: &str) -> Vec<(String, Fact)> {
    let directory = format!("{CPU}/cpu0/cache/{index}");
    let attribute = |name: &str| machine.line(&format!("{directory}/{name}"));
    let level = attribute("level").ok().and_then(|found| digits::<u8>(&found.value));
    let suffix = match attribute("type").as_ref().map(|found| found.value.as_str()) {
        Ok("Data") => "d",
        Ok("Instruction") => "i",
        Ok("Unified") => "",
        _ => return Vec::new(),
    };
    let Some(level) = level else { return Vec::new() };
    let short = format!("l{level}{suffix}");
    let name = format!("cache.{short}");
    let size = attribute("size").and_then(|line| line.parse("a size", text::size));
    let shared = attribute("shared_cpu_list");
    let shared = shared.and_then(|line| line.parse("a list of processors", text::processors)).map(list);
    let ways = attribute("ways_of_associativity").and_then(|line| line.parse("a number", digits::<i64>));
    let ways = ways.or_else(|why| ways_by_cpuid(machine, &short).ok_or(why));
    let mut facts = vec![(format!("{name}.shared"), fact(shared)), (format!("{name}.ways"), fact(ways))];
    let instances = instances(machine, index);
    let sizes = instances.as_ref().map(|instances| instances.value.as_slice()).unwrap_or_default();
    if sizes.windows(2).any(|pair| pair[0] != pair[1]) {
        let source = format!("{CPU}/cpu*/cache/{index}/size");
        facts.push((format!("{name}.sizes"), fact(found(by_number(sizes), source))));
    }
    facts.push((format!("{name}.instances"), fact(instances.map(|instances| instances.map(number_of)))));
    facts.push((name, fact(size)));
    facts
}

fn ways_by_cpuid(machine: &Machine, name: &str) -> Option<Found<i64>> {
    let cache = machine.leaves().ok()?.caches().into_iter().find(|cache| cache.name == name)?;
    found(i64::from(cache.ways), cache.source).ok()
}

/// The sizes in bytes of a cache's instances. Several processors share an instance; it is read once, from the first of them.
fn instances(machine: &Machine, index: &str) -> Answer<Vec<i64>> {
    let mut rest: BTreeSet<u32> = set(machine, "online")?.value.into_iter().collect();
    let mut sizes = Vec::new();
    while let Some(processor) = rest.pop_first() {
        let attribute = |name: &str| machine.line(&format!("{CPU}/cpu{processor}/cache/{index}/{name}"));
        let shared = attribute("shared_cpu_list")?.parse("a list of processors", text::processors)?.value;
        sizes.push(attribute("size")?.parse("a size", text::size)?.value);
        shared.iter().for_each(|sharing| {
            rest.remove(sharing);
        });
    }
    found(sizes, format!("{CPU}/cpu*/cache/{index}/shared_cpu_list"))
}

fn by_number(sizes: &[i64]) -> Vec<String> {
    let different: BTreeSet<i64> = sizes.iter().copied().collect();
    let number = |size: i64| sizes.iter().filter(|&&other| other == size).count();
    different.into_iter().rev().map(|size| format!("{} of {}K", number(size), size >> 10)).collect()
}

/// One of the sets of processors, or `allowed`: those of this process. Empty text is the empty set: some sets usually are.
fn set(machine: &Machine, name: &str) -> Answer<Vec<u32>> {
    if name != "allowed" {
        return machine.text(&format!("{CPU}/{name}"))?.parse("a list of processors", text::processors);
    }
    let listed = process::status(machine, "Cpus_allowed_list")
        .and_then(|line| line.parse("a list of processors", text::processors));
    machine.or_call(listed, "sched_getaffinity(2)", calls::allowed_processors)
}

/// The online processors, grouped by a topology attribute. Each group is read once, from its first processor.
fn groups(machine: &Machine, [attribute, older]: [&str; 2]) -> Answer<Vec<Vec<u32>>> {
    let mut rest: BTreeSet<u32> = set(machine, "online")?.value.into_iter().collect();
    let mut groups = Vec::new();
    while let Some(processor) = rest.pop_first() {
        let read = |name: &str| machine.line(&format!("{CPU}/cpu{processor}/topology/{name}"));
        let line = match read(attribute) {
            Err(Unknown::Absent(_)) => read(older)?,
            answer => answer?,
        };
        let group = line.parse("a list of processors", text::processors)?.value;
        rest.retain(|processor| !group.contains(processor));
        groups.push(group);
    }
    found(groups, format!("{CPU}/cpu*/topology/{attribute}"))
}

fn count(set: Found<Vec<u32>>) -> Found<i64> {
    set.map(number_of)
}

fn list(set: Found<Vec<u32>>) -> Found<String> {
    set.map(|set| show_processors(&set))
}

fn number_of<T>(items: Vec<T>) -> i64 {
    i64::try_from(items.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cpuid_says_is_said_where_it_differs() {
        let known = |name: &str, bytes: i64| (format!("cache.{name}"), fact(found(bytes, "sysfs")));
        let kernel = [known("l1d", 49_152), known("l2", 1_310_720), known("l3", 16 << 20)];
        let cpuid = |name: &str, bytes: u64| {
            let (name, source) = (name.into(), "CPUID.4.0".into());
            CacheLeaf { name, bytes, ways: 8, source }
        };
        let facts =
            other_caches(&kernel, &[cpuid("l1d", 49_152), cpuid("l1i", 32_768), cpuid("l2", 2 << 20)]);
        let names: Vec<&str> = facts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["cache.l1i.cpuid", "cache.l2.cpuid", "cache.l3.cpuid"]);
        assert_eq!(facts[1].1.value().and_then(|value| value.as_f64()), Some((2 << 20) as f64));
        assert_eq!(facts[2].1.value(), None);
        assert_eq!(by_number(&[2048, 3072, 3072]), ["2 of 3K", "1 of 2K"]);
        assert!(other_caches(&kernel, &[]).is_empty(), "a processor without CPUID contradicts nothing");
    }
}
