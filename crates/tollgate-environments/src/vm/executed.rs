//! Finds the instructions that a guest executed, from the words that QEMU's plugin writes: see `ring`.
//!
//! A block's instructions are executed in order up to the last, unless one faults: then neither QEMU nor this module counts it, and the
//! kernel's handler is next. The number of begun instructions shows which one. Access to a device may end a block early too, but is executed.
//!
//! If all instructions of a program's block were begun and a handler is next, either the last one faulted, or the one after it could not
//! be fetched. In the first case the program goes on with the last one.
//!
//! Interrupts are recognised by their handlers, and end with the return that belongs to them: each task has a list of the entries that it
//! is in, and a program's next instruction ends them. A task that executes no program's instruction in the window is a kernel thread.

use std::collections::{HashMap, HashSet};

use tollgate_engine::session::{INTERRUPTS, OTHER_THREADS, Sums, Watch, is_kernel};

use super::ring::{BEGIN, DESCRIBED, END, RETURN, SWITCHED};

/// Blocks, and their instructions. The translator makes some ten thousand blocks of a program.
const MOST: usize = 1 << 24;
/// The command's group, beside [`INTERRUPTS`] and [`OTHER_THREADS`].
const COMMAND: u64 = 0;
/// Instructions in order. A batch of a benchmark has a few million at most.
const MOST_ORDERED: usize = 1 << 24;

#[derive(Debug)]
struct Block {
    kind: u64,
    page: u64,
    handles: Option<Handles>,
    /// Index of its first instruction, their number, and the address after the last one.
    first: usize,
    number: usize,
    end: u64,
    /// The command's executions of the whole block in the window: all, and those whose first instruction was also the last one before (`rep`).
    times: [u64; 2],
}

/// Kinds of the kernel's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handles {
    Interrupt,
    /// A fault whose instruction QEMU does not count.
    Fault,
    /// Another exception.
    Exception,
}

/// Vectors of faults that come from within an instruction: #DE, #TS, #NP, #SS, #PF, #MF, #AC, #XM. QEMU does not count this instruction.
/// It does count one whose fault the translator finds before the instruction, such as #UD.
const FAULTS: [usize; 8] = [0, 10, 11, 12, 14, 16, 17, 19];
/// The first vector of an interrupt (Intel SDM, volume 3, 7.2), and that of the call of 32-bit programs.
const FIRST_INTERRUPT: usize = 32;
const CALL: usize = 0x80;

/// The entries of a task that executes a program's instructions, or its call.
const NO_ENTRY: u64 = 1;

