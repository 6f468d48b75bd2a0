//! Paging: from linear to physical addresses by four levels of tables. SDM 3A, "4-level paging and 5-level paging", "Access
//! rights", "Page-fault exceptions".

#[cfg(test)]
mod tests;

use tollgate_x86::walk::Fault;
use tollgate_x86::{Cr0, Cr4, Efer, Rflags};

use super::state::Processor;
use super::tlb::{Access, PHYSICAL_BITS};

const ADDRESS: u64 = ((1 << PHYSICAL_BITS) - 1) & !0xfff;
/// The bits of an entry that must be clear: addresses beyond the physical width.
const RESERVED: u64 = ((1 << 52) - 1) & !((1 << PHYSICAL_BITS) - 1);

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
/// In the two middle levels: the entry maps a page.
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;

/// The rights that all entries on the way to a page allow.
struct Rights {
    writable: bool,
    user: bool,
    executable: bool,
}

impl Processor {
    #[inline]
    pub(super) fn translate(&mut self, linear: u64, access: Access) -> Result<u64, Fault> {
        if self.cr0.0 & Cr0::PG.0 == 0 {
            return Ok(linear & 0xffff_ffff);
        }
        match self.translations.find(linear, access) {
            Some(physical) => Ok(physical),
            None => self.walk_tables(linear, access),
        }
    }

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
        let mut rights = Rights { writable: true, user: true, executable: true };
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
                let within = (1 << shift) - 1;
                let physical = entry & ADDRESS & !within | linear & within;
                // Write access is cached only if the page is already dirty, so that the first write sets the bit.
                let dirty = entry & DIRTY != 0;
                let kept = |access: &Access| self.allows(&rights, *access) && (dirty || !access.is_write());
                let allows = Access::ALL.into_iter().filter(kept).fold(0, |bits, access| bits | access as u8);
                self.translations.keep(linear, physical & !0xfff, allows);
                return Ok(physical);
            }
            return Err(self.page_fault(linear, access, true, false));
        }
    }

    fn mark(&mut self, at: u64, entry: &mut u64, bits: u64) {
        if *entry & bits != bits {
            *entry |= bits;
            self.memory.write(at, 8, *entry);
        }
    }

    /// Returns whether a page allows an access. SDM 3A, "Determination of access rights".
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

    /// SDM 3A, "Interrupt 14: page-fault exception", error code.
    fn page_fault(&mut self, linear: u64, access: Access, present: bool, reserved: bool) -> Fault {
        // A fault drops the cached translation of the page.
        self.translations.flush_page(linear);
        let names_fetch = self.efer().has(Efer::NXE) || self.cr4.has(Cr4::SMEP);
        let code = u32::from(present)
            | u32::from(access.is_write()) << 1
            | u32::from(access.is_user()) << 2
            | u32::from(reserved) << 3
            | u32::from(access.is_fetch() && names_fetch) << 4;
        Fault::of_page(linear, code, Some(self.cpl))
    }
}
