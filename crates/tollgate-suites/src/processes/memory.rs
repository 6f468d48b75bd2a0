use std::io;

use tollgate_engine::cpu::minor_faults;

use crate::prelude::*;

const MIB: usize = 1 << 20;
const SMALL: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    /// No additional memory.
    Plain,
    /// Written memory.
    Written { mib: usize, page: Page },
    /// Mapped and untouched.
    Mapped { mib: usize },
}

words! {
    /// Small pages, 4 KiB on x86-64, or transparent huge pages.
    pub(super) enum Page("page") { Small = "4k", Huge = "thp" }
}

pub(super) fn kinds() -> Vec<Params> {
    let mut kinds = vec![params(&[("dirty_mib", 0.into())])];
    for mib in [64, 256] {
        for page in Page::WORDS {
            kinds.push(params(&[("dirty_mib", mib.into()), ("page", (*page).into())]));
        }
    }
    kinds.push(params(&[("mapped_mib", 256.into())]));
    kinds
}

pub(super) fn with(kinds: Vec<Params>, name: &str, values: &[&str]) -> Vec<Params> {
    let each = |kind: Params| {
        values.iter().map(move |&value| {
            let mut kind = kind.clone();
            kind.insert(name.to_owned(), ParamValue::from(value));
            kind
        })
    };
    kinds.into_iter().flat_map(each).collect()
}

impl Memory {
    pub fn from_params(params: &Params) -> Result<Self> {
        Ok(match (number(params, "dirty_mib") as usize, number(params, "mapped_mib") as usize) {
            (0, 0) => Self::Plain,
            (0, mib) => Self::Mapped { mib },
            (mib, _) => Self::Written { mib, page: Page::try_from(params)? },
        })
    }

    pub fn bytes(self) -> usize {
        match self {
            Self::Written { mib, .. } => mib * MIB,
            Self::Plain | Self::Mapped { .. } => 0,
        }
    }
}

/// Additional memory of this process, until it is dropped.
pub(super) struct Region {
    memory: Memory,
    mapping: Option<Mapping>,
    value: u8,
    heartbeat: Heartbeat,
}

impl Region {
    pub fn new(memory: Memory, heartbeat: Heartbeat) -> Result<Self> {
        let mib = match memory {
            Memory::Plain => return Ok(Self { memory, mapping: None, value: 0, heartbeat }),
            Memory::Written { mib, .. } | Memory::Mapped { mib } => mib,
        };
        // A memory limit is a property of the environment, not a temporary shortage.
        let failed = |call: &'static str| {
            move |error: io::Error| {
                skip!("{call} of {mib} MiB is refused: {}", tollgate_model::text::plainly(&error))
            }
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let mapping = Mapping::aligned(mib * MIB, access, flags, -1).map_err(failed("mmap"))?;
        match memory {
            Memory::Written { page: Page::Huge, .. } => {
                mapping.advise(libc::MADV_HUGEPAGE).map_err(failed("madvise(MADV_HUGEPAGE)"))?;
            }
            // A kernel without huge pages refuses this advice.
            _ => drop(mapping.advise(libc::MADV_NOHUGEPAGE)),
        }
        let mut region = Self { memory, mapping: Some(mapping), value: 0, heartbeat };
        if let Memory::Written { page, .. } = memory {
            let before = minor_faults();
            region.write();
            region.check_pages(page, minor_faults() - before)?;
        }
        Ok(region)
    }

    /// Checks for huge pages: the kernel gives small ones if none are free.
    fn check_pages(&self, page: Page, faults: u64) -> Result<()> {
        let huge = (self.length() / huge_page()) as u64;
        match page {
            Page::Huge if faults > 2 * huge => Err(skip!(
                "the kernel gives small pages instead of huge ones: {faults} faults for {} MiB; see \
                 /sys/kernel/mm/transparent_hugepage/enabled",
                self.length() / MIB
            )),
            Page::Huge | Page::Small => Ok(()),
        }
    }

    /// Writes all memory again after a fork, as a working process does, so that the next fork has to write-protect its
    /// pages again. On Linux 6.18 that is half of a fork's time.
    pub fn write_again(&mut self) {
        if self.is_written() {
            self.write();
        }
    }

    pub fn is_written(&self) -> bool {
        matches!(self.memory, Memory::Written { .. })
    }

    fn length(&self) -> usize {
        self.mapping.as_ref().map_or(0, Mapping::length)
    }

    fn write(&mut self) {
        const BREATH: usize = 16 * MIB;
        let Some(mapping) = &self.mapping else { return };
        // Equal pages could be merged, and zero pages need not exist.
        self.value = self.value.wrapping_add(1).max(1);
        for offset in (0..mapping.length()).step_by(SMALL) {
            // SAFETY: the offset lies in our own mapping, to which nothing else refers.
            unsafe { mapping.address().add(offset).write_volatile(self.value) };
            if offset.is_multiple_of(BREATH) {
                self.heartbeat.beat();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::accounts::footprint;
    use crate::processes::raw::tests::in_a_process_of_its_own;

    #[test]
    fn a_case_names_its_memory() {
        let kinds: Vec<Memory> = kinds().iter().flat_map(Memory::from_params).collect();
        assert_eq!(kinds.len(), 6);
        assert_eq!(kinds[0], Memory::Plain);
        assert!(kinds.contains(&Memory::Written { mib: 64, page: Page::Huge }));
        assert_eq!(kinds[5], Memory::Mapped { mib: 256 });
        assert_eq!(with(super::kinds(), "until", &["return", "exited"]).len(), 12);
    }

    /// An experiment that returns the growth of this process's memory by a region.
    struct Growth(i64);

    impl Experiment for Growth {
        fn run(&mut self, _: Clock, _: Order) -> Result<Vec<Batch>> {
            Ok(vec![Batch::new(self.0 as u64, 0, true)])
        }
    }

    #[test]
    fn only_written_memory_is_accounted() {
        // Other tests fork, and memory is accounted by its sharers.
        in_a_process_of_its_own(|| {
            if let Err(refusal) = footprint("self") {
                println!("skipped: {refusal:?}");
                return;
            }
            let grown = |memory| {
                let own = OwnProcess::start(&Quota::default(), move || {
                    let before = footprint("self")?.total();
                    let region = std::mem::ManuallyDrop::new(Region::new(memory, Heartbeat::default())?);
                    let _ = &region;
                    Ok(vec![Box::new(Growth(footprint("self")?.total() - before))])
                });
                let order = Order::new(1);
                let batches =
                    own.expect("a process").experiment(0).run(Clock::Kernel, order).expect("an answer");
                batches[0].work as i64
            };
            let grows_by = |memory, mib: std::ops::Range<i64>| {
                let grown = grown(memory) >> 20;
                assert!(mib.contains(&grown), "{grown} MiB");
            };
            grows_by(Memory::Mapped { mib: 256 }, -16..16);
            grows_by(Memory::Written { mib: 256, page: Page::Small }, 240..320);
        });
    }
}
