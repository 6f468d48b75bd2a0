//! Finds the instructions that a guest executed, from the words that QEMU's plugin writes: see `ring`.
//!
//! A block's instructions are executed in order up to the last, unless one faults: then neither QEMU nor this counts it, and the kernel's
//! handler is next. The number of begun instructions shows which one. Access to a device may end a block early too, but is executed.
//!
//! If all instructions of a program's block were begun and a handler is next, either the last one faulted, or the one after it could not
//! be fetched. In the first case the program goes on with the last one.

use tollgate_engine::session::{Sums, Watch, is_kernel};

use super::ring::{BEGIN, DESCRIBED, END, RETURN};

/// Blocks, and their instructions. The translator makes some ten thousand blocks of a program.
const MOST: usize = 1 << 24;
/// Instructions in order. A batch of a benchmark has a few million at most.
const MOST_ORDERED: usize = 1 << 24;

#[derive(Debug)]
struct Block {
    kind: u64,
    page: u64,
    is_handler: bool,
    /// Index of its first instruction, and their number.
    first: usize,
    number: usize,
    /// Executions to its end in the window, and how many of them began with the instruction that was the last before.
    whole: u64,
    repeated: u64,
}

/// The last instruction of a program's block, which may have faulted.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    address: u64,
    page: u64,
    is_repeated: bool,
    /// Its index among the instructions in order.
    place: usize,
}

#[derive(Debug, Default)]
pub(super) struct Executed {
    keep: Watch,
    blocks: Vec<Block>,
    addresses: Vec<u64>,
    /// How many words of a block's description are missing.
    missing: u64,
    /// The last block, and the instructions that were begun before it.
    before: Option<(usize, u32)>,
    /// Entries of the handlers of faults.
    handlers: Vec<u64>,
    /// Address of the last executed instruction.
    last: u64,
    doubt: Option<Doubt>,
    window: Option<Sums>,
    windows: Vec<Sums>,
    /// Whether there were too many blocks or instructions, or a word that makes no sense.
    is_broken: bool,
}

impl Executed {
    /// Keeps the blocks of earlier windows, which may be executed again.
    pub fn begin(&mut self, watch: Watch) {
        (self.keep, self.before, self.window) = (watch, None, None);
        self.windows.clear();
    }

    pub fn knows_handlers(&self) -> bool {
        !self.handlers.is_empty()
    }

    pub fn know_handlers(&mut self, handlers: Vec<u64>) {
        self.handlers = handlers;
    }

    /// The windows that have ended.
    pub fn windows(&self) -> usize {
        self.windows.len()
    }

    /// Returns the windows. Fails if their words made no sense.
    pub fn end(&mut self) -> Option<Vec<Sums>> {
        (!self.is_broken).then(|| std::mem::take(&mut self.windows))
    }

    pub fn add(&mut self, word: u64) {
        if self.is_broken {
        } else if self.missing > 0 {
            self.describe(word);
        } else if word >> 32 != DESCRIBED {
            self.execute((word >> 32) as usize, word as u32);
        } else {
            let (kind, number) = (word >> 16 & 0xffff, (word & 0xffff) as usize);
            let first = self.addresses.len();
            self.is_broken = number == 0 || first >= MOST || self.blocks.len() >= MOST;
            // Its address, its page and its sizes.
            self.missing = 2 + number.div_ceil(8) as u64;
            self.blocks.push(Block {
                kind,
                page: 0,
                is_handler: false,
                first,
                number,
                whole: 0,
                repeated: 0,
            });
        }
    }

    fn describe(&mut self, word: u64) {
        let Some(block) = self.blocks.last_mut() else { return };
        let sizes = block.number.div_ceil(8) as u64;
        self.missing -= 1;
        if self.missing == sizes + 1 {
            block.is_handler = self.handlers.contains(&word);
            self.addresses.push(word);
        } else if self.missing == sizes {
            block.page = word;
        } else {
            for size in word.to_le_bytes() {
                let Some(last) = self.addresses.last() else { return };
                self.addresses.push(last.wrapping_add(u64::from(size)));
            }
            if self.missing == 0 {
                self.addresses.truncate(block.first + block.number);
            }
        }
    }

