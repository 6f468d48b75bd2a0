//! Refused direct I/O: the call, and the requirements of its file. Both backends use this.

use std::fs;
use std::path::Path;

use tollgate_model::text::plainly;
use tollgate_model::traced::{Misaligned, Needs};
use tollgate_os::direct::Declared;

/// The most buffers of a vector that are examined.
pub(crate) const MOST_BUFFERS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buffer {
    pub address: u64,
    pub length: u64,
}

#[derive(Debug)]
pub(crate) struct Refused {
    pub path: String,
    pub call: String,
    pub count: u64,
    pub offset: u64,
    pub buffers: Vec<Buffer>,
    /// Whether the call takes several buffers.
    pub is_vector: bool,
}

/// The requirements of a file for direct I/O and their source, or why they are unknown.
#[derive(Debug, Clone)]
pub(crate) struct Need {
    pub needs: Option<Needs>,
    pub by: String,
}

impl Need {
    /// Reads the requirements of the file at a path; if it was removed, those of the device with these numbers.
    pub fn new(path: &Path, device: Option<(u32, u32)>) -> Self {
        let why = match Declared::at(path) {
            Ok(Declared::Bytes { memory, offset }) => {
                return Self {
                    needs: Some(Needs { memory, offset }),
                    by: "statx(2), STATX_DIOALIGN".to_owned(),
                };
            }
            Ok(declared) => declared.to_string(),
            Err(error) => format!("statx(2) of the file: {}", plainly(&error)),
        };
        match device.and_then(|(major, minor)| logical_block(major, minor)) {
            Some(bytes) => Self {
                needs: Some(Needs { memory: bytes, offset: bytes }),
                by: format!("the logical block size of its device; {why}"),
            },
            None => Self { needs: None, by: why },
        }
    }
}

/// The logical block size of a device, or of its disk if it is a partition (sysfs-block, `queue/logical_block_size`).
fn logical_block(major: u32, minor: u32) -> Option<u32> {
    let device = Path::new("/sys/dev/block").join(format!("{major}:{minor}"));
    let read = |queue: &str| fs::read_to_string(device.join(queue).join("logical_block_size")).ok();
    read("queue")
        .or_else(|| read("../queue"))?
        .trim()
        .parse()
        .ok()
        .filter(|bytes: &u32| bytes.is_power_of_two())
}

impl Refused {
    /// Combines the call with the file's requirements. Among several buffers it picks the first that violates them.
    pub fn with(self, need: Need) -> Misaligned {
        let misfit = |buffer: &Buffer| {
            need.needs.is_some_and(|needs| !needs.misfits(0, buffer.address, buffer.length).is_empty())
        };
        let at = self.buffers.iter().position(misfit).unwrap_or(0);
        let buffer = self.buffers.get(at).copied().unwrap_or(Buffer { address: 0, length: 0 });
        Misaligned {
            path: self.path,
            call: self.call,
            count: self.count,
            offset: self.offset,
            address: buffer.address,
            length: buffer.length,
            buffer: if self.is_vector { at as u64 + 1 } else { 0 },
            needs: need.needs,
            by: need.by,
        }
    }
}

/// Returns whether a call takes its offset as an argument, and whether its buffers are a vector. `None` if it moves no data
/// between a file and memory. Calls of the 32-bit table have other arguments, and are not examined.
pub(crate) fn shape(call: &str) -> Option<(bool, bool)> {
    match call {
        "read" | "write" => Some((false, false)),
        "pread64" | "pwrite64" => Some((true, false)),
        "readv" | "writev" => Some((false, true)),
        "preadv" | "pwritev" | "preadv2" | "pwritev2" => Some((true, true)),
        _ => None,
    }
}

/// Returns the offset of a call. In preadv2(2) and pwritev2(2) -1 means the file's own position.
pub(crate) fn offset(takes_offset: bool, argument: u64, position: u64) -> u64 {
    if takes_offset && argument != u64::MAX { argument } else { position }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::Operation;

    #[test]
    fn every_call_that_moves_data_has_a_shape() {
        for (call, operation) in Operation::all() {
            assert_eq!(shape(call).is_some(), operation.moves, "{call}");
        }
    }

    #[test]
    fn the_first_buffer_that_does_not_fit_is_named() {
        let buffers =
            [(0x1000, 512), (0x2001, 512), (0x3001, 512)].map(|(address, length)| Buffer { address, length });
        let refused = || Refused {
            path: "/x".to_owned(),
            call: "preadv".to_owned(),
            count: 1,
            offset: 0,
            buffers: buffers.to_vec(),
            is_vector: true,
        };
        let need = |needs| Need { needs, by: "a test".to_owned() };
        let found = refused().with(need(Some(Needs { memory: 512, offset: 512 })));
        assert_eq!((found.address, found.buffer), (0x2001, 2));
        assert_eq!(refused().with(need(None)).buffer, 1);
    }

    #[test]
    fn an_offset_of_minus_one_is_the_position() {
        assert_eq!((offset(true, 7, 9), offset(true, u64::MAX, 9), offset(false, 7, 9)), (7, 9, 9));
    }

    #[test]
    fn a_file_that_is_gone_has_a_reason() {
        let need = Need::new(Path::new("/nonexistent/file"), None);
        assert!(need.needs.is_none() && need.by.contains("No such file"), "{need:?}");
    }
}
