//! The regions of an address space, and where each was seen.

/// A part of an address space that is placed by itself or with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    /// The program's own code and data: its entry point, `AT_ENTRY` of getauxval(3).
    Code,
    /// Where the heap begins: brk(2).
    Heap,
    /// Where the stack begins: the stack pointer that the program is started with.
    Stack,
    /// The arguments and the environment, above the stack.
    Arguments,
    /// A page from mmap(2), mapped at the entry point.
    Mapping,
    /// 8 MiB from mmap(2), mapped at the entry point.
    LargeMapping,
    /// The C library, or another shared library where the program has none.
    Libraries,
    /// The dynamic loader: `AT_BASE`.
    Loader,
    /// The kernel's code in every process: `AT_SYSINFO_EHDR`.
    Vdso,
    /// The thread's own storage: the base of FS, in 32-bit programs of GS.
    ThreadStorage,
}

impl Region {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 10] = [
        Self::Code,
        Self::Heap,
        Self::Stack,
        Self::Arguments,
        Self::Mapping,
        Self::LargeMapping,
        Self::Libraries,
        Self::Loader,
        Self::Vdso,
        Self::ThreadStorage,
    ];

    /// Stable, for documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Heap => "heap",
            Self::Stack => "stack",
            Self::Arguments => "arguments",
            Self::Mapping => "mapping",
            Self::LargeMapping => "large_mapping",
            Self::Libraries => "libraries",
            Self::Loader => "loader",
            Self::Vdso => "vdso",
            Self::ThreadStorage => "thread_storage",
        }
    }
}

/// Where the regions of one start were; those that it does not have are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sighting {
    addresses: [Option<u64>; Region::ALL.len()],
}

impl Sighting {
    /// Notes where a region is. An address of 0 is none.
    pub(crate) fn note(&mut self, region: Region, address: Option<u64>) {
        self.addresses[region as usize] = address.filter(|&address| address != 0);
    }

    /// Where a region was.
    pub fn at(&self, region: Region) -> Option<u64> {
        self.addresses[region as usize]
    }
}
