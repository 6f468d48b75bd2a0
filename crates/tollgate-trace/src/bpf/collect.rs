//! Reads the totals from the maps after the programs are detached.

use std::collections::{BTreeMap, HashMap};

use tollgate_model::traced::{Call, Idle, MOST_ENTRIES, Missed, Parts, Process};

use super::files;
use super::layout::{
    Doing, EventRecord, Lane, PairRecord, Plain, ProcessRecord, RecentPair, Slot, Totals, parts,
};
use super::maps::{MOST_PAIRS, MOST_PROCESSES, Maps, Tree};
use super::names;
use crate::outcome::{Collected, Event, earliest_first, slowest_first};

pub(super) struct End {
    /// When tracing stopped, by CLOCK_MONOTONIC.
    pub now: u64,
    /// The busy and idle real time until then, if they were read at that time.
    pub real: Option<(u64, Idle)>,
    /// Program runs that the kernel skipped.
    pub misses: u64,
    pub notes: Vec<String>,
}

pub(super) fn collect(maps: &Maps, end: End) -> Collected {
    let Some(totals) = maps.totals() else { return Collected::default() };
    let (calls, outside) = calls(maps, &totals);
    let (busy_ns, idle) = end.real.unwrap_or_else(|| real_time(&totals, end.now));
    let mut missed = missed(&totals, maps, end.misses);
    let lanes: Vec<Lane> = maps.lanes(0).map(|(lane, _)| lane).collect();
    let tree =
        maps.tree.as_ref().map(|tree| processes(tree, &lanes, &totals, &mut missed)).unwrap_or_default();
    let (files, misaligned) =
        maps.files.as_ref().map(|files| files::times(files, &lanes, &mut missed)).unwrap_or_default();
    Collected {
        began_ns: totals.began,
        stopped_ns: end.now,
        idle: Some(idle),
        busy_ns: Some(busy_ns),
        processes: totals.processes,
        threads: totals.threads,
        calls,
        outside: maps.traces_all().then_some(outside),
        blocked: Vec::new(),
        stacks: Vec::new(),
        tree,
        files,
        misaligned,
        missed,
        notes: end.notes,
        events: events(maps, &totals),
    }
}

/// Reads what changes with every call, while threads go on.
pub(super) fn so_far(maps: &Maps, now: u64) -> Collected {
    let Some(totals) = maps.totals() else { return Collected::default() };
    let (calls, outside) = calls(maps, &totals);
    let (busy_ns, idle) = real_time(&totals, now);
    let there = parts(totals.glance, totals.glance_spent);
    Collected {
        stopped_ns: now,
        idle: Some(idle),
        busy_ns: Some(busy_ns),
        processes: totals.processes,
        threads: totals.threads,
        calls,
        outside: maps.traces_all().then_some(outside.plus(there)),
        ..Collected::default()
    }
}

pub(super) fn real_time_of(maps: &Maps, now: u64) -> (u64, Idle) {
    maps.totals().map(|totals| real_time(&totals, now)).unwrap_or_default()
}

/// Returns the real time in which a thread ran, and idle time by cause: finished stretches, and the current one until `now`.
fn real_time(totals: &Totals, now: u64) -> (u64, Idle) {
    let mut stretches = totals.stretches;
    let lasts = stretch_of(totals.census);
    stretches[lasts] = stretches[lasts].wrapping_add(now);
    // Processors read the clock one after the other, so an empty stretch may come out slightly negative.
    let of = |doing: Doing| (stretches[doing as usize] as i64).max(0) as u64;
    let idle =
        Idle { runqueue_ns: of(Doing::Queued), disk_ns: of(Doing::Disk), sleep_ns: of(Doing::Sleeping) };
    (of(Doing::Running), idle)
}

/// Mirrors `programs::stretch_of`.
fn stretch_of(census: u64) -> usize {
    const COUNT: u64 = (1 << 20) - 1;
    match census {
        _ if census & Totals::UNKNOWN != 0 => 4,
        _ if census & COUNT != 0 => Doing::Running as usize,
        _ if census >> 20 & COUNT != 0 => Doing::Queued as usize,
        _ if census >> 40 & COUNT != 0 => Doing::Disk as usize,
        _ => Doing::Sleeping as usize,
    }
}

fn calls(maps: &Maps, totals: &Totals) -> (Vec<Call>, Parts) {
    let used = (totals.slots as usize).min(totals.call_of.len());
    let mut by_call: BTreeMap<u16, Slot> = BTreeMap::new();
    let mut outside = Lane::default();
    for (lane, slots) in maps.lanes(used) {
        outside.outside += lane.outside;
        add(&mut outside.outside_spent, &lane.outside_spent);
        for (slot, call) in slots.iter().zip(totals.call_of) {
            by_call.entry(call).and_modify(|sum| sum.add(slot)).or_insert(*slot);
        }
    }
    let mut calls: Vec<Call> = by_call.into_iter().map(|(call, slot)| slot.call(call)).collect();
    calls.retain(|call| call.count + call.unfinished > 0);
    slowest_first(&mut calls);
    (calls, parts(outside.outside, outside.outside_spent))
}

fn add(sums: &mut [u64], more: &[u64]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.wrapping_add(*more);
    }
}

impl Slot {
    fn add(&mut self, other: &Self) {
        self.sums.errors += other.sums.errors;
        self.sums.total += other.sums.total;
        self.sums.max = self.sums.max.max(other.sums.max);
        self.sums.unfinished += other.sums.unfinished;
        self.sums.stopped += other.sums.stopped;
        add(&mut self.sums.spent, &other.sums.spent);
        add(&mut self.histogram, &other.histogram);
    }

