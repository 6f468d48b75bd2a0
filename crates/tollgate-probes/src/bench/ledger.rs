//! The ledger: memory that the bench shares with a child process. Orders go in, samples and reasons
//! come out, and whatever happens to the child, what it had written stays readable.
//!
//! It is an array of 64-bit words, each read and written atomically, so that a child which crashes,
//! or scribbles, can make the parent read a wrong number but never do anything undefined.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::station::Tallies;

/// Arms of one group at the most.
pub const MAX_ARMS: usize = 1024;
/// Rounds of one process at the most.
pub const MAX_ROUNDS: usize = 4096;

const MAGIC: u64 = u64::from_le_bytes(*b"tollgat1");

// Where things stand, in words.
const MAGIC_AT: usize = 0;
const CURRENT_ARM: usize = 1;
const BEATS: usize = 2;
const ROUNDS: usize = 3;
const CLOCK: usize = 4; // kind, hz, source
const PINNED: usize = 7;
const TEXT: usize = 8; // of the clock
const TEXT_WORDS: usize = 64;
const ORDER: usize = TEXT + TEXT_WORDS;
const ORDER_WORDS: usize = 1 << 16;
const ARMS: usize = ORDER + ORDER_WORDS;
const ARM_TEXT: usize = 8 + EVENTS; // after state, cost, whole, setup, operations, most, experiment, stage, events
const ARM_WORDS: usize = ARM_TEXT + TEXT_WORDS;
/// What is counted in blocks: the probe's events, and its tallies.
const EVENTS: usize = 1 + size_of::<Tallies>() / 8;
/// Words that each arm adds: its own, and one for each round.
const EACH_ARM: usize = ARM_WORDS + MAX_ROUNDS;

/// No arm is running: the bench itself is at work.
pub const NO_ARM: u64 = u64::MAX;

/// Shared memory for so many arms. Pages that nobody touches cost nothing.
pub struct Ledger {
    words: &'static [AtomicU64],
    /// Arms that there is room for.
    arms: usize,
    /// None where the memory cannot be handed to another program, only to a fork.
    file: Option<OwnedFd>,
}

/// What a child found out about an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArmState {
    /// It was not reached.
    Untried,
    /// It runs.
    Ready(Box<Readiness>),
    /// It cannot exist here.
    Skipped(String),
    /// It went wrong.
    Failed(String),
}

/// What is known of an arm that runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Time of one iteration of its loop.
    pub cost: Duration,
    /// The same with all that a block does untimed.
    pub whole: Duration,
    /// Time that it took to be made ready.
    pub setup: Duration,
    /// Operations in one iteration.
    pub ops: u64,
    /// Iterations of a block at the most.
    pub most: u64,
    /// The same for all arms that ask questions of one experiment; 0 where it is alone.
    pub experiment: u64,
    /// The same for all arms that need the same to be there; 0 where it needs nothing.
    pub stage: u64,
    /// One note a line.
    pub notes: String,
}

/// What is counted in blocks: the probe's events, then its tallies.
pub type Events = [u64; EVENTS];

/// One block's place in the matrix of rounds and arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// Not run.
    Empty,
    /// Ticks of the block less those of its empty loop.
    Kept(i64),
    /// The thread was switched out or moved.
    Dropped,
}

impl Ledger {
    /// New memory for so many arms, in a file without a name where the kernel has such, so that it survives an exec.
    ///
    /// # Errors
    /// More than [`MAX_ARMS`]; what memfd_create(2) and mmap(2) say.
    pub fn new(arms: usize) -> io::Result<Self> {
        if arms > MAX_ARMS {
            return Err(io::Error::other("too many arms for one process"));
        }
        let words = ARMS + arms * EACH_ARM;
        // SAFETY: the name is a C string; the flags are plain.
        let descriptor = unsafe { libc::memfd_create(c"tollgate-ledger".as_ptr(), libc::MFD_CLOEXEC) };
        let file = (descriptor >= 0).then(|| {
            // SAFETY: the descriptor was just made and belongs to nobody else.
            unsafe { OwnedFd::from_raw_fd(descriptor) }
        });
        let file = file.filter(|file| {
            let file = file.try_clone().map(File::from);
            // It is made with all permissions (mm/memfd.c). A link to /proc/self/fd in another user's directory leads a process with
            // that user's file access to it, and must not open it.
            let settle = |file: File| {
                file.set_permissions(Permissions::from_mode(0o600))?;
                file.set_len((words * 8) as u64)
            };
            file.and_then(settle).is_ok()
        });
        let words = map(file.as_ref(), words)?;
        words[MAGIC_AT].store(MAGIC, Relaxed);
        words[CURRENT_ARM].store(NO_ARM, Relaxed);
        Ok(Self { words, arms, file })
    }

