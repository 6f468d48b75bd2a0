//! Where the regions of one process are, by its `/proc/PID/maps` or a saved copy of it, and what moved between two. Pure.

use std::collections::BTreeMap;

use tollgate_model::sorting::Ordered as _;

use super::maps::{self, Mapping};

/// The end of a 64-bit process's stack without randomization: `STACK_TOP`, which is `DEFAULT_MAP_WINDOW` of
/// arch/x86/include/asm/page_64_types.h.
pub const STACK_TOP: u64 = 0x7fff_ffff_f000;
/// The most that its end is moved by: 22 bits of a page's number (`__STACK_RND_MASK` in arch/x86/include/asm/elf.h).
const STACK_MOVES: u64 = 1 << 34;
/// A process has at most `vm.max_map_count` mappings, 65,530 by default.
const MOST_LINES: usize = 1 << 20;
/// The most regions with names that are kept.
const MOST_PLACES: usize = 1 << 12;

/// The kind of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The program's own file.
    Code,
    /// `[heap]`.
    Heap,
    /// `[stack]`: its end, for the kernel lets it grow at its beginning.
    Stack,
    /// A shared library.
    Library,
    /// The dynamic loader.
    Loader,
    /// `[vdso]`, `[vvar]` and the like: the kernel's code and data in every process.
    Kernel,
    /// `[vsyscall]`, which is at the same address in every process (arch/x86/entry/vsyscall).
    Vsyscall,
    /// Another mapped file, such as a locale's.
    File,
}

impl Part {
    /// Stable, for documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Heap => "heap",
            Self::Stack => "stack",
            Self::Library => "library",
            Self::File => "file",
            Self::Loader => "loader",
            Self::Kernel => "kernel",
            Self::Vsyscall => "vsyscall",
        }
    }
}

/// Where the regions of a process are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    /// The path of its program's file.
    pub program: Option<String>,
    /// By kind and name, the address.
    places: BTreeMap<(Part, String), u64>,
    /// Mappings without a name, which cannot be found again in another process.
    pub unnamed: usize,
    /// Lines that are none of a map.
    pub others: usize,
}

/// A region of two processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// Its kind.
    pub part: Part,
    /// The path of its file, or the kernel's name of it: `[stack]`.
    pub name: String,
    /// Its address in each; None in one that does not have it.
    pub at: [Option<u64>; 2],
}

impl Move {
    /// How far the second is from the first, modulo 2^64.
    pub fn distance(&self) -> Option<u64> {
        let [one, two] = self.at;
        Some(two?.wrapping_sub(one?))
    }

    /// Whether it can be at different addresses at all.
    pub fn can_move(&self) -> bool {
        self.part != Part::Vsyscall
    }
}

impl Layout {
    /// Reads a map. `program` is the path of the program's file where that is known; otherwise it is the first file with
    /// code in it that is not named like a library. None where no line is of a map.
    pub fn parse(text: &str, program: Option<&str>) -> Option<Self> {
        let mut layout = Self::default();
        let mut mappings = Vec::new();
        for line in text.lines().take(MOST_LINES) {
            match maps::parse(line.trim_end()) {
                Some(mapping) => mappings.push(mapping),
                None => layout.others += usize::from(!line.trim().is_empty()),
            }
        }
        if mappings.is_empty() {
            return None;
        }
        mappings.order_by_key(|mapping| mapping.start);
        layout.program = program.map(str::to_owned).or_else(|| program_of(&mappings).map(str::to_owned));
        for mapping in &mappings {
            layout.note(mapping);
        }
        Some(layout)
    }

    fn note(&mut self, mapping: &Mapping) {
        let part = match mapping.name {
            name if Some(name) == self.program.as_deref() => Part::Code,
            "[heap]" => Part::Heap,
            "[stack]" => Part::Stack,
            "[vsyscall]" => Part::Vsyscall,
            name if name.starts_with("[v") => Part::Kernel,
            name if name.starts_with('/') && is_loader(name) => Part::Loader,
            name if name.starts_with('/') && maps::is_library(name) => Part::Library,
            name if name.starts_with('/') => Part::File,
            _ => {
                self.unnamed += 1;
                return;
            }
        };
        if self.places.len() < MOST_PLACES {
            // Of a file that is mapped in pieces the first counts.
            let address = if part == Part::Stack { mapping.end } else { mapping.start };
            self.places.entry((part, mapping.name.to_owned())).or_insert(address);
        }
    }

    /// Its regions as those of a pair without a second.
    pub fn alone(&self) -> Vec<Move> {
        let moves = self.places.iter().map(|((part, name), &at)| Move {
            part: *part,
            name: name.clone(),
            at: [Some(at), None],
        });
        moves.collect()
    }

    /// The regions of two processes, by kind and name; those of the program are one region whatever the programs are.
    pub fn moves(&self, other: &Self) -> Vec<Move> {
        let mut moves = self.alone();
        for ((part, name), &at) in &other.places {
            let same = |it: &&mut Move| it.part == *part && (it.name == *name || *part == Part::Code);
            match moves.iter_mut().find(same) {
                Some(known) => known.at[1] = Some(at),
                None => moves.push(Move { part: *part, name: name.clone(), at: [None, Some(at)] }),
            }
        }
        moves.order_by(|a, b| (a.part, &a.name).cmp(&(b.part, &b.name)));
        moves
    }

