use hashbrown::HashMap;
use tollgate_model::traced::{BUCKETS, Call, Parts, bucket};

use crate::{calls, outcome::slowest_first};

/// The most distinct calls that are counted separately. The kernel's tables have some 900, but a program may call any number.
const MOST: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub number: i64,
    pub is_32_bit: bool,
}

impl Key {
    pub fn base_name(self) -> Option<&'static str> {
        calls::base_name(u32::try_from(self.number).ok()?, self.is_32_bit)
    }
}

#[derive(Debug, Default)]
struct Sums {
    count: u64,
    errors: u64,
    unfinished: u64,
    max_ns: u64,
    parts: Parts,
    histogram: Vec<u32>,
}

#[derive(Debug, Default)]
pub struct Table {
    by_call: HashMap<Key, Sums>,
    with_histograms: bool,
    pub missed: u64,
}

impl Table {
    pub fn with_histograms() -> Self {
        Self { with_histograms: true, ..Self::default() }
    }

    fn sums(&mut self, key: Key) -> Option<&mut Sums> {
        if self.by_call.len() >= MOST && !self.by_call.contains_key(&key) {
            self.missed += 1;
            return None;
        }
        Some(self.by_call.entry(key).or_default())
    }

    pub fn add(&mut self, key: Key, parts: Parts, is_error: bool) {
        let with_histogram = self.with_histograms;
        let Some(sums) = self.sums(key) else { return };
        let total = parts.total_ns();
        sums.count += 1;
        sums.errors += u64::from(is_error);
        sums.max_ns = sums.max_ns.max(total);
        sums.parts = sums.parts.plus(parts);
        if with_histogram {
            if sums.histogram.is_empty() {
                sums.histogram = vec![0; BUCKETS as usize];
            }
            if let Some(calls) = sums.histogram.get_mut(bucket(total) as usize) {
                *calls = calls.saturating_add(1);
            }
        }
    }

    pub fn add_unfinished(&mut self, key: Key) {
        if let Some(sums) = self.sums(key) {
            sums.unfinished += 1;
        }
    }

    pub fn has_failed(&self, name: &str) -> bool {
        self.by_call.iter().any(|(key, sums)| sums.errors > 0 && key.base_name() == Some(name))
    }

    pub fn into_calls(self) -> Vec<Call> {
        let mut calls: Vec<Call> = self.by_call.into_iter().map(|(key, sums)| sums.into_call(key)).collect();
        slowest_first(&mut calls);
        calls
    }
}

impl Sums {
    fn into_call(self, key: Key) -> Call {
        let histogram = (0u32..).zip(&self.histogram).filter(|(_, calls)| **calls > 0);
        Call {
            name: calls::name(key.number, key.is_32_bit),
            count: self.count,
            errors: self.errors,
            unfinished: self.unfinished,
            stopped: 0,
            total_ns: self.parts.total_ns(),
            max_ns: self.max_ns,
            parts: self.parts,
            histogram: histogram.map(|(bucket, calls)| (bucket, u64::from(*calls))).collect(),
        }
    }
}
