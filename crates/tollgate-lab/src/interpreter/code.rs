//! A cache of decoded instructions, by physical address. A write to one of their bytes drops the whole page, so
//! self-modifying code executes as it is then.

use std::rc::Rc;

use super::decoded::Decoded;

const PAGE: usize = 4096;

#[derive(Clone)]
pub(super) struct Code {
    /// An entry for each page of memory, made when the first instruction in it is decoded. Copies of a processor share them.
    pages: Vec<Option<Rc<Page>>>,
}

#[derive(Clone)]
struct Page {
    /// For each byte, as 32-bit and as 64-bit code, the instruction that begins there: its index in `instructions` plus 1, or
    /// 0. At most two begin at a byte, so 16 bits are enough.
    begins: [[u16; PAGE]; 2],
    /// Shared with the execution of an instruction, which may drop the page.
    instructions: Vec<Rc<Decoded>>,
    covered: [u64; PAGE / 64],
}

impl Code {
    pub(super) fn new(memory: usize) -> Self {
        let mut pages = Vec::new();
        pages.resize_with(memory.div_ceil(PAGE), || None);
        Self { pages }
    }

    #[inline]
    pub(super) fn find(&self, address: u64, is_64_bit: bool) -> Option<Rc<Decoded>> {
        let page = self.pages.get(page_of(address))?.as_ref()?;
        let place = page.begins[usize::from(is_64_bit)][offset_of(address)];
        page.instructions.get(usize::from(place).wrapping_sub(1)).cloned()
    }

    /// Keeps an instruction that lies within one page.
    pub(super) fn keep(&mut self, address: u64, is_64_bit: bool, instruction: Rc<Decoded>) {
        let Some(slot) = self.pages.get_mut(page_of(address)) else { return };
        let page = Rc::make_mut(slot.get_or_insert_with(|| {
            Rc::new(Page { begins: [[0; PAGE]; 2], instructions: Vec::new(), covered: [0; PAGE / 64] })
        }));
        let length = usize::from(instruction.length);
        page.instructions.push(instruction);
        let at = offset_of(address);
        page.begins[usize::from(is_64_bit)][at] = page.instructions.len() as u16;
        for byte in at..(at + length).min(PAGE) {
            page.covered[byte / 64] |= 1 << (byte % 64);
        }
    }

    /// Must be called at each write.
    #[inline]
    pub(super) fn written(&mut self, address: u64, bytes: usize) {
        let end = address.saturating_add(bytes as u64 - u64::from(bytes != 0));
        self.forget(address, end);
        if page_of(address) != page_of(end) {
            self.forget(end & !(PAGE as u64 - 1), end);
        }
    }

    /// Drops the page of `first` if an instruction has a byte from there to `last`, or to the end of the page.
    #[inline]
    fn forget(&mut self, first: u64, last: u64) {
        let Some(slot) = self.pages.get_mut(page_of(first)) else { return };
        let Some(page) = slot else { return };
        let count = (last - first) as usize + 1;
        let at = offset_of(first);
        if (at..(at + count).min(PAGE)).any(|byte| page.covered[byte / 64] >> (byte % 64) & 1 == 1) {
            *slot = None;
        }
    }
}

fn page_of(address: u64) -> usize {
    usize::try_from(address / PAGE as u64).unwrap_or(usize::MAX)
}

fn offset_of(address: u64) -> usize {
    address as usize % PAGE
}
