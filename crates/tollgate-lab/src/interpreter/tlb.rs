//! Linear addresses and the translations that are at hand.

/// Bits of a physical address, as CPUID leaf 80000008h reports them.
pub(super) const PHYSICAL_BITS: u32 = 40;

/// The kind of an access. Each is a bit of a translation's rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Access {
    UserRead = 1,
    UserWrite = 1 << 1,
    UserFetch = 1 << 2,
    KernelRead = 1 << 3,
    KernelWrite = 1 << 4,
    KernelFetch = 1 << 5,
    /// With RFLAGS.AC, the kernel's leave to touch user pages under SMAP.
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

/// Translations that were made and are at hand: a TLB. It is emptied where one may be; global pages and
/// process-context identifiers keep none.
#[derive(Clone)]
pub(super) struct Translations([Translation; ENTRIES]);

#[derive(Clone, Copy)]
struct Translation {
    /// The number of the linear page; all ones for none.
    page: u64,
    /// Where the physical page begins.
    frame: u64,
    /// Bits of [`Access`].
    allows: u8,
}

/// Where the translation of a page is kept: pages a power of two apart do not meet, nor does the last page before an address that is a
/// power of two meet the first one behind it.
const fn slot_of(page: u64) -> usize {
    (page ^ page >> 8 ^ page >> 12) as usize % ENTRIES
}

const EMPTY: Translation = Translation { page: u64::MAX, frame: 0, allows: 0 };

impl Translations {
    pub(super) const fn new() -> Self {
        Self([EMPTY; ENTRIES])
    }

    /// Where a linear address is in memory, if that is at hand and allows the access.
    #[inline]
    pub(super) fn find(&self, linear: u64, access: Access) -> Option<u64> {
        let page = linear >> 12;
        let known = self.0[slot_of(page)];
        (known.page == page && known.allows & access as u8 != 0).then_some(known.frame | linear & 0xfff)
    }

    /// Keeps a translation; `allows` are bits of [`Access`].
    pub(super) fn keep(&mut self, linear: u64, frame: u64, allows: u8) {
        let page = linear >> 12;
        self.0[slot_of(page)] = Translation { page, frame, allows };
    }

    pub(super) fn flush(&mut self) {
        self.0 = [EMPTY; ENTRIES];
    }

    /// Forgets that of one page.
    pub(super) fn flush_page(&mut self, linear: u64) {
        self.0[slot_of(linear >> 12)] = EMPTY;
    }
}

/// Whether an address has 48 bits and copies of the highest above them. SDM 1, "Canonical addressing".
pub(super) const fn is_canonical(address: u64) -> bool {
    ((address << 16) as i64 >> 16) as u64 == address
}
