//! Paging: from linear to physical addresses by four levels of tables. SDM 3A, "4-level paging and 5-level paging",
//! "Access rights", "Page-fault exceptions".

#[cfg(test)]
mod tests;

use tollgate_x86::walk::{Exception, Fault};
use tollgate_x86::{Cr0, Cr4, Efer, Rflags};

use super::state::{Done, Processor, Trap};

/// Bits of a physical address, as CPUID leaf 80000008h reports them.
pub(super) const PHYSICAL_BITS: u32 = 40;
/// The bits of an entry that hold an address.
const ADDRESS: u64 = ((1 << PHYSICAL_BITS) - 1) & !0xfff;
/// The bits of an entry that must be clear: addresses beyond the physical width.
const RESERVED: u64 = ((1 << 52) - 1) & !((1 << PHYSICAL_BITS) - 1);

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
/// Of the two middle levels: the entry is a page's.
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;

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
    const ALL: [Self; 8] = [
        Self::UserRead,
        Self::UserWrite,
        Self::UserFetch,
        Self::KernelRead,
        Self::KernelWrite,
        Self::KernelFetch,
        Self::AllowedRead,
        Self::AllowedWrite,
    ];

    const fn is_write(self) -> bool {
        matches!(self, Self::UserWrite | Self::KernelWrite | Self::AllowedWrite)
    }

    const fn is_user(self) -> bool {
        matches!(self, Self::UserRead | Self::UserWrite | Self::UserFetch)
    }

    const fn is_fetch(self) -> bool {
        matches!(self, Self::UserFetch | Self::KernelFetch)
    }
}

/// How many translations are at hand.
const ENTRIES: usize = 256;

/// Translations that were made and are at hand: a TLB. It is emptied where one may be; global pages and
/// process-context identifiers keep none.
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

/// Where the translation of a page is kept: pages a power of two apart do not meet.
const fn slot_of(page: u64) -> usize {
    (page ^ page >> 8) as usize % ENTRIES
}

const EMPTY: Translation = Translation { page: u64::MAX, frame: 0, allows: 0 };

impl Translations {
    pub(super) const fn new() -> Self {
        Self([EMPTY; ENTRIES])
    }

    /// Forgets all.
    pub(super) fn flush(&mut self) {
        self.0 = [EMPTY; ENTRIES];
    }

    /// Forgets that of one page.
    pub(super) fn flush_page(&mut self, linear: u64) {
        self.0[slot_of(linear >> 12)] = EMPTY;
    }
}

/// The rights that the entries on the way to a page allow together.
struct Rights {
    writable: bool,
    user: bool,
    executable: bool,
    dirty: bool,
}

impl Processor {
    /// Where a linear address is in memory.
    #[inline]
    pub(super) fn translate(&mut self, linear: u64, access: Access) -> Result<u64, Fault> {
        if self.cr0.0 & Cr0::PG.0 == 0 {
            return Ok(linear & 0xffff_ffff);
        }
        let page = linear >> 12;
        let known = self.translations.0[slot_of(page)];
        if known.page == page && known.allows & access as u8 != 0 {
            return Ok(known.frame | linear & 0xfff);
        }
        self.walk_tables(linear, access)
    }

    /// How the program that runs accesses data.
    pub(super) fn data_access(&self, write: bool) -> Access {
        let user = self.cpl == 3;
        match (user, self.flags.has(Rflags::AC), write) {
            (true, _, false) => Access::UserRead,
            (true, _, true) => Access::UserWrite,
            (false, false, false) => Access::KernelRead,
            (false, false, true) => Access::KernelWrite,
            (false, true, false) => Access::AllowedRead,
            (false, true, true) => Access::AllowedWrite,
        }
    }

