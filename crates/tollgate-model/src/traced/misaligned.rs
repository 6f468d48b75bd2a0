use serde::{Deserialize, Serialize};

/// Calls that moved data of a file opened with `O_DIRECT` and failed with `EINVAL`: the first of them, and how many there were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Misaligned {
    /// The file's path.
    pub path: String,
    /// The call, such as `pread64`.
    pub call: String,
    /// How many of these calls failed.
    pub count: u64,
    /// The file offset of the first.
    pub offset: u64,
    /// Its buffer; with several, the first misaligned one.
    pub address: u64,
    /// The buffer's length in bytes.
    pub length: u64,
    /// The number of the buffer among several, from 1; 0 if there was only one.
    #[serde(default)]
    pub buffer: u64,
    /// The alignment that the file needs; None if unknown.
    #[serde(default)]
    pub needs: Option<Needs>,
    /// The source of that, or why it is unknown.
    pub by: String,
}

/// The alignment that direct I/O of a file needs, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Needs {
    /// Alignment of addresses.
    pub memory: u32,
    /// Alignment of offsets and lengths.
    pub offset: u32,
}

/// The misaligned part of a call, with the bytes beyond the last multiple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// The buffer's address.
    Address(u64),
    /// The offset in the file.
    Offset(u64),
    /// The number of bytes.
    Length(u64),
}

impl Needs {
    /// Lists the misaligned parts of a call with this buffer: the address first, since it is the usual fault.
    pub fn misfits(self, offset: u64, address: u64, length: u64) -> Vec<Misfit> {
        let beyond =
            |value: u64, alignment: u32| value.checked_rem(u64::from(alignment)).filter(|rest| *rest > 0);
        let found = [
            beyond(address, self.memory).map(Misfit::Address),
            beyond(offset, self.offset).map(Misfit::Offset),
            beyond(length, self.offset).map(Misfit::Length),
        ];
        found.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_call_is_compared_with_what_it_needs() {
        let needs = Needs { memory: 4, offset: 512 };
        assert_eq!(needs.misfits(512, 0x1004, 1024), []);
        assert_eq!(needs.misfits(0, 0x1001, 512), [Misfit::Address(1)]);
        assert_eq!(
            needs.misfits(100, 0x1002, 513),
            [Misfit::Address(2), Misfit::Offset(100), Misfit::Length(1)]
        );
        assert_eq!(Needs { memory: 0, offset: 0 }.misfits(1, 1, 1), [], "a document may say anything");
    }
}
