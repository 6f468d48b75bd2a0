//! Frames: a length and that many bytes of JSON.

use std::io::{self, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest frame, in bytes. A record of 4,096 rounds of a thousand instances fits in it.
pub const MOST: usize = 64 << 20;
const LENGTH: usize = size_of::<u32>();

/// The reason why bytes are not a message. The text is a predicate; its subject is the sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("announced a message of {length} bytes; the limit is {most}")]
    TooLong { length: usize, most: usize },
    #[error("sent a message that cannot be read: {0}")]
    Unreadable(String),
}

pub fn framed(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; LENGTH];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - LENGTH;
    match u32::try_from(length) {
        Ok(number) if length <= MOST => bytes[..LENGTH].copy_from_slice(&number.to_le_bytes()),
        _ => return Err(io::Error::other(Fault::TooLong { length, most: MOST })),
    }
    Ok(bytes)
}

pub fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    to.write_all(&framed(message)?)?;
    to.flush()
}

/// Received bytes, which are split into messages.
#[derive(Debug)]
pub struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
    most: usize,
}

impl Default for Inbox {
    fn default() -> Self {
        Self::up_to(MOST)
    }
}

impl Inbox {
    pub fn up_to(most: usize) -> Self {
        Self { bytes: Vec::new(), taken: 0, most }
    }

    /// Allows messages of this length, unless longer ones are allowed already.
    pub fn allow(&mut self, most: usize) {
        self.most = self.most.max(most).min(MOST);
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    pub fn skip(&mut self, bytes: usize) {
        self.taken = (self.taken + bytes).min(self.bytes.len());
    }

    /// Returns the next message; `None` while it is incomplete. After a [`Fault`] nothing can be read.
    pub fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Fault> {
        let Some((length, rest)) = self.rest().split_first_chunk::<LENGTH>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > self.most {
            return Err(Fault::TooLong { length, most: self.most });
        }
        let Some(json) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(json).map_err(|error| Fault::Unreadable(error.to_string()))?;
        self.skip(LENGTH + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_come_out_as_they_went_in_however_the_bytes_are_cut() {
        let messages = ["a", "", "ü\n"].map(str::to_owned);
        let bytes: Vec<u8> = messages.iter().flat_map(|message| framed(message).expect("short")).collect();
        for piece in 1..bytes.len() {
            let (mut inbox, mut found) = (Inbox::default(), Vec::new());
            for bytes in bytes.chunks(piece) {
                inbox.push(bytes);
                while let Some(message) = inbox.next::<String>().expect("sound") {
                    found.push(message);
                }
            }
            assert_eq!(found, messages);
            assert!(inbox.rest().is_empty());
        }
    }

    #[test]
    fn a_length_beyond_the_longest_is_refused_before_its_bytes_come() {
        for (mut inbox, most) in [(Inbox::default(), MOST), (Inbox::up_to(10), 10)] {
            inbox.push(&(most as u32 + 1).to_le_bytes());
            assert_eq!(inbox.next::<String>(), Err(Fault::TooLong { length: most + 1, most }));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_messages_or_a_fault(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut inbox = Inbox::default();
            inbox.push(&bytes);
            while let Ok(Some(_)) = inbox.next::<crate::sides::agent::protocol::Answer>() {}
            let mut inbox = Inbox::default();
            inbox.push(&(bytes.len() as u32).to_le_bytes());
            inbox.push(&bytes);
            prop_assert!(!matches!(inbox.next::<crate::sides::agent::protocol::Answer>(), Ok(None)));
        }
    }
}
