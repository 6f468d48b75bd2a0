//! Time by file, from the programs' records. Assembles paths, and adds up files with the same path.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::{fs, path::Path};

use tollgate_model::traced::{FileTime, MOST_ENTRIES, Misaligned, Missed};

use super::layout::{
    FAULT, FileId, FileKey, FileRecord, Lane, NameRecord, PATH, PathKey, Plain, RecentFile, RefusedRecord,
    parts,
};
use super::maps::{Files, MOST_FILES, MOST_REFUSED};
use super::programs::files::{ANON_INODE, PIPE, SOCKET};
use super::{names, operations};
use crate::direct::{self, Buffer, MOST_BUFFERS, Need, Refused};
use crate::outcome::{Operations, slowest_files};

const DEEPEST: usize = 64;

type Sums = HashMap<String, Operations>;

pub(super) fn times(
    files: &Files,
    lanes: &[Lane],
    missed: &mut Vec<Missed>,
) -> (Vec<FileTime>, Vec<Misaligned>) {
    let mut names = Names::default();
    let mut sums = Sums::new();
    let most = MOST_FILES as usize;
    let read = files.names.entries(most, |key, value| names.add(key, value)).and_then(|()| {
        files.files.entries(most, |key, value| {
            if let (Some(key), Some(record)) = (FileKey::read(key), FileRecord::read(value)) {
                add(&mut sums, names.path(key.id), key.call, record);
            }
        })
    });
    let read = read.and_then(|()| {
        files.paths.entries(most, |key, value| {
            if let (Some(key), Some(record)) = (PathKey::read(key), FileRecord::read(value)) {
                add(&mut sums, names.named(&key), key.call, record);
            }
        })
    });
    for recent in lanes.iter().flat_map(|lane| &lane.files).filter(|recent| recent.count > 0) {
        add(&mut sums, names.path(recent.key.id), recent.key.call, recent.record());
    }
    let mut misaligned = Vec::new();
    let read = read.and_then(|()| {
        files.refused.entries(MOST_REFUSED as usize, |key, value| {
            if let (Some(key), Some(record)) = (FileKey::read(key), RefusedRecord::read(value)) {
                misaligned.extend(refused(names.path(key.id), key, &record));
            }
        })
    });
    misaligned.sort_by(|a: &Misaligned, b| {
        b.count.cmp(&a.count).then_with(|| (&a.path, &a.call).cmp(&(&b.path, &b.call)))
    });
    if read.is_err() {
        missed.push(Missed { what: "tables of files that could not be read".to_owned(), number: 1 });
    }
    let mut all = slowest_files(sums);
    let beyond = all.len().saturating_sub(MOST_ENTRIES);
    if beyond > 0 {
        all.truncate(MOST_ENTRIES);
        missed.push(Missed { what: "files that took least".to_owned(), number: beyond as u64 });
    }
    (all, misaligned)
}

/// The requirements of the file are queried now, after the command has ended: by its path, if that still names the same file.
fn refused(path: String, key: FileKey, record: &RefusedRecord) -> Option<Misaligned> {
    let call = names::base(key.call as usize)?;
    let (takes_offset, is_vector) = direct::shape(call)?;
    let [address, length, offset] = record.arguments;
    let buffers = if is_vector {
        let pairs = record.vector.chunks_exact(2).take(length.min(MOST_BUFFERS as u64) as usize);
        pairs.map(|pair| Buffer { address: pair[0], length: pair[1] }).collect()
    } else {
        vec![Buffer { address, length }]
    };
    let (major, minor) = (key.id.device >> 20, key.id.device & 0xf_ffff);
    let is_same = fs::metadata(&path).is_ok_and(|file| file.ino() == key.id.inode);
    let place = if is_same { Path::new(&path) } else { Path::new("") };
    let need = Need::new(place, Some((major, minor)));
    let count = record.count;
    let offset = direct::offset(takes_offset, offset, record.position);
    let call = call.to_owned();
    Some(Refused { path, call, count, offset, buffers, is_vector }.with(need))
}

