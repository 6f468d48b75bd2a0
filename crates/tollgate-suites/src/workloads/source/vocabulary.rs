//! The words of generated names. The digest of the tree depends on them.

/// Nouns: structures, files, and the objects of functions.
pub(super) const NOUNS: [&str; 40] = [
    "queue", "table", "record", "cursor", "window", "packet", "buffer", "index", "bucket", "frame", "lease",
    "journal", "ledger", "channel", "vector", "segment", "region", "counter", "ticket", "cache", "batch",
    "token", "schedule", "page", "slot", "range", "header", "extent", "snapshot", "filter", "route",
    "signal", "timer", "stream", "symbol", "branch", "parcel", "anchor", "beacon", "harbor",
];

pub(super) const VERBS: [&str; 20] = [
    "open", "close", "read", "write", "update", "insert", "remove", "merge", "split", "fold", "scan",
    "check", "count", "reset", "flush", "rotate", "balance", "resolve", "pack", "shift",
];

pub(super) const FIELDS: [&str; 12] = [
    "count", "total", "limit", "offset", "flags", "depth", "weight", "owner", "serial", "pending", "credit",
    "budget",
];

/// Adjectives of comments.
pub(super) const QUALITIES: [&str; 12] = [
    "pending",
    "oldest",
    "remaining",
    "shared",
    "empty",
    "locked",
    "stale",
    "current",
    "outer",
    "spare",
    "first",
    "nested",
];

/// Names in marked comments.
pub(in crate::workloads) const PEOPLE: [&str; 8] =
    ["anna", "boris", "chen", "dora", "emil", "farid", "grete", "hiro"];

const DIRECTORIES: [&str; 20] = [
    "alloc", "block", "codec", "disk", "event", "format", "graph", "hash", "input", "job", "key", "link",
    "mount", "net", "object", "parse", "quota", "render", "store", "trace",
];
const KINDS: [&str; 5] = ["", "_core", "_ops", "_ext", "_util"];

pub(super) const MOST_DIRECTORIES: usize = DIRECTORIES.len() * KINDS.len();

/// Returns the name of a directory by its number, below [`MOST_DIRECTORIES`].
pub(super) fn directory(number: usize) -> String {
    let kind = KINDS[number / DIRECTORIES.len() % KINDS.len()];
    format!("{}{kind}", DIRECTORIES[number % DIRECTORIES.len()])
}