/// Whose instructions a block's are, before it is known which tasks are threads of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Group(u64),
    Task(u64),
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
    /// Entries of the kernel's handlers.
    handlers: HashMap<u64, Handles>,
    /// The task that the last block switched to.
    switched: Option<u64>,
    /// The task that executes, once it is known.
    task: Option<u64>,
    /// Other tasks that executed a program's instructions in the window, and whether this one did.
    programs: HashSet<u64>,
    is_program: bool,
    /// The entries that other tasks are in, and those of this task: a leading 1, then a bit for each entry, which is 1 for an interrupt.
    others: HashMap<u64, u64>,
    entries: u64,
    /// All executions that [`Block::times`] does not count, by owner, block and number of instructions.
    parts: HashMap<(Owner, usize, usize), [u64; 2]>,
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

    /// The kernel's handlers by their vectors.
    pub fn know_handlers(&mut self, handlers: &[u64]) {
        let all = handlers.iter().enumerate().filter(|(vector, _)| *vector != CALL);
        let handles = |vector| match vector {
            FIRST_INTERRUPT.. => Handles::Interrupt,
            vector if FAULTS.contains(&vector) => Handles::Fault,
            _ => Handles::Exception,
        };
        self.handlers = all.map(|(vector, handler)| (*handler, handles(vector))).collect();
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
        } else if word >> 32 == SWITCHED {
            // The first one is of the task that it switches from.
            let task = Some(word & 0xffff_ffff);
            if self.task.is_none() { self.task = task } else { self.switched = task }
        } else if word >> 32 != DESCRIBED {
            self.execute((word >> 32) as usize, word as u32);
        } else {
            let (kind, number) = (word >> 16 & 0xffff, (word & 0xffff) as usize);
            let first = self.addresses.len();
            self.is_broken = number == 0 || first >= MOST || self.blocks.len() >= MOST;
            // Its address, its page and its sizes.
            self.missing = 2 + number.div_ceil(8) as u64;
            self.blocks.push(Block { kind, page: 0, handles: None, first, number, end: 0, times: [0; 2] });
        }
    }

    fn describe(&mut self, word: u64) {
        let Some(block) = self.blocks.last_mut() else { return };
        let sizes = block.number.div_ceil(8) as u64;
        self.missing -= 1;
        if self.missing == sizes + 1 {
            block.handles = self.handlers.get(&word).copied();
            self.addresses.push(word);
        } else if self.missing == sizes {
            block.page = word;
        } else {
            for size in word.to_le_bytes() {
                let Some(last) = self.addresses.last() else { return };
                self.addresses.push(last.wrapping_add(u64::from(size)));
            }
            if self.missing == 0 {
                block.end = self.addresses.get(block.first + block.number).copied().unwrap_or_default();
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
            self.finish(
                before,
                begun.wrapping_sub(earlier) as usize,
                self.blocks[at].handles == Some(Handles::Fault),
            );
            self.go_on(before, at);
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
                (self.task, self.switched) = (None, None);
                (self.entries, self.is_program) = (NO_ENTRY, true);
                self.others.clear();
                self.programs.clear();
                self.parts.clear();
            }
            END => {
                let ended = self.window.take().map(|window| self.sum(window));
                self.windows.extend(ended);
                self.before = None;
            }
            _ => {}
        }
    }

    /// Follows tasks and entries of the kernel from a block to the next one.
    fn go_on(&mut self, before: usize, at: usize) {
        if let Some(task) = self.switched.take()
            && let Some(last) = self.task.replace(task)
        {
            self.others.insert(last, self.entries);
            self.entries = self.others.remove(&task).unwrap_or(NO_ENTRY);
            self.programs.extend(self.is_program.then_some(last));
            self.is_program = self.programs.contains(&task);
        }
        let (Block { kind, end, .. }, Block { handles, first, .. }) =
            (&self.blocks[before], &self.blocks[at]);
        let address = self.addresses[*first];
        // The kernel also returns to itself, to serialize.
        if *kind == RETURN && address != *end {
            self.entries = (self.entries >> 1).max(NO_ENTRY);
        }
        if !is_kernel(address) {
            (self.entries, self.is_program) = (NO_ENTRY, true);
        } else if let Some(handles) = handles
            && self.entries.leading_zeros() > 0
        {
            self.entries = self.entries << 1 | u64::from(*handles == Handles::Interrupt);
        }
    }

    fn owner(&self, is_kernel: bool) -> Owner {
        match self.task {
            _ if !is_kernel => Owner::Group(COMMAND),
            _ if self.entries.count_ones() > 1 => Owner::Group(INTERRUPTS),
            Some(task) if !self.is_program => Owner::Task(task),
            _ => Owner::Group(COMMAND),
        }
    }

    /// Adds a block of which this many instructions were begun.
    fn finish(&mut self, at: usize, begun: usize, faults: bool) {
        let owner =
            self.owner(self.blocks.get(at).is_some_and(|block| is_kernel(self.addresses[block.first])));
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
        let times = match owner {
            Owner::Group(COMMAND) if done == block.number => &mut block.times,
            owner => self.parts.entry((owner, at, done)).or_default(),
        };
        *times = [times[0] + 1, times[1] + u64::from(is_repeated)];
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
        let mut add = |block: &Block, number: usize, group: u64, [all, repeated]: [u64; 2]| {
            for (at, address) in self.addresses[block.first..block.first + number].iter().enumerate() {
                let repeated = if at == 0 { repeated } else { 0 };
                let group = if is_kernel(*address) { group } else { block.page };
                let times = window.addresses.entry((*address, group)).or_default();
                times[0] = times[0].wrapping_add(all - repeated);
                times[1] = times[1].wrapping_add(repeated);
            }
        };
        for block in self.blocks.iter_mut().filter(|block| block.times != [0; 2]) {
            let times = std::mem::take(&mut block.times);
            add(block, block.number, COMMAND, times);
        }
        self.programs.extend(self.task.filter(|_| self.is_program));
        for ((owner, at, number), times) in self.parts.drain() {
            let group = match owner {
                Owner::Group(group) => group,
                Owner::Task(task) if self.programs.contains(&task) => COMMAND,
                Owner::Task(_) => OTHER_THREADS,
            };
            add(&self.blocks[at], number, group, times);
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
    const INTERRUPT: u64 = KERNEL + 0x2000;
    const THREAD: u64 = KERNEL + 0x3000;
    const PAGE: u64 = 77;

    /// Blocks with their kinds and numbers of instructions of four bytes.
    const BLOCKS: [(u64, u64, u64); 10] = [
        (BEGIN, USER, 2),
        (END, USER + 0x20, 2),
        (0, USER + 0x100, 3),
        (0, KERNEL, 2),
        (0, HANDLER, 1),
        (RETURN, HANDLER + 4, 1),
        // An instruction that repeats itself.
        (0, USER + 0x108, 1),
        (0, INTERRUPT, 2),
        (0, THREAD, 3),
        (0, THREAD + 0x100, 2),
    ];
    const MAIN: u64 = 2;
    const WORK: u64 = 3;
    const FAULT: u64 = 4;
    const BACK: u64 = 5;
    const AGAIN: u64 = 6;
    const TICK: u64 = 7;
    const OF_THREAD: u64 = 8;
    const SWITCH: u64 = 9;

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

    fn handlers() -> [u64; 256] {
        let mut handlers = [0; 256];
        (handlers[14], handlers[0x30]) = (HANDLER, INTERRUPT);
        handlers
    }

    /// The windows of a guest that begins these numbers of instructions of these blocks, or switches from or to these tasks.
    fn windows(watch: Watch, blocks: &[(u64, u64)]) -> Vec<Sums> {
        let mut executed = Executed::default();
        executed.know_handlers(&handlers());
        executed.begin(watch);
        // The number of begun instructions overflows.
        let mut begun = u64::from(u32::MAX) - 4;
        let mut words = described();
        for (block, number) in [(0, 2)].iter().chain(blocks).chain(&[(1, 2)]) {
            if *block == SWITCHED {
                words.push(SWITCHED << 32 | number);
                continue;
            }
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

    /// Executions of the kernel's instruction at this address: the command's, in interrupts, and those of other threads.
    fn groups(window: &Sums, address: u64) -> [u64; 3] {
        [COMMAND, INTERRUPTS, OTHER_THREADS]
            .map(|group| window.addresses.get(&(address, group)).map_or(0, |times| times[0]))
    }

    #[test]
    fn what_an_interrupt_executes_is_apart_until_it_returns() {
        let call = [(MAIN, 3), (WORK, 2), (TICK, 2), (WORK, 2)];
        // It faults itself, and the fault's return does not end it.
        let back = [(FAULT, 1), (BACK, 1), (WORK, 2), (BACK, 1), (WORK, 2), (MAIN, 3)];
        let found = windows(Watch::default(), &[&call[..], &back].concat());
        let window = &found[0];
        assert_eq!((groups(window, INTERRUPT), groups(window, KERNEL)), ([0, 1, 0], [2, 2, 0]));
        assert_eq!((groups(window, HANDLER), groups(window, HANDLER + 4)), ([0, 1, 0], [0, 2, 0]));
        // One instruction faulted.
        assert_eq!((window.user, window.kernel), (6, 12));
        // In the program itself; the program's next instruction ends it in any case.
        let found = windows(Watch::default(), &[(MAIN, 3), (TICK, 2), (WORK, 2), (MAIN, 3), (WORK, 2)]);
        assert_eq!(groups(&found[0], KERNEL), [1, 1, 0]);
        // A page fault is the command's.
        let found = windows(Watch::default(), &[(MAIN, 2), (FAULT, 1), (WORK, 2), (BACK, 1), (MAIN, 3)]);
        assert_eq!((groups(&found[0], KERNEL), groups(&found[0], HANDLER)), ([1, 0, 0], [1, 0, 0]));
    }

    #[test]
    fn a_task_without_a_program_is_another_thread() {
        let switch = |from, to| [(SWITCH, 2), (SWITCHED, from), (SWITCHED, to)];
        let command = [(MAIN, 3), (WORK, 2), (TICK, 2)];
        let thread = [(OF_THREAD, 3), (TICK, 2), (BACK, 1), (OF_THREAD, 2)];
        // A new process begins in the kernel.
        let process = [(WORK, 2), (MAIN, 3), (WORK, 1)];
        // Switched from in an interrupt, to which it returns.
        let rest = [(WORK, 2), (BACK, 1), (WORK, 2)];
        let all =
            [&command[..], &switch(1, 2), &thread, &switch(2, 3), &process, &switch(3, 1), &rest].concat();
        let found = windows(Watch::default(), &all);
        let window = &found[0];
        assert_eq!((groups(window, THREAD), groups(window, THREAD + 8)), ([0, 0, 2], [0, 0, 1]));
        assert_eq!((groups(window, INTERRUPT), groups(window, KERNEL)), ([0, 2, 0], [4, 1, 0]));
        // The first process switches in its interrupt.
        assert_eq!(groups(window, THREAD + 0x100), [1, 1, 1]);
        assert_eq!((window.user, window.kernel), (6, 26));
    }

    proptest! {
        #[test]
        fn no_words_panic(words in prop::collection::vec(prop_oneof![any::<u64>(), (prop_oneof![0_u64..10, Just(SWITCHED)], 0_u64..4).prop_map(|(block, begun)| block << 32 | begun)], 0..200)) {
            for stacks in [None, Some(Stacks::of(&[(KERNEL, "entry".to_owned())].into()))] {
                let mut executed = Executed::default();
                executed.know_handlers(&handlers());
                executed.begin(Watch { has_order: true, stacks, ..Watch::default() });
                described().iter().chain(&words).for_each(|word| executed.add(*word));
                executed.end();
            }
        }
    }
}