    fn walk_tables(&mut self, linear: u64, access: Access) -> Result<u64, Fault> {
        self.counts.page_walks += 1;
        let no_execute = self.efer().has(Efer::NXE);
        let mut rights = Rights { writable: true, user: true, executable: true, dirty: false };
        let mut table = self.cr3 & ADDRESS;
        let mut shift = 39;
        loop {
            let at = table + (linear >> shift & 0x1ff) * 8;
            let mut entry = self.memory.read(at, 8);
            self.counts.page_entries += 1;
            if entry & PRESENT == 0 {
                return Err(self.page_fault(linear, access, false, false));
            }
            let is_page = shift == 12 || entry & LARGE != 0;
            let mut reserved = RESERVED;
            if !no_execute {
                reserved |= NO_EXECUTE;
            }
            match shift {
                39 => reserved |= LARGE,
                // Between the PAT bit and the address.
                _ if shift != 12 && is_page => reserved |= (1 << shift) - (1 << 13),
                _ => {}
            }
            if entry & reserved != 0 {
                return Err(self.page_fault(linear, access, true, true));
            }
            rights.writable &= entry & WRITABLE != 0;
            rights.user &= entry & USER != 0;
            rights.executable &= entry & NO_EXECUTE == 0;
            if !is_page {
                self.mark(at, &mut entry, ACCESSED);
                table = entry & ADDRESS;
                shift -= 9;
                continue;
            }
            if self.allows(&rights, access) {
                self.mark(at, &mut entry, if access.is_write() { ACCESSED | DIRTY } else { ACCESSED });
                rights.dirty = entry & DIRTY != 0;
                let within = (1 << shift) - 1;
                let physical = entry & ADDRESS & !within | linear & within;
                self.keep(linear, physical & !0xfff, &rights);
                return Ok(physical);
            }
            return Err(self.page_fault(linear, access, true, false));
        }
    }

    /// Sets bits of an entry that say it was used.
    fn mark(&mut self, at: u64, entry: &mut u64, bits: u64) {
        if *entry & bits != bits {
            *entry |= bits;
            self.memory.write(at, 8, *entry);
        }
    }

    /// Whether a page may be accessed so. SDM 3A, "Determination of access rights".
    fn allows(&self, rights: &Rights, access: Access) -> bool {
        let (smep, smap) = (self.cr4.has(Cr4::SMEP), self.cr4.has(Cr4::SMAP));
        match access {
            Access::UserRead => rights.user,
            Access::UserWrite => rights.user && rights.writable,
            Access::UserFetch => rights.user && rights.executable,
            Access::KernelFetch => rights.executable && !(smep && rights.user),
            Access::AllowedRead => true,
            Access::AllowedWrite => rights.writable || !self.cr0.has(Cr0::WP),
            Access::KernelRead => !(smap && rights.user),
            Access::KernelWrite => (rights.writable || !self.cr0.has(Cr0::WP)) && !(smap && rights.user),
        }
    }

    /// Keeps a translation with all that it allows; a write only where the page is dirty already, so that the first one
    /// sets the bit.
    fn keep(&mut self, linear: u64, frame: u64, rights: &Rights) {
        let allows = Access::ALL
            .into_iter()
            .filter(|&access| self.allows(rights, access) && (rights.dirty || !access.is_write()))
            .fold(0, |bits, access| bits | access as u8);
        let page = linear >> 12;
        self.translations.0[slot_of(page)] = Translation { page, frame, allows };
    }

    /// SDM 3A, "Interrupt 14: page-fault exception", error code.
    fn page_fault(&mut self, linear: u64, access: Access, present: bool, reserved: bool) -> Fault {
        // A fault forgets what is kept of the page.
        self.translations.flush_page(linear);
        let names_fetch = self.efer().has(Efer::NXE) || self.cr4.has(Cr4::SMEP);
        let code = u32::from(present)
            | u32::from(access.is_write()) << 1
            | u32::from(access.is_user()) << 2
            | u32::from(reserved) << 3
            | u32::from(access.is_fetch() && names_fetch) << 4;
        Fault {
            exception: Exception::PAGE_FAULT,
            code: Some(code),
            address: Some(linear),
            level: Some(self.cpl),
            crossed: false,
        }
    }

    /// An exception of the instruction that is executed.
    pub(super) fn fault(&self, exception: Exception, code: Option<u32>) -> Trap {
        Trap::Fault(self.exception(exception, code))
    }

    /// #GP with an error code of 0.
    pub(super) fn protection(&self) -> Trap {
        self.fault(Exception::GENERAL_PROTECTION, Some(0))
    }

    /// #UD.
    pub(super) fn invalid_opcode(&self) -> Trap {
        Trap::Refused(self.exception(Exception::INVALID_OPCODE, None))
    }

    fn exception(&self, exception: Exception, code: Option<u32>) -> Fault {
        Fault { exception, code, address: None, level: Some(self.cpl), crossed: false }
    }

    /// #GP outside ring 0.
    pub(super) fn in_ring_0(&self) -> Done {
        match self.cpl {
            0 => Ok(()),
            _ => Err(self.privileged()),
        }
    }

    /// #GP of an instruction that is for another ring.
    pub(super) fn privileged(&self) -> Trap {
        Trap::Refused(self.exception(Exception::GENERAL_PROTECTION, Some(0)))
    }
}

/// Whether an address has 48 bits and copies of the highest above them. SDM 1, "Canonical addressing".
pub(super) const fn is_canonical(address: u64) -> bool {
    ((address << 16) as i64 >> 16) as u64 == address
}