    fn execute(&mut self, at: usize, begun: u32) {
        if at >= self.blocks.len() {
            self.is_broken = true;
            return;
        }
        if let Some((before, earlier)) = self.before.replace((at, begun)) {
            self.finish(before, begun.wrapping_sub(earlier) as usize, self.blocks[at].is_handler);
        }
        let Block { kind, page, first, .. } = self.blocks[at];
        let address = self.addresses[first];
        if !is_kernel(address)
            && let Some(doubt) = self.doubt.take()
            && (doubt.address, doubt.page) == (address, page)
        {
            self.undo(doubt);
        }
        match kind {
            BEGIN => {
                let stacks = self.keep.stacks.clone();
                (self.window, self.before) = (Some(Sums { stacks, ..Sums::default() }), None);
                (self.last, self.doubt) = (0, None);
            }
            END => {
                let ended = self.window.take().map(|window| self.sum(window));
                self.windows.extend(ended);
                self.before = None;
            }
            _ => {}
        }
    }

    /// Adds a block of which this many instructions were begun.
    fn finish(&mut self, at: usize, begun: usize, faults: bool) {
        let (Some(window), Some(block)) = (&mut self.window, self.blocks.get_mut(at)) else { return };
        let addresses = &self.addresses[block.first..block.first + block.number];
        let mut done = begun.min(block.number);
        let is_doubtful = faults && done == block.number && !is_kernel(addresses[0]);
        if faults && !is_doubtful && block.kind != RETURN {
            done = done.saturating_sub(1);
        }
        let Some(last) = done.checked_sub(1).map(|last| addresses[last]) else { return };
        let is_repeated = addresses[0] == self.last;
        self.last = last;
        if self.keep.has_order {
            self.is_broken = window.order.len() >= MOST_ORDERED;
            window.order.extend_from_slice(&addresses[..done]);
        }
        if let Some(stacks) = &mut window.stacks {
            addresses[usize::from(is_repeated)..done].iter().for_each(|address| stacks.executed(*address));
        }
        if done == block.number {
            block.whole += 1;
            block.repeated += u64::from(is_repeated);
        } else {
            for (at, address) in addresses[..done].iter().enumerate() {
                let times = window.addresses.entry((*address, block.page)).or_default();
                let times = &mut times[usize::from(is_repeated && at == 0)];
                *times = times.wrapping_add(1);
            }
        }
        if is_doubtful {
            let is_repeated = is_repeated && done == 1;
            self.doubt =
                Some(Doubt { address: last, page: block.page, is_repeated, place: window.order.len() });
        }
    }

    fn undo(&mut self, doubt: Doubt) {
        let Some(window) = &mut self.window else { return };
        // Until the sums are made, a block's whole executions are missing here.
        let times = window.addresses.entry((doubt.address, doubt.page)).or_default();
        let times = &mut times[usize::from(doubt.is_repeated)];
        *times = times.wrapping_sub(1);
        if let Some(place) = doubt.place.checked_sub(1).filter(|place| *place < window.order.len()) {
            window.order.remove(place);
        }
    }

    fn sum(&mut self, mut window: Sums) -> Sums {
        for block in self.blocks.iter_mut().filter(|block| block.whole > 0) {
            let (whole, repeated) = (std::mem::take(&mut block.whole), std::mem::take(&mut block.repeated));
            let addresses = &self.addresses[block.first..block.first + block.number];
            for (at, address) in addresses.iter().enumerate() {
                let repeated = if at == 0 { repeated } else { 0 };
                let times = window.addresses.entry((*address, block.page)).or_default();
                times[0] = times[0].wrapping_add(whole - repeated);
                times[1] = times[1].wrapping_add(repeated);
            }
        }
        window.addresses.retain(|_, times| *times != [0, 0]);
        for ((address, _), times) in &window.addresses {
            let is_kernel = is_kernel(*address);
            let side = if is_kernel { &mut window.kernel } else { &mut window.user };
            *side = side.wrapping_add(times[0]);
            let repeated = &mut window.repeated[usize::from(is_kernel)];
            *repeated = repeated.wrapping_add(times[1]);
        }
        window
    }
}

#[cfg(test)]
mod tests {
    use tollgate_engine::session::Stacks;

    use super::*;
    use proptest::prelude::*;

    const USER: u64 = 0x7fff_f7fc_0000;
    const KERNEL: u64 = 0xffff_ffff_8100_0000;
    const HANDLER: u64 = KERNEL + 0x1000;
    const PAGE: u64 = 77;

