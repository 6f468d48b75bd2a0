//! The files that processes have mapped executable: by proc_pid_maps(5) at first, by the kernel's records from then on.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use tollgate_os::perf::records::{Mapping, Record};

use super::functions::Functions;
use super::image::Image;

const MOST_MAPS: u64 = 16 << 20;
const MOST_KEPT: usize = 1 << 18;
/// A process is a copy of its parent, and so on: at most this many ancestors are searched for a mapping.
const MOST_PARENTS: usize = 64;
/// A frame in code outside of any known mapping. Its address would say nothing, since it differs in each execution.
const UNKNOWN: &str = "[unknown]";

#[derive(Default)]
pub(crate) struct Images {
    processes: HashMap<u32, Process>,
    files: HashSet<Arc<Image>>,
    functions: HashMap<Arc<Image>, Option<Functions>>,
    kept: usize,
    lost: u64,
}

#[derive(Default)]
struct Process {
    mappings: BTreeMap<u64, Mapped>,
    parent: Option<u32>,
}

#[derive(Clone)]
struct Mapped {
    end: u64,
    /// The file offset of the mapping.
    offset: u64,
    image: Arc<Image>,
}

impl Images {
    /// Reads the mappings of a process. Earlier mappings are kept unless others replace them.
    pub fn look(&mut self, pid: u32) {
        mappings(pid).for_each(|mapping| self.map(mapping));
    }

    pub fn record(&mut self, record: Record) {
        match record {
            Record::Mapping(mapping) => self.map(mapping),
            Record::Fork { process, parent } if self.has_room() => {
                self.processes.entry(process).or_default().parent = Some(parent);
            }
            Record::Fork { .. } => {}
            Record::Lost(records) => self.lost = self.lost.saturating_add(records),
        }
    }

    #[cfg(test)]
    pub fn knows(&self, pid: u32) -> bool {
        self.processes
            .get(&pid)
            .is_some_and(|process| process.parent.is_some() && !process.mappings.is_empty())
    }

    pub fn lost(&self) -> u64 {
        self.lost
    }

    pub fn merge(&mut self, others: Self) {
        for (pid, process) in others.processes {
            let known = self.processes.entry(pid).or_default();
            known.mappings.extend(process.mappings);
            known.parent = process.parent.or(known.parent);
        }
        self.lost = self.lost.saturating_add(others.lost);
    }

    /// Returns the frames of a user stack, innermost first: functions, or `file+0xoffset` if the file has no name for the
    /// address. A stack of code without frame pointers ends at the first address outside of code.
    pub fn frames(&mut self, pid: u32, addresses: &[u64]) -> Vec<String> {
        let mut frames = Vec::new();
        for (depth, &address) in addresses.iter().enumerate() {
            // The return address of a call that does not return may be in the next function.
            let within = address.saturating_sub(u64::from(depth > 0));
            let Some((image, offset)) = self.place(pid, within) else { break };
            frames.push(self.name(image, offset));
        }
        if frames.is_empty() && !addresses.is_empty() {
            frames.push(UNKNOWN.to_owned());
        }
        frames
    }

    fn map(&mut self, mapping: Mapping) {
        if !self.has_room() {
            self.lost = self.lost.saturating_add(1);
            return;
        }
        let Mapping { process, begin, bytes, offset, device, inode, path } = mapping;
        let image = Image { path: path.into(), device, inode };
        let image = match self.files.get(&image) {
            Some(known) => Arc::clone(known),
            None => {
                let new = Arc::new(image);
                self.files.insert(Arc::clone(&new));
                new
            }
        };
        let mapped = Mapped { end: begin.saturating_add(bytes), offset, image };
        self.processes.entry(process).or_default().mappings.insert(begin, mapped);
    }

    fn has_room(&mut self) -> bool {
        self.kept = self.kept.saturating_add(1);
        self.kept <= MOST_KEPT
    }

    /// Finds the mapping at an address of a process, or of the process that it was forked from.
    fn place(&self, pid: u32, address: u64) -> Option<(Arc<Image>, u64)> {
        let mut pid = pid;
        for _ in 0..MOST_PARENTS {
            let process = self.processes.get(&pid)?;
            if let Some((begin, mapped)) = process.mappings.range(..=address).next_back()
                && address < mapped.end
            {
                let offset = (address - begin).checked_add(mapped.offset)?;
                return Some((Arc::clone(&mapped.image), offset));
            }
            pid = process.parent?;
        }
        None
    }

    fn name(&mut self, image: Arc<Image>, offset: u64) -> String {
        let plain = || format!("{}+{offset:#x}", image.name());
        let functions = self.functions.entry(Arc::clone(&image)).or_insert_with(|| Functions::of(&image));
        functions.as_ref().and_then(|functions| functions.name(offset)).unwrap_or_else(plain)
    }
}