    /// The ledger that another process made, from its descriptor.
    ///
    /// # Errors
    /// When the descriptor is not such a file.
    pub fn open(file: OwnedFd) -> io::Result<Self> {
        let file = File::from(file);
        let wrong_size = || io::Error::other("not a ledger: wrong size");
        let bytes = usize::try_from(file.metadata()?.len()).map_err(|_| wrong_size())?;
        let of_arms = (bytes / 8).checked_sub(ARMS).ok_or_else(wrong_size)?;
        let arms = of_arms / EACH_ARM;
        if bytes % 8 != 0 || of_arms % EACH_ARM != 0 || arms > MAX_ARMS {
            return Err(wrong_size());
        }
        let file = OwnedFd::from(file);
        let words = map(Some(&file), bytes / 8)?;
        if words[MAGIC_AT].load(Relaxed) != MAGIC {
            return Err(io::Error::other("not a ledger: wrong magic"));
        }
        Ok(Self { words, arms, file: Some(file) })
    }

    /// The descriptor to hand to another program.
    pub fn descriptor(&self) -> Option<i32> {
        self.file.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Writes the order, as text.
    ///
    /// # Errors
    /// When it is longer than 64 KiB less 8 bytes.
    pub fn set_order(&self, order: &str) -> io::Result<()> {
        if order.len() > (ORDER_WORDS - 1) * 8 {
            return Err(io::Error::other("too many arms for one process"));
        }
        self.write_text(ORDER, ORDER_WORDS, order);
        Ok(())
    }

    /// The order.
    pub fn order(&self) -> String {
        self.read_text(ORDER, ORDER_WORDS)
    }

    /// Says which arm runs from now on, and that something happened.
    pub fn enter(&self, arm: usize) {
        self.words[CURRENT_ARM].store(arm as u64, Relaxed);
        self.beat();
    }

    /// Says that no arm runs from now on.
    pub fn leave(&self) {
        self.words[CURRENT_ARM].store(NO_ARM, Relaxed);
        self.beat();
    }

    /// Says that something happened.
    pub fn beat(&self) {
        self.words[BEATS].fetch_add(1, Relaxed);
    }

    /// Where that is counted, for an arm whose block takes long. Not to be used after the ledger is gone.
    pub fn heart(&self) -> &'static AtomicU64 {
        &self.words[BEATS]
    }

    /// How often something happened.
    pub fn beats(&self) -> u64 {
        self.words[BEATS].load(Relaxed)
    }

    /// The arm that runs, or was running when the process ended.
    pub fn current_arm(&self) -> Option<usize> {
        let arm = self.words[CURRENT_ARM].load(Relaxed);
        (arm < self.arms as u64).then_some(arm as usize)
    }

    /// Ends a round.
    pub fn finish_round(&self) {
        self.words[ROUNDS].fetch_add(1, Relaxed);
    }

    /// Whole rounds.
    pub fn rounds(&self) -> usize {
        (self.words[ROUNDS].load(Relaxed) as usize).min(MAX_ROUNDS)
    }

    /// Rounds of which something is recorded, after the process has ended: the whole ones; or the first, where the
    /// process did not come to the end of it.
    pub fn rounds_recorded(&self) -> usize {
        let begun = || (0..self.arms).any(|arm| self.cell(0, arm) != Cell::Empty);
        if self.rounds() == 0 && begun() { 1 } else { self.rounds() }
    }

    /// Records a block.
    pub fn set_cell(&self, round: usize, arm: usize, cell: Cell) {
        if round >= MAX_ROUNDS || arm >= self.arms {
            return;
        }
        // Two low bits tell the three apart; ticks of a block are far below 2^61.
        let word = match cell {
            Cell::Empty => 0,
            Cell::Dropped => 2,
            Cell::Kept(ticks) => (ticks << 2) as u64 | 1,
        };
        self.words[self.cell_at(round, arm)].store(word, Relaxed);
    }

    /// A recorded block.
    pub fn cell(&self, round: usize, arm: usize) -> Cell {
        if round >= MAX_ROUNDS || arm >= self.arms {
            return Cell::Empty;
        }
        let word = self.words[self.cell_at(round, arm)].load(Relaxed);
        match word & 3 {
            1 => Cell::Kept(word as i64 >> 2),
            2 => Cell::Dropped,
            _ => Cell::Empty,
        }
    }

