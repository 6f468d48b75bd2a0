//! Memory as a process sees it: the page of `tst()`, the words of the lock, and the word `preempted`.

use std::fmt;

/// The address that the kernel leaves in k1, to which no program can store. The published driver used this one.
pub(super) const ACCESS_MAGIC: u32 = 0x0020_0000;
/// Address of the page of `tst()`, which can be executed but not read or written.
pub(super) const CODE: u32 = 0x0100_0000;
pub(super) const PAGE: u32 = 4096;
pub(super) const CALLER: u32 = 0x0040_0100;
pub(super) const LOCK: u32 = 0x1000_0000;
/// The word that the kernel sets on every return. Each process has its own.
pub(super) const PREEMPTED: u32 = 0x1001_0008;
pub(super) const LOCKS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Lock(u8),
    Preempted,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(0) => f.write_str("lock"),
            Self::Lock(number) => write!(f, "lock+{}", 4 * number),
            Self::Preempted => f.write_str("preempted"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    Execute,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) access: Access,
    pub(super) address: u32,
    pub(super) refusal: Refusal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NoPage,
    Unaligned,
    ExecuteOnly,
}

/// Returns the word at an address.
///
/// # Errors
/// There is no readable and writable word.
pub(super) fn word_at(address: u32, access: Access) -> Result<Word, Fault> {
    let refused = |refusal| Err(Fault { access, address, refusal });
    if !address.is_multiple_of(4) {
        return refused(Refusal::Unaligned);
    }
    match address {
        PREEMPTED => Ok(Word::Preempted),
        _ if address.wrapping_sub(CODE) < PAGE => refused(Refusal::ExecuteOnly),
        _ => match address.wrapping_sub(LOCK) / 4 {
            number @ 0..2 => Ok(Word::Lock(number as u8)),
            _ => refused(Refusal::NoPage),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lock_and_the_flag_can_be_read_and_written() {
        let refusal = |address| word_at(address, Access::Write).map_err(|fault| fault.refusal);
        assert_eq!(refusal(LOCK), Ok(Word::Lock(0)));
        assert_eq!(refusal(LOCK + 4), Ok(Word::Lock(1)));
        assert_eq!(refusal(LOCK + 4 * LOCKS as u32), Err(Refusal::NoPage));
        assert_eq!(refusal(PREEMPTED), Ok(Word::Preempted));
        assert_eq!(refusal(LOCK + 2), Err(Refusal::Unaligned));
        assert_eq!(refusal(CODE), Err(Refusal::ExecuteOnly));
        assert_eq!(refusal(CODE + PAGE), Err(Refusal::NoPage));
        for address in [ACCESS_MAGIC, 0, CALLER, u32::MAX - 3] {
            assert_eq!(refusal(address), Err(Refusal::NoPage));
        }
    }
}
