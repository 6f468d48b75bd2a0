//! Messages. Each has its number and a known body, so that the received one can be compared with the sent one.

use crate::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A call failed with this error number.
    Call(i32),
    /// A call moved this many bytes instead of a whole message.
    Part(u32),
    Closed,
    /// No message arrived for so long that none will, see [`super::peer::Alarm`].
    Silent,
    /// The message's number does not follow the last one: a message was lost, or arrived twice.
    Number,
    Body,
}

pub type Outcome = Result<(), Fault>;

impl Fault {
    /// Interprets a system call's result that is not the length of a message.
    pub fn from_result(result: i64) -> Self {
        match result {
            0 => Self::Closed,
            moved if moved > 0 => Self::Part(moved as u32),
            error if error == -i64::from(libc::EINTR) => Self::Silent,
            error if [libc::EPIPE, libc::ECONNRESET].contains(&(-error as i32)) => Self::Closed,
            error => Self::Call(-error as i32),
        }
    }

    /// Encodes the fault for memory that threads and processes share. Never returns 0.
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

    /// Reverses [`Fault::packed`]; returns `None` for 0.
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

pub struct Message {
    memory: Mapping,
    length: usize,
}

impl Message {
    /// Makes message number 0 of this length.
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
        // SAFETY: the mapping has this length, and belongs to this message.
        unsafe { std::slice::from_raw_parts(self.memory.address(), self.length) }
    }

    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.memory.address(), self.length) }
    }

    /// Sets the number: its low bytes at the beginning, as many as fit, and the lowest one again as the last byte.
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

    /// Clears the message, so that no byte of an earlier one can pass for one of the next.
    pub fn clear(&mut self) {
        self.bytes_mut().fill(0);
    }

    /// Returns whether the body, between the numbers, is that of every message.
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

/// The period of the body in bytes. It is not a power of two, so a part that is shifted by a page does not match.
const PERIOD: usize = 251;

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
