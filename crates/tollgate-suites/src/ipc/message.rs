//! Messages: each has its number in it, and a body that is known, so that what came can be compared with what was sent.

use crate::prelude::*;

/// Why a message did not come as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A call failed with this error number.
    Call(i32),
    /// A call moved so many bytes instead of a whole message.
    Part(u32),
    /// The other end is closed.
    Closed,
    /// No message came for so long that none will, see [`super::peer::Alarm`].
    Silent,
    /// A message with another number came than the one behind the last: some message was lost, or came twice.
    Number,
    /// A message came with another body.
    Body,
}

/// Whether a message was sent or received.
pub type Outcome = Result<(), Fault>;

impl Fault {
    /// Of a system call's result that is no length of a message.
    pub fn from_result(result: i64) -> Self {
        match result {
            0 => Self::Closed,
            moved if moved > 0 => Self::Part(moved as u32),
            error if error == -i64::from(libc::EINTR) => Self::Silent,
            error if [libc::EPIPE, libc::ECONNRESET].contains(&(-error as i32)) => Self::Closed,
            error => Self::Call(-error as i32),
        }
    }

    /// For memory that threads and processes share; never 0.
    pub fn packed(self) -> u64 {
        let (kind, number) = match self {
            Self::Call(error) => (1, error.cast_unsigned()),
            Self::Part(bytes) => (2, bytes),
            Self::Closed => (3, 0),
            Self::Silent => (4, 0),
            Self::Number => (5, 0),
            Self::Body => (6, 0),
        };
        kind << 32 | u64::from(number)
    }

    /// The reverse. None for 0.
    pub fn unpacked(word: u64) -> Option<Self> {
        let number = word as u32;
        Some(match word >> 32 {
            1 => Self::Call(number.cast_signed()),
            2 => Self::Part(number),
            3 => Self::Closed,
            4 => Self::Silent,
            5 => Self::Number,
            6 => Self::Body,
            _ => return None,
        })
    }

    /// As a phrase.
    pub fn in_words(self) -> String {
        match self {
            Self::Call(error) => tollgate_model::text::plainly(&std::io::Error::from_raw_os_error(error)),
            Self::Part(bytes) => format!("{bytes} bytes of a message came"),
            Self::Closed => "the other end is closed".to_owned(),
            Self::Silent => "no message came in time".to_owned(),
            Self::Number => "a message was lost or came twice".to_owned(),
            Self::Body => "a message came with other bytes than were sent".to_owned(),
        }
    }
}

/// A message of one size, in memory of its own.
pub struct Message {
    memory: Mapping,
    length: usize,
}

impl Message {
    /// The message number 0 of so many bytes.
    pub fn new(length: usize) -> Result<Self> {
        let memory = Mapping::anonymous(length, libc::MAP_PRIVATE);
        let memory = memory.map_err(|error| Refusal::new("mmap(2) is refused", &error))?;
        let mut message = Self { memory, length };
        for piece in message.bytes_mut().chunks_mut(PERIOD) {
            piece.copy_from_slice(&BODY[..piece.len()]);
        }
        message.number(0);
        Ok(message)
    }

    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is so long, and belongs to this message.
        unsafe { std::slice::from_raw_parts(self.memory.address(), self.length) }
    }

    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.memory.address(), self.length) }
    }

    /// Gives it this number: as many of its bytes as there are at the beginning, and the lowest once more as the last byte.
    #[inline(always)]
    pub fn number(&mut self, number: u64) {
        let bytes = self.bytes_mut();
        match bytes.first_chunk_mut() {
            Some(first) => *first = number.to_le_bytes(),
            None => match bytes.first_chunk_mut() {
                Some(first) => *first = (number as u32).to_le_bytes(),
                None => bytes[0] = number as u8,
            },
        }
        if let [_, _, _, _, _, _, _, _, .., last] = bytes {
            *last = number as u8;
        }
    }

    /// Whether it has this number at both ends.
    #[inline(always)]
    pub fn has_number(&self, number: u64) -> bool {
        let bytes = self.bytes();
        let at_the_beginning = match bytes.first_chunk() {
            Some(first) => *first == number.to_le_bytes(),
            None => match bytes.first_chunk() {
                Some(first) => *first == (number as u32).to_le_bytes(),
                None => bytes[0] == number as u8,
            },
        };
        match bytes {
            [_, _, _, _, _, _, _, _, .., last] => at_the_beginning && *last == number as u8,
            _ => at_the_beginning,
        }
    }

    /// Clears it, so that no byte of an earlier message can be taken for one of the next.
    pub fn clear(&mut self) {
        self.bytes_mut().fill(0);
    }

    /// Whether its body, between its numbers, is that of every message.
    pub fn has_body(&self) -> bool {
        let bytes = self.bytes();
        let body = |at: usize, from: usize, to: usize| {
            bytes.get(from..to).is_none_or(|own| own == &BODY[at..at + own.len()])
        };
        let end = bytes.len().saturating_sub(1);
        let starts = (0..bytes.len()).step_by(PERIOD);
        starts
            .map(|start| (start, start.max(8), end.min(start + PERIOD)))
            .all(|(start, from, to)| body(from - start, from, to))
    }
}

/// The bytes of every message repeat after so many. It is no power of two, so a piece that is moved by a page does not fit.
const PERIOD: usize = 251;

/// What repeats in every message.
static BODY: [u8; PERIOD] = {
    let mut body = [0; PERIOD];
    let mut at = 0;
    while at < PERIOD {
        body[at] = at as u8;
        at += 1;
    }
    body
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_at_both_ends_and_a_wrong_byte_in_the_body() {
        for length in [1, 4, 8, 9, 4096, 65536] {
            let mut message = Message::new(length).expect("memory");
            assert!(message.has_number(0) && message.has_body(), "{length}");
            message.number(7);
            assert!(message.has_number(7) && !message.has_number(8) && message.has_body(), "{length}");
            if length > 9 {
                let last = length - 1;
                message.bytes_mut()[last] ^= 1;
                assert!(!message.has_number(7) && message.has_body(), "{length}");
                message.bytes_mut()[last] ^= 1;
                message.bytes_mut()[length / 2] ^= 1;
                assert!(message.has_number(7) && !message.has_body(), "{length}");
            }
        }
    }

    #[test]
    fn faults_come_back_as_they_were_packed() {
        let all = [
            Fault::Call(libc::EBADF),
            Fault::Part(9),
            Fault::Closed,
            Fault::Silent,
            Fault::Number,
            Fault::Body,
        ];
        for fault in all {
            assert_eq!(Fault::unpacked(fault.packed()), Some(fault));
        }
        assert_eq!(Fault::unpacked(0), None);
        assert_eq!(Fault::from_result(-i64::from(libc::EINTR)), Fault::Silent);
        assert_eq!(Fault::from_result(0), Fault::Closed);
    }
}
