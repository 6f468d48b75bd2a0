use super::code::Code;

/// Memory from address 0. Beyond its end, reads return ones and writes are lost, as on a bus without a device.
#[derive(Clone)]
pub(super) struct Memory {
    pub(super) bytes: Vec<u8>,
    /// Decoded instructions, dropped when their bytes are written.
    pub(super) code: Code,
}

impl Memory {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let code = Code::new(bytes.len());
        Self { bytes, code }
    }

    #[inline]
    pub(super) fn read(&self, address: u64, bytes: u8) -> u64 {
        let Some(rest) = usize::try_from(address).ok().and_then(|at| self.bytes.get(at..)) else {
            return u64::MAX;
        };
        if let Some(whole) = rest.first_chunk::<8>() {
            return u64::from_le_bytes(*whole);
        }
        // The last bytes of memory, and those after them.
        let mut whole = [0xff; 8];
        for (to, from) in whole.iter_mut().zip(rest).take(usize::from(bytes)) {
            *to = *from;
        }
        u64::from_le_bytes(whole)
    }

    #[inline]
    pub(super) fn write(&mut self, address: u64, bytes: u8, value: u64) {
        let Some(rest) = usize::try_from(address).ok().and_then(|at| self.bytes.get_mut(at..)) else {
            return;
        };
        let count = usize::from(bytes).min(rest.len()).min(8);
        rest[..count].copy_from_slice(&value.to_le_bytes()[..count]);
        self.code.written(address, count);
    }

    pub(super) fn slice(&self, address: u64, count: usize) -> &[u8] {
        let rest = usize::try_from(address).ok().and_then(|at| self.bytes.get(at..)).unwrap_or_default();
        &rest[..count.min(rest.len())]
    }
}