    /// Rounds lie one after the other, so that few of them need few pages.
    fn cell_at(&self, round: usize, arm: usize) -> usize {
        ARMS + self.arms * ARM_WORDS + round * self.arms + arm
    }

    /// Records what became of making `arm` ready.
    pub fn set_arm(&self, arm: usize, state: &ArmState) {
        if arm >= self.arms {
            return;
        }
        let at = ARMS + arm * ARM_WORDS;
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (code, numbers, text) = match state {
            ArmState::Untried => (0, [0; 7], ""),
            ArmState::Ready(ready) => {
                let [cost, whole, setup] = [ready.cost, ready.whole, ready.setup].map(nanoseconds);
                (
                    1,
                    [cost, whole, setup, ready.ops, ready.most, ready.experiment, ready.stage],
                    ready.notes.as_str(),
                )
            }
            ArmState::Skipped(why) => (2, [0; 7], why.as_str()),
            ArmState::Failed(error) => (3, [0; 7], error.as_str()),
        };
        self.write_text(at + ARM_TEXT, TEXT_WORDS, text);
        for (offset, number) in numbers.into_iter().enumerate() {
            self.words[at + 1 + offset].store(number, Relaxed);
        }
        self.words[at].store(code, Relaxed);
    }

    /// What became of making `arm` ready.
    pub fn arm(&self, arm: usize) -> ArmState {
        if arm >= self.arms {
            return ArmState::Untried;
        }
        let at = ARMS + arm * ARM_WORDS;
        let text = self.read_text(at + ARM_TEXT, TEXT_WORDS);
        match self.words[at].load(Relaxed) {
            1 => {
                let word = |offset: usize| self.words[at + offset].load(Relaxed);
                // No block takes an hour: what says so comes from a child gone wild, and must not overflow a sum.
                let time = |offset: usize| Duration::from_nanos(word(offset)).min(Duration::from_secs(3600));
                ArmState::Ready(Box::new(Readiness {
                    cost: time(1),
                    whole: time(2),
                    setup: time(3),
                    // Likewise a count that no loop has.
                    ops: word(4).clamp(1, 1 << 20),
                    most: word(5).max(1),
                    experiment: word(6),
                    stage: word(7),
                    notes: text,
                }))
            }
            2 => ArmState::Skipped(text),
            3 => ArmState::Failed(text),
            _ => ArmState::Untried,
        }
    }

    /// Adds to what was counted in an arm's kept blocks.
    pub fn add_events(&self, arm: usize, events: Events) {
        for (word, number) in self.events_of(arm).iter().zip(events) {
            word.fetch_add(number, Relaxed);
        }
    }

    /// Takes back some of them: of a block that does not count after all.
    pub fn take_back_events(&self, arm: usize, events: Events) {
        self.add_events(arm, events.map(u64::wrapping_neg));
    }

    /// What was counted in an arm's kept blocks.
    pub fn events(&self, arm: usize) -> Events {
        let mut events = Events::default();
        for (number, word) in events.iter_mut().zip(self.events_of(arm)) {
            *number = word.load(Relaxed);
        }
        events
    }

    /// Where that is kept; nowhere for an arm that is not there.
    fn events_of(&self, arm: usize) -> &[AtomicU64] {
        let at = ARMS + arm * ARM_WORDS + ARM_TEXT;
        if arm < self.arms { &self.words[at - EVENTS..at] } else { &[] }
    }

    /// Records which clock can be used: a code, its frequency, the code of the frequency's source, and
    /// the reason against the TSC.
    pub fn set_clock(&self, clock: [u64; 3], why: &str) {
        self.write_text(TEXT, TEXT_WORDS, why);
        for (offset, value) in clock.into_iter().enumerate().rev() {
            self.words[CLOCK + offset].store(value, Relaxed);
        }
    }

    /// What [`Ledger::set_clock`] recorded; zeros before.
    pub fn clock(&self) -> ([u64; 3], String) {
        let word = |offset: usize| self.words[CLOCK + offset].load(Relaxed);
        ([word(0), word(1), word(2)], self.read_text(TEXT, TEXT_WORDS))
    }

    /// Records whether the process could be pinned: 0, or the error's number.
    pub fn set_pinned(&self, error: i32) {
        self.words[PINNED].store(error as u64, Relaxed);
    }

    /// What [`Ledger::set_pinned`] recorded.
    pub fn pinned(&self) -> i32 {
        self.words[PINNED].load(Relaxed) as i32
    }

