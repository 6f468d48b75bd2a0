//! The ring in memory that QEMU's plugin and this program share: words of 64 bits.
//!
//! A described block has a word `DESCRIBED << 32 | kind << 16 | number of instructions`, its address, the number of its page, and the
//! sizes of its instructions, eight per word. It gets the next index from 0. An execution is a word `index << 32 | begun`: the
//! instructions that were begun before it, modulo 2³². A switch of tasks is two words `SWITCHED << 32 | task`, for the previous and the next
//! task. `task` is an address in the task without its six lowest bits, which are the same for all tasks.

/// Size of the memory.
pub const WORDS: usize = 1 << 21;
/// First words: how many were written and read.
pub const HEAD: usize = 0;
pub const TAIL: usize = 8;
/// How many windows are not watched, and then how many are.
pub const SKIP: usize = 16;
pub const TAKE: usize = 17;
/// Whether a reader reads the ring, and whether the plugin is registered.
pub const IS_READ: usize = 18;
pub const IS_REGISTERED: usize = 19;
/// Whether no other windows follow, so that QEMU need not call the plugin after the last one.
pub const IS_LAST: usize = 20;
/// The data begin here.
pub const DATA: usize = 512;

/// In the place of an index.
pub const DESCRIBED: u64 = 0xffff_ffff;
pub const SWITCHED: u64 = 0xffff_fffe;

/// Kinds of blocks; others have 0. These two are marks that this program executes in the guest when a window begins and ends.
pub const BEGIN: u64 = 2;
pub const END: u64 = 3;
/// The block ends with a return from the kernel to a program.
pub const RETURN: u64 = 4;

/// A number for the contents of a page (FNV-1a, by words).
pub fn number(page: &[u8; 4096]) -> u64 {
    let (words, _) = page.as_chunks::<8>();
    words.iter().fold(0xcbf2_9ce4_8422_2325, |number, word| {
        let mixed = (number ^ u64::from_le_bytes(*word)).wrapping_mul(0x100_0000_01b3);
        mixed ^ mixed >> 32
    })
}
