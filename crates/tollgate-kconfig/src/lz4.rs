//! lz4's legacy frame, which `lz4 -l` writes and kernel images come in: blocks of at most 8 MiB, each after its
//! packed size, and no mark at the end (lib/decompress_unlz4.c).

use std::io::{self, Read};

/// The most that a block holds unpacked (`LZ4_DEFAULT_UNCOMPRESSED_CHUNK_SIZE`).
const BLOCK: usize = 8 << 20;
/// The most that such a block takes packed (`LZ4_COMPRESSBOUND`).
const PACKED: usize = BLOCK + BLOCK / 255 + 16;
/// A packed byte stands for fewer bytes than this: a length goes on in steps of 255.
const MOST_GROWTH: usize = 256;
const MAGIC: u32 = 0x184C_2102;

/// Reads a legacy frame unpacked.
pub(crate) struct Lz4<R> {
    packed: R,
    block: Vec<u8>,
    at: usize,
    began: bool,
    ended: bool,
}

impl<R: Read> Lz4<R> {
    pub(crate) fn new(packed: R) -> Self {
        Self { packed, block: Vec::new(), at: 0, began: false, ended: false }
    }

    /// The next block; `false` at the end.
    fn advance(&mut self) -> io::Result<bool> {
        let size = match self.number()? {
            Some(MAGIC) => self.number()?,
            Some(_) if !self.began => return Err(io::Error::other("no legacy frame of lz4")),
            size => size,
        };
        self.began = true;
        // A kernel's build puts the unpacked size of everything at the end, where nothing comes after it.
        let Some(size) = size.filter(|&size| size != 0) else { return Ok(false) };
        let mut packed = Vec::new();
        let limit = PACKED.min(size as usize) as u64;
        self.packed.by_ref().take(limit).read_to_end(&mut packed)?;
        if packed.is_empty() {
            return Ok(false);
        }
        if packed.len() != size as usize {
            let why = format!("a block of {size} bytes has only {}", packed.len());
            return Err(io::Error::other(why));
        }
        self.block.resize(BLOCK.min(packed.len() * MOST_GROWTH), 0);
        let length = lz4_flex::block::decompress_into(&packed, &mut self.block).map_err(io::Error::other)?;
        self.block.truncate(length);
        self.at = 0;
        Ok(true)
    }

    /// The next four bytes, little-endian; nothing where fewer are left.
    fn number(&mut self) -> io::Result<Option<u32>> {
        let mut bytes = [0; 4];
        match self.packed.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(u32::from_le_bytes(bytes))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            if self.ended || !self.advance()? {
                self.ended = true;
                return Ok(0);
            }
        }
        let rest = &self.block[self.at..];
        let taken = rest.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&rest[..taken]);
        self.at += taken;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame as `lz4 -l` writes it.
    fn frame(data: &[u8]) -> Vec<u8> {
        let mut frame = MAGIC.to_le_bytes().to_vec();
        for block in data.chunks(BLOCK) {
            let packed = lz4_flex::block::compress(block);
            frame.extend((packed.len() as u32).to_le_bytes());
            frame.extend(packed);
        }
        frame
    }

    fn unpack(frame: &[u8]) -> io::Result<Vec<u8>> {
        let mut data = Vec::new();
        Lz4::new(frame).read_to_end(&mut data).map(|_| data)
    }

    #[test]
    fn blocks_and_the_size_at_the_end() {
        let data: Vec<u8> = (0..BLOCK + 1000).map(|at| ((at * at) >> 7) as u8).collect();
        let mut packed = frame(&data);
        assert_eq!(unpack(&packed).expect("data"), data);
        packed.extend((data.len() as u32).to_le_bytes());
        assert_eq!(unpack(&packed).expect("data"), data);
        assert!(unpack(&packed[..packed.len() - 100]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in any::<Vec<u8>>(), size in 0_u32..200) {
            let mut frame = MAGIC.to_le_bytes().to_vec();
            frame.extend(size.to_le_bytes());
            frame.extend(&bytes);
            let _ = (unpack(&bytes), unpack(&frame));
        }

        #[test]
        fn frames_round_trip(data in any::<Vec<u8>>()) {
            prop_assert_eq!(unpack(&frame(&data)).expect("data"), data);
        }
    }
}
