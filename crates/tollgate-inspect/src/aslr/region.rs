//! The regions of an address space, and where each was seen.

/// Declares the enum of regions, each with its stable name in documents.
macro_rules! regions {
    ($($(#[$doc:meta])+ $region:ident $name:literal;)+) => {
        /// A part of an address space that is placed on its own or with others.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Region {
            $($(#[$doc])+ $region,)+
        }

        impl Region {
            /// All regions, in the order in which they are shown.
            pub const ALL: [Self; 10] = [$(Self::$region,)+];

            /// Stable name for documents.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$region => $name,)+
                }
            }
        }
    };
}

regions! {
    /// The program's own code and data: its entry point, `AT_ENTRY` in getauxval(3).
    Code "code";
    /// The start of the heap: brk(2).
    Heap "heap";
    /// The start of the stack: the initial stack pointer.
    Stack "stack";
    /// The arguments and the environment, above the stack.
    Arguments "arguments";
    /// A page from mmap(2), mapped at the entry point.
    Mapping "mapping";
    /// 8 MiB from mmap(2), mapped at the entry point.
    LargeMapping "large_mapping";
    /// The C library, or another shared library if the program does not use it.
    Libraries "libraries";
    /// The dynamic loader: `AT_BASE`.
    Loader "loader";
    /// The kernel's code in every process: `AT_SYSINFO_EHDR`.
    Vdso "vdso";
    /// Thread-local storage: the base of FS, or of GS in 32-bit programs.
    ThreadStorage "thread_storage";
}

/// Addresses of the regions in one start. Regions that the process does not have are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sighting {
    addresses: [Option<u64>; Region::ALL.len()],
}

impl Sighting {
    /// Stores the address of a region. An address of 0 means none.
    pub(crate) fn note(&mut self, region: Region, address: Option<u64>) {
        self.addresses[region as usize] = address.filter(|&address| address != 0);
    }

    /// Address of a region.
    pub fn at(&self, region: Region) -> Option<u64> {
        self.addresses[region as usize]
    }
}