    /// Blocks with their kinds and numbers of instructions of four bytes.
    const BLOCKS: [(u64, u64, u64); 7] = [
        (BEGIN, USER, 2),
        (END, USER + 0x20, 2),
        (0, USER + 0x100, 3),
        (0, KERNEL, 2),
        (0, HANDLER, 1),
        (RETURN, HANDLER + 4, 1),
        // An instruction that repeats itself.
        (0, USER + 0x108, 1),
    ];
    const MAIN: u64 = 2;
    const WORK: u64 = 3;
    const FAULT: u64 = 4;
    const BACK: u64 = 5;
    const AGAIN: u64 = 6;

    fn described() -> Vec<u64> {
        let block = |(kind, address, number): (u64, u64, u64)| {
            [
                DESCRIBED << 32 | kind << 16 | number,
                address,
                if is_kernel(address) { 0 } else { PAGE },
                0x04_04_04,
            ]
        };
        BLOCKS.into_iter().flat_map(block).collect()
    }

    /// The windows of a guest that begins these numbers of instructions of these blocks.
    fn windows(watch: Watch, blocks: &[(u64, u64)]) -> Vec<Sums> {
        let mut executed = Executed::default();
        executed.know_handlers(vec![HANDLER]);
        executed.begin(watch);
        // The number of begun instructions overflows.
        let mut begun = u64::from(u32::MAX) - 4;
        let mut words = described();
        for (block, number) in [(0, 2)].iter().chain(blocks).chain(&[(1, 2)]) {
            words.push(block << 32 | begun & 0xffff_ffff);
            begun += number;
        }
        words.into_iter().for_each(|word| executed.add(word));
        executed.end().expect("words that make sense")
    }

    fn of(window: &Sums, address: u64) -> [u64; 2] {
        let page = if is_kernel(address) { 0 } else { PAGE };
        window.addresses.get(&(address, page)).copied().unwrap_or_default()
    }

    #[test]
    fn what_is_between_the_marks_is_summed_and_an_instruction_that_repeats_itself_is_one() {
        let found = windows(Watch::default(), &[(MAIN, 3), (AGAIN, 1), (AGAIN, 1), (WORK, 2), (MAIN, 3)]);
        let [window] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((window.user, window.kernel, window.repeated), (6, 2, [2, 0]));
        assert_eq!(of(window, USER + 0x108), [2, 2]);
        assert_eq!(of(window, KERNEL + 4), [1, 0]);
        assert_eq!(of(window, USER), [0, 0], "a mark");
    }

    #[test]
    fn an_instruction_that_faults_counts_once_it_is_executed() {
        let order = Watch { has_order: true, ..Watch::default() };
        // The second instruction of the program and one of the kernel fault.
        let blocks = [(MAIN, 2), (FAULT, 1), (WORK, 2), (FAULT, 1), (BACK, 1), (AGAIN, 1)];
        let found = windows(order.clone(), &blocks);
        assert_eq!(found[0].order, [USER + 0x100, HANDLER, KERNEL, HANDLER, HANDLER + 4, USER + 0x108]);
        assert_eq!((found[0].user, found[0].kernel), (2, 4));
        // The last instruction of a block faults, and is executed again.
        let found = windows(order.clone(), &[(MAIN, 3), (FAULT, 1), (BACK, 1), (AGAIN, 1)]);
        assert_eq!(found[0].order, [USER + 0x100, USER + 0x104, HANDLER, HANDLER + 4, USER + 0x108]);
        assert_eq!((found[0].user, of(&found[0], USER + 0x108)), (3, [1, 0]));
        // It does not, but the one after it could not be fetched, also after the kernel's return.
        let found = windows(order, &[(MAIN, 3), (FAULT, 1), (BACK, 1), (FAULT, 1), (BACK, 1), (MAIN, 3)]);
        assert_eq!((found[0].user, found[0].kernel), (6, 4));
    }

    #[test]
    fn a_device_may_end_a_block_early() {
        let found = windows(Watch::default(), &[(WORK, 1), (MAIN, 3)]);
        assert_eq!((found[0].user, found[0].kernel, of(&found[0], KERNEL + 4)), (3, 1, [0, 0]));
    }

    proptest! {
        #[test]
        fn no_words_panic(words in prop::collection::vec(prop_oneof![any::<u64>(), (0_u64..8, 0_u64..4).prop_map(|(block, begun)| block << 32 | begun)], 0..200)) {
            for stacks in [None, Some(Stacks::of(&[(KERNEL, "entry".to_owned())].into()))] {
                let mut executed = Executed::default();
                executed.know_handlers(vec![HANDLER]);
                executed.begin(Watch { has_order: true, stacks, ..Watch::default() });
                described().iter().chain(&words).for_each(|word| executed.add(*word));
                executed.end();
            }
        }
    }
}