    fn call(&self, index: u16) -> Call {
        let histogram = (0u32..).zip(self.histogram).filter(|(_, calls)| *calls > 0).collect();
        let sums = PairRecord { count: self.histogram.iter().sum(), ..self.sums };
        Call { histogram, ..sums.call(names::shown(index.into())) }
    }
}

/// Lists uncounted events. Each is a limit that was reached.
fn missed(totals: &Totals, maps: &Maps, misses: u64) -> Vec<Missed> {
    let events = maps.events.as_ref().map_or(0, |events| totals.events.saturating_sub(events.room as u64));
    let lost = [
        (totals.lost_threads, "threads that could not be traced"),
        (totals.lost_calls, "calls of kinds for which there was no room"),
        (totals.lost_processes, "processes for which there was no room in the tree"),
        (totals.lost_pairs, "calls of processes for which there was no room in the tree"),
        (totals.lost_files, "operations on files for which there was no room"),
        (totals.lost_names, "names of files for which there was no room"),
        (totals.lost_blocks, "sleeps of kinds for which there was no room"),
        (events, "single calls for which there was no room in the timeline"),
        (misses, "events that the kernel did not report, because they came within another one"),
    ];
    let lost = lost.into_iter().filter(|(number, _)| *number > 0);
    lost.map(|(number, what)| Missed { what: what.to_owned(), number }).collect()
}

fn processes(tree: &Tree, lanes: &[Lane], totals: &Totals, missed: &mut Vec<Missed>) -> Vec<Process> {
    let mut records: BTreeMap<u32, ProcessRecord> = BTreeMap::new();
    let mut pairs: HashMap<(u32, u32), PairRecord> = HashMap::new();
    let read = tree.processes.entries(MOST_PROCESSES as usize, |key, value| {
        if let (Some(key), Some(record)) = (word(key), ProcessRecord::read(value)) {
            records.insert(key, record);
        }
    });
    let read = read.and_then(|()| {
        tree.pairs.entries(MOST_PAIRS as usize, |key, value| {
            let pair = (word(key), key.get(4..).and_then(word), PairRecord::read(value));
            if let (Some(call), Some(process), Some(pair)) = pair {
                pairs.insert((process, call), pair);
            }
        })
    });
    for recent in lanes.iter().flat_map(|lane| &lane.pairs).filter(|recent| recent.count > 0) {
        pairs.entry((recent.process, recent.call)).or_default().add(recent);
    }
    if read.is_err() {
        let what = "processes of the tree that could not be read".to_owned();
        missed.push(Missed { what, number: totals.processes.saturating_sub(records.len() as u64) });
    }
    let mut calls: HashMap<u32, Vec<Call>> = HashMap::new();
    let mut names: HashMap<u32, String> = HashMap::new();
    for ((process, call), pair) in pairs {
        let name = names.entry(call).or_insert_with(|| names::shown(call as usize)).clone();
        calls.entry(process).or_default().push(pair.call(name));
    }
    numbered(records, calls, totals)
}

/// Renumbers processes without the gaps that serial numbers have if the map was full. A process whose parent is missing moves up
/// to the command. A process that is its own parent has none: the command, and processes that ran before.
fn numbered(
    records: BTreeMap<u32, ProcessRecord>,
    mut calls: HashMap<u32, Vec<Call>>,
    totals: &Totals,
) -> Vec<Process> {
    let ids: HashMap<u32, u32> = records.keys().zip(0..).map(|(serial, id)| (*serial, id)).collect();
    let since = |moment: u64| moment.saturating_sub(totals.began);
    let process = |(serial, record): (u32, ProcessRecord)| {
        let mut calls = calls.remove(&serial).unwrap_or_default();
        slowest_first(&mut calls);
        Process {
            id: ids.get(&serial).copied().unwrap_or_default(),
            parent: (serial != record.parent).then(|| ids.get(&record.parent).copied().unwrap_or_default()),
            pid: record.pid,
            name: record.name(),
            execs: record.execs,
            threads: record.threads.into(),
            began_ns: since(record.began),
            ended_ns: (record.ended > 0).then(|| since(record.ended)),
            outside: parts(record.outside, record.outside_spent),
            calls,
        }
    };
    records.into_iter().take(MOST_ENTRIES).map(process).collect()
}

impl ProcessRecord {
    fn name(&self) -> String {
        let bytes: Vec<u8> =
            self.name.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl PairRecord {
    fn add(&mut self, recent: &RecentPair) {
        self.count += recent.count;
        self.errors += recent.errors;
        self.total += recent.total;
        self.max = self.max.max(recent.max);
    }

    fn call(&self, name: String) -> Call {
        Call {
            name,
            count: self.count + self.stopped,
            errors: self.errors,
            unfinished: self.unfinished,
            stopped: self.stopped,
            total_ns: self.total,
            max_ns: self.max,
            parts: parts(self.total, self.spent),
            histogram: Vec::new(),
        }
    }
}

fn events(maps: &Maps, totals: &Totals) -> Vec<Event> {
    let Some(events) = &maps.events else { return Vec::new() };
    let mut names: HashMap<u32, String> = HashMap::new();
    let mut event = |record: EventRecord| Event {
        process: record.process,
        thread: record.thread,
        call: names.entry(record.call).or_insert_with(|| names::shown(record.call as usize)).clone(),
        began_ns: record.began.saturating_sub(totals.began),
        parts: parts(record.total, record.spent),
        result: record.result as i64,
        argument: record.argument,
    };
    let kept = events.records(totals.events as usize).filter(|record| record.written != 0);
    let mut all: Vec<Event> = kept.map(&mut event).collect();
    earliest_first(&mut all);
    all
}

fn word(bytes: &[u8]) -> Option<u32> {
    bytes.get(..4)?.try_into().ok().map(u32::from_ne_bytes)
}