    /// Where its stack ends.
    pub fn stack(&self) -> Option<u64> {
        self.places.get(&(Part::Stack, "[stack]".to_owned())).copied()
    }

    /// Whether this process alone shows that it was randomised: by the end of its stack, which is [`STACK_TOP`] without.
    /// None where it lies where no 64-bit process of Linux on x86-64 has it.
    pub fn is_randomised(&self) -> Option<bool> {
        let end = self.stack().filter(|end| (STACK_TOP - STACK_MOVES..=STACK_TOP).contains(end))?;
        Some(end != STACK_TOP)
    }
}

/// Names of regions that moved by the same distance, which is not 0; each of several.
pub fn together(moves: &[Move]) -> Vec<Vec<&Move>> {
    let mut groups: Vec<(u64, Vec<&Move>)> = Vec::new();
    for it in moves {
        let Some(distance) = it.distance().filter(|&distance| distance != 0) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == distance) {
            Some((_, group)) => group.push(it),
            None => groups.push((distance, vec![it])),
        }
    }
    groups.into_iter().map(|(_, group)| group).filter(|group| group.len() > 1).collect()
}

fn program_of<'a>(mappings: &[Mapping<'a>]) -> Option<&'a str> {
    let files = || mappings.iter().filter(|mapping| mapping.name.starts_with('/'));
    let program = files().find(|file| file.is_executable && !maps::is_library(file.name));
    program.or_else(|| files().find(|file| file.is_executable)).map(|file| file.name)
}

fn is_loader(path: &str) -> bool {
    let name = maps::name(path);
    name.starts_with("ld-") || name.starts_with("ld.so")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::takes_any;

    const FIXED: &str = "\
00400000-00401000 r-xp 00000000 fd:00 1234                               /home/a b/fixed
00601000-00602000 rw-p 00001000 fd:00 1234                               /home/a b/fixed
0154c000-0156d000 rw-p 00000000 00:00 0                                  [heap]
7f1b8e000000-7f1b8e1c0000 r-xp 00000000 fd:00 4322                       /lib/x86_64-linux-gnu/libc-2.24.so (deleted)
7f1b8e1c0000-7f1b8e1c4000 rw-p 00000000 00:00 0
7f1b8e3ca000-7f1b8e3f0000 r-xp 00000000 fd:00 99                         /lib/x86_64-linux-gnu/ld-2.24.so
7ffc61f2e000-7ffc61f4f000 rw-p 00000000 00:00 0                          [stack]
7ffc61fd2000-7ffc61fd4000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 r-xp 00000000 00:00 0                  [vsyscall]
";

    fn again() -> String {
        FIXED
            .replace("0154c000-0156d000", "01d07000-01d28000")
            .replace("7f1b8e", "7f77a9")
            .replace("7ffc61", "7ffe05")
    }

    #[test]
    fn a_fixed_program_keeps_its_code_alone() {
        let (one, two) = (Layout::parse(FIXED, None).unwrap(), Layout::parse(&again(), None).unwrap());
        assert_eq!(one.program.as_deref(), Some("/home/a b/fixed"));
        assert_eq!((one.unnamed, one.others), (1, 0));
        let moves = one.moves(&two);
        let stays: Vec<Part> = moves.iter().filter(|it| it.distance() == Some(0)).map(|it| it.part).collect();
        assert_eq!(stays, [Part::Code, Part::Vsyscall]);
        assert_eq!(moves.len(), 7);
        let heap = moves.iter().find(|it| it.part == Part::Heap).unwrap();
        assert_eq!(heap.distance(), Some(0x1d0_7000 - 0x154_c000));
        let groups = together(&moves);
        let names: Vec<Vec<Part>> =
            groups.iter().map(|group| group.iter().map(|it| it.part).collect()).collect();
        assert_eq!(names, [vec![Part::Stack, Part::Kernel], vec![Part::Library, Part::Loader]]);
        assert!(one.moves(&one).iter().all(|it| it.distance() == Some(0)));
    }

    #[test]
    fn the_stack_alone_shows_that_a_process_was_randomised() {
        let of = |text: &str| Layout::parse(text, None).unwrap().is_randomised();
        assert_eq!(of(FIXED), Some(true));
        assert_eq!(of(&FIXED.replace("7ffc61f4f000", "7ffffffff000")), Some(false));
        assert_eq!(of(&FIXED.replace("7ffc61f2e000-7ffc61f4f000", "fffdd000-ffffe000")), None);
    }

    #[test]
    fn a_map_among_other_lines_is_read() {
        let pasted = format!("$ cat /proc/4711/maps\n{FIXED}Size: 4 kB\n");
        let layout = Layout::parse(&pasted, None).unwrap();
        assert_eq!(layout.others, 2);
        assert!(Layout::parse("#!/bin/sh\n1-2 rw-p 0 0 0\n", None).is_none());
        assert!(Layout::parse("2-1 r-xp 00000000 fd:00 1 /x\n", None).is_none());
    }

    takes_any! {
        one in "[0-9a-f -]{0,20}|([0-9a-f]{1,17}-[0-9a-f]{1,17} r-xp 0 0:0 0 (/|\\[)[a-z\\].]{0,6}\n){0,6}", two in "\\PC{0,80}" =>
        Layout::parse(&one, None).map(|one| (one.is_randomised(), one.moves(&Layout::parse(&two, Some("/x")).unwrap_or_default())))
    }
}