    /// The first word holds the length in bytes; text that does not fit is cut at a character.
    fn write_text(&self, at: usize, words: usize, text: &str) {
        let mut length = text.len().min((words - 1) * 8);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        for (word, chunk) in self.words[at + 1..at + words].iter().zip(text.as_bytes()[..length].chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(bytes), Relaxed);
        }
        self.words[at].store(length as u64, Relaxed);
    }

    fn read_text(&self, at: usize, words: usize) -> String {
        let length = (self.words[at].load(Relaxed) as usize).min((words - 1) * 8);
        let mut bytes: Vec<u8> = self.words[at + 1..at + 1 + length.div_ceil(8)]
            .iter()
            .flat_map(|word| word.load(Relaxed).to_le_bytes())
            .collect();
        bytes.truncate(length);
        String::from_utf8_lossy(&bytes)
            .chars()
            .map(|c| if c.is_control() && c != '\n' { '?' } else { c })
            .collect()
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length, and no reference to it outlives us:
        // `words` is private and never handed out.
        unsafe { libc::munmap(self.words.as_ptr() as *mut libc::c_void, self.words.len() * 8) };
    }
}

fn map(file: Option<&OwnedFd>, words: usize) -> io::Result<&'static [AtomicU64]> {
    let (flags, descriptor) = match file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a new mapping at an address of the kernel's choice.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            words * 8,
            libc::PROT_READ | libc::PROT_WRITE,
            flags | libc::MAP_NORESERVE,
            descriptor,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is page-aligned, zero-filled or another ledger's words, and so long;
    // every access to it in any process goes through these atomics.
    Ok(unsafe { std::slice::from_raw_parts(address.cast(), words) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cells_and_arms_come_back_as_they_were_written() {
        let ledger = Ledger::new(MAX_ARMS).expect("shared memory");
        for cell in [Cell::Kept(0), Cell::Kept(-5), Cell::Kept(1 << 60), Cell::Dropped, Cell::Empty] {
            ledger.set_cell(7, 3, cell);
            assert_eq!(ledger.cell(7, 3), cell);
        }
        for state in [
            ArmState::Ready(Box::new(Readiness {
                cost: Duration::from_nanos(77),
                whole: Duration::from_micros(5),
                setup: Duration::from_millis(3),
                ops: 64,
                most: u64::MAX,
                experiment: 9,
                stage: 0,
                notes: "sysenter".into(),
            })),
            ArmState::Skipped("no IA-32 emulation".into()),
            ArmState::Failed("ü".repeat(100)),
            ArmState::Untried,
        ] {
            ledger.set_arm(MAX_ARMS - 1, &state);
            assert_eq!(ledger.arm(MAX_ARMS - 1), state);
        }
        ledger.add_events(3, [5, 1, 0, 0, 0]);
        ledger.add_events(3, [9, 0, 7, 0, 3]);
        ledger.take_back_events(3, [2, 0, 1, 0, 3]);
        assert_eq!(ledger.events(3), [12, 1, 6, 0, 0]);
        assert_eq!((ledger.events(4), ledger.events(MAX_ARMS)), (Events::default(), Events::default()));
        assert_eq!((ledger.rounds(), ledger.rounds_recorded()), (0, 0));
        ledger.set_cell(0, 5, Cell::Dropped);
        assert_eq!((ledger.rounds(), ledger.rounds_recorded()), (0, 1));
        ledger.set_cell(MAX_ROUNDS, MAX_ARMS, Cell::Dropped);
        assert_eq!(ledger.cell(MAX_ROUNDS, MAX_ARMS), Cell::Empty);
    }

    proptest! {
        #[test]
        fn any_text_is_kept_or_cut_at_a_character(text in "\\PC{0,400}") {
            let ledger = Ledger::new(MAX_ARMS).expect("shared memory");
            ledger.set_arm(0, &ArmState::Failed(text.clone()));
            let ArmState::Failed(back) = ledger.arm(0) else { panic!("state changed") };
            prop_assert!(text.starts_with(&back) && (back == text || back.len() > 240));
        }

        #[test]
        fn scribbled_words_are_read_without_panic(words in proptest::collection::vec(any::<u64>(), 200)) {
            let ledger = Ledger::new(MAX_ARMS).expect("shared memory");
            for (index, word) in words.iter().enumerate() {
                ledger.words[(ARMS + index) % ledger.words.len()].store(*word, Relaxed);
                ledger.words[index % ORDER].store(*word, Relaxed);
            }
            for arm in 0..8 {
                ledger.arm(arm);
            }
            ledger.clock();
            ledger.current_arm();
            prop_assert!(ledger.rounds() <= MAX_ROUNDS);
        }
    }
}