/// Reads the executable mappings of a process; none if it has ended, or may not be inspected.
pub(super) fn mappings(pid: u32) -> impl Iterator<Item = Mapping> {
    let file = File::open(format!("/proc/{pid}/maps")).into_iter();
    let lines = file.flat_map(|file| BufReader::new(file.take(MOST_MAPS)).split(b'\n').map_while(Result::ok));
    lines.filter_map(move |line| line_of_maps(pid, &line))
}

/// Parses an executable mapping of proc_pid_maps(5): `BEGIN-END rwxp OFFSET MAJOR:MINOR INODE  PATH`.
fn line_of_maps(process: u32, line: &[u8]) -> Option<Mapping> {
    let mut words = line.splitn(6, |byte| *byte == b' ');
    let mut word = || words.next().and_then(|word| std::str::from_utf8(word).ok());
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let (begin, end) = word()?.split_once('-')?;
    let (begin, end) = (hexadecimal(begin)?, hexadecimal(end)?);
    if !word()?.contains('x') {
        return None;
    }
    let offset = hexadecimal(word()?)?;
    let (major, minor) = word()?.split_once(':')?;
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let device = (number(major)?, number(minor)?);
    let inode = word()?.parse().ok()?;
    let path = words.next().unwrap_or_default().trim_ascii_start().to_vec();
    Some(Mapping { process, begin, bytes: end.checked_sub(begin)?, offset, device, inode, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(process: u32, begin: u64, path: &str) -> Record {
        let path = path.as_bytes().to_vec();
        Record::Mapping(Mapping {
            process,
            begin,
            bytes: 0x1000,
            offset: 0x500,
            device: (0, 0),
            inode: 0,
            path,
        })
    }

    #[test]
    fn user_code_is_named_by_its_function() {
        let mut images = Images::default();
        images.look(std::process::id());
        let address = line_of_maps as fn(u32, &[u8]) -> Option<Mapping> as usize as u64;
        let names = images.frames(std::process::id(), &[address]);
        assert_eq!(names, ["tollgate_trace::symbols::images::line_of_maps"]);
        assert_eq!(images.frames(std::process::id(), &[16]), [UNKNOWN]);
        assert_eq!(images.frames(0, &[address, 7]), [UNKNOWN]);
        assert!(images.frames(0, &[]).is_empty());
    }

    #[test]
    fn a_file_without_names_gives_offsets_and_a_stack_ends_outside_of_code() {
        let mut images = Images::default();
        images.record(mapping(7, 0x10_0000, "/no/such file"));
        images.record(mapping(7, 0x20_0000, "//anon"));
        let frames = images.frames(7, &[0x10_0010, 0x20_0001, 3, 0x10_0010]);
        assert_eq!(frames, ["such file+0x510", "[anonymous]+0x500"]);
    }

    #[test]
    fn a_copy_has_the_mappings_of_the_process_that_made_it() {
        let mut images = Images::default();
        images.record(mapping(7, 0x1000, "/bin/shell"));
        images.record(Record::Fork { process: 8, parent: 7 });
        images.record(mapping(8, 0x9000, "/bin/command"));
        assert_eq!(images.frames(8, &[0x1000]), ["shell+0x500"]);
        assert_eq!(images.frames(8, &[0x9000]), ["command+0x500"]);
        images.record(Record::Fork { process: 7, parent: 8 });
        assert_eq!(
            images.frames(8, &[0x8000]),
            [UNKNOWN],
            "processes that are each other's parents, by numbers used again"
        );
        let mut others = Images::default();
        others.record(mapping(9, 0x1000, "/bin/other"));
        others.record(Record::Lost(3));
        images.merge(others);
        assert_eq!((images.frames(9, &[0x1000]), images.lost()), (vec!["other+0x500".to_owned()], 3));
    }

    #[test]
    fn paths_may_have_spaces() {
        let line = b"7f00-7f80 r-xp 00002000 fe:01 1234                       /opt/a b/c (deleted)";
        let mapping = line_of_maps(3, line).unwrap();
        assert_eq!((mapping.begin, mapping.bytes, mapping.offset), (0x7f00, 0x80, 0x2000));
        assert_eq!(
            (mapping.device, mapping.inode, &mapping.path[..]),
            ((0xfe, 1), 1234, &b"/opt/a b/c (deleted)"[..])
        );
        assert_eq!(line_of_maps(3, b"7f00-7f80 rw-p 00002000 fe:01 1234 /opt"), None);
    }

    takes_any! { line in any::<Vec<u8>>() => line_of_maps(1, &line) }
}
