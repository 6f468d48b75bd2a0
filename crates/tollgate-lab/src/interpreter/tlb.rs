/// Bits of a physical address, as CPUID leaf 80000008h reports them.
pub(super) const PHYSICAL_BITS: u32 = 40;

/// The kind of an access; each is a bit of a translation's rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Access {
    UserRead = 1,
    UserWrite = 1 << 1,
    UserFetch = 1 << 2,
    KernelRead = 1 << 3,
    KernelWrite = 1 << 4,
    KernelFetch = 1 << 5,
    /// With RFLAGS.AC set, the kernel may touch user pages under SMAP.
    AllowedRead = 1 << 6,
    AllowedWrite = 1 << 7,
}

impl Access {
    pub(super) const ALL: [Self; 8] = [
        Self::UserRead,
        Self::UserWrite,
        Self::UserFetch,
        Self::KernelRead,
        Self::KernelWrite,
        Self::KernelFetch,
        Self::AllowedRead,
        Self::AllowedWrite,
    ];

    pub(super) const fn is_write(self) -> bool {
        matches!(self, Self::UserWrite | Self::KernelWrite | Self::AllowedWrite)
    }

    pub(super) const fn is_user(self) -> bool {
        matches!(self, Self::UserRead | Self::UserWrite | Self::UserFetch)
    }

    pub(super) const fn is_fetch(self) -> bool {
        matches!(self, Self::UserFetch | Self::KernelFetch)
    }
}

const ENTRIES: usize = 256;

/// Cached translations, flushed whenever a processor may. Global pages and process-context identifiers keep none.
#[derive(Clone)]
pub(super) struct Translations([Translation; ENTRIES]);

#[derive(Clone, Copy)]
struct Translation {
    page: u64,
    frame: u64,
    /// Bits of [`Access`].
    allows: u8,
}

/// Returns the slot of a page. Pages a power of two apart have different slots, and so do the last page before an address
/// that is a power of two and the first one after it.
const fn slot_of(page: u64) -> usize {
    (page ^ page >> 8 ^ page >> 12) as usize % ENTRIES
}

const EMPTY: Translation = Translation { page: u64::MAX, frame: 0, allows: 0 };

impl Translations {
    pub(super) const fn new() -> Self {
        Self([EMPTY; ENTRIES])
    }

    /// Returns the physical address of a linear one, if its translation is cached and allows the access.
    #[inline]
    pub(super) fn find(&self, linear: u64, access: Access) -> Option<u64> {
        let page = linear >> 12;
        let known = self.0[slot_of(page)];
        (known.page == page && known.allows & access as u8 != 0).then_some(known.frame | linear & 0xfff)
    }

    pub(super) fn keep(&mut self, linear: u64, frame: u64, allows: u8) {
        let page = linear >> 12;
        self.0[slot_of(page)] = Translation { page, frame, allows };
    }

    pub(super) fn flush(&mut self) {
        self.0 = [EMPTY; ENTRIES];
    }

    pub(super) fn flush_page(&mut self, linear: u64) {
        self.0[slot_of(linear >> 12)] = EMPTY;
    }
}

/// Returns whether bits 48 and up are copies of bit 47. SDM 1, "Canonical addressing".
pub(super) const fn is_canonical(address: u64) -> bool {
    ((address << 16) as i64 >> 16) as u64 == address
}
