//! The regions of an address space, and where each was seen.

/// Makes the enum of regions, each with its name in documents, which is stable.
macro_rules! regions {
    ($($(#[$doc:meta])+ $region:ident $name:literal;)+) => {
        /// A part of an address space that is placed by itself or with others.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Region {
            $($(#[$doc])+ $region,)+
        }

        impl Region {
            /// All, in the order in which they are shown.
            pub const ALL: [Self; 10] = [$(Self::$region,)+];

            /// Stable, for documents.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$region => $name,)+
                }
            }
        }
    };
}

regions! {
    /// The program's own code and data: its entry point, `AT_ENTRY` of getauxval(3).
    Code "code";
    /// Where the heap begins: brk(2).
    Heap "heap";
    /// Where the stack begins: the stack pointer that the program is started with.
    Stack "stack";
    /// The arguments and the environment, above the stack.
    Arguments "arguments";
    /// A page from mmap(2), mapped at the entry point.
    Mapping "mapping";
    /// 8 MiB from mmap(2), mapped at the entry point.
    LargeMapping "large_mapping";
    /// The C library, or another shared library where the program has none.
    Libraries "libraries";
    /// The dynamic loader: `AT_BASE`.
    Loader "loader";
    /// The kernel's code in every process: `AT_SYSINFO_EHDR`.
    Vdso "vdso";
    /// The thread's own storage: the base of FS, in 32-bit programs of GS.
    ThreadStorage "thread_storage";
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