fn add(sums: &mut Sums, path: String, call: u32, record: FileRecord) {
    let operation = match call as usize {
        FAULT => Some("fault"),
        call => names::base(call).and_then(operations::operation_of),
    };
    let Some(operation) = operation else { return };
    let sum = sums.entry(path).or_default().by_name(operation);
    sum.count += record.count;
    sum.errors += record.errors;
    sum.bytes += record.bytes;
    sum.parts = sum.parts.plus(parts(record.total, record.spent));
}

impl RecentFile {
    fn record(&self) -> FileRecord {
        let Self { key: _, count, errors, total, bytes } = *self;
        FileRecord { count, errors, total, bytes, spent: [0; 4] }
    }
}

#[derive(Default)]
struct Names(HashMap<FileId, NameRecord>);

impl Names {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        if let (Some(key), Some(value)) = (FileId::read(key), NameRecord::read(value)) {
            self.0.insert(key, value);
        }
    }

    /// Returns the path from the root. Three dots stand for a directory whose name is unknown.
    fn path(&self, id: FileId) -> String {
        match id.device as i32 {
            PIPE => return "pipe".to_owned(),
            SOCKET => return "socket".to_owned(),
            ANON_INODE => return "anonymous inode".to_owned(),
            _ => {}
        }
        let mut parts = Vec::new();
        let mut at = id;
        for _ in 0..DEEPEST {
            let Some(record) = self.0.get(&at) else {
                parts.push("...".to_owned());
                break;
            };
            let name = text(&record.name);
            let is_root = name == "/";
            if is_root || record.parent == at {
                // A file outside of any tree, such as named memory, has its name as its path.
                parts.push(if is_root { String::new() } else { name });
                break;
            }
            parts.push(name);
            at = record.parent;
        }
        parts.reverse();
        match parts.as_slice() {
            [root] if root.is_empty() => "/".to_owned(),
            _ => parts.join("/"),
        }
    }

    fn named(&self, key: &PathKey) -> String {
        let mut given = text(&key.path);
        if key.length as usize >= PATH {
            given.push_str("...");
        }
        let base = if given.starts_with('/') { String::new() } else { self.path(key.directory) };
        let steps = given.split('/').filter(|step| !step.is_empty() && *step != ".");
        let mut path = base.trim_end_matches('/').to_owned();
        for step in steps {
            path.push('/');
            path.push_str(step);
        }
        if path.is_empty() { "/".to_owned() } else { path }
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(inode: u64) -> FileId {
        FileId { inode, device: 1, tells_apart: 0 }
    }

    fn names(entries: &[(u64, u64, &str)]) -> Names {
        let record = |(at, parent, name): &(u64, u64, &str)| {
            let mut record = NameRecord { parent: id(*parent), name: [0; 256] };
            record.name[..name.len()].copy_from_slice(name.as_bytes());
            (id(*at), record)
        };
        Names(entries.iter().map(record).collect())
    }

    #[test]
    fn names_are_put_together_up_to_the_root() {
        let names = names(&[
            (2, 2, "/"),
            (3, 2, "etc"),
            (4, 3, "passwd"),
            (9, 9, "memfd:x"),
            (7, 99, "lost"),
            (5, 6, "a"),
            (6, 5, "b"),
        ]);
        assert_eq!(names.path(id(2)), "/");
        assert_eq!(names.path(id(4)), "/etc/passwd");
        assert_eq!(names.path(id(9)), "memfd:x");
        assert_eq!(names.path(id(7)), ".../lost");
        assert_eq!(names.path(FileId { inode: 0, device: PIPE as u32, tells_apart: 0 }), "pipe");
        // A cycle ends.
        assert!(names.path(id(5)).len() < 3 * DEEPEST);
    }

    #[test]
    fn paths_begin_at_their_directory() {
        let names = names(&[(2, 2, "/"), (3, 2, "etc")]);
        let named = |directory, given: &str| {
            let mut path = [0; PATH];
            path[..given.len()].copy_from_slice(given.as_bytes());
            names.named(&PathKey { directory: id(directory), call: 0, length: given.len() as u32 + 1, path })
        };
        assert_eq!(named(3, "./a//b"), "/etc/a/b");
        assert_eq!(named(2, "x"), "/x");
        assert_eq!(named(2, "."), "/");
        assert_eq!(named(0, "/usr/bin/"), "/usr/bin");
    }
}
