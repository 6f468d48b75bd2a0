//! KVM's counters of a virtual processor (KVM_GET_STATS_FD, since Linux 5.14).

#![allow(unsafe_code)] // A request that kvm-ioctls does not have.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;

use kvm_ioctls::VcpuFd;

/// KVM_GET_STATS_FD, `_IO(KVMIO, 0xce)` in linux/kvm.h.
const GET_STATS_FD: libc::c_ulong = 0xaece;
/// No kernel's statistics are this long: there are some 60 figures with names of 48 bytes, and histograms.
const MAX_BYTES: usize = 1 << 18;
/// The bytes before a figure's name (`struct kvm_stats_desc`).
const DESCRIPTION: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Statistics {
    pub emulated: u64,
    pub exits: u64,
}

/// Reads the figures; `None` if this kernel does not have them.
pub(super) fn read(vcpu: &VcpuFd) -> Option<Statistics> {
    // SAFETY: KVM_GET_STATS_FD takes no argument.
    let fd = unsafe { libc::ioctl(vcpu.as_raw_fd(), GET_STATS_FD) };
    if fd < 0 {
        return None;
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    let file = unsafe { File::from_raw_fd(fd) };
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    while bytes.len() < MAX_BYTES {
        match file.read_at(&mut part, bytes.len() as u64).ok()? {
            0 => break,
            got => bytes.extend_from_slice(&part[..got]),
        }
    }
    Some(Statistics { emulated: figure(&bytes, "insn_emulation")?, exits: figure(&bytes, "exits")? })
}

/// Finds a figure by name in `struct kvm_stats_header` and what it points to (Documentation/virt/kvm/api.rst, KVM_GET_STATS_FD).
fn figure(bytes: &[u8], name: &str) -> Option<u64> {
    let name_size = word(bytes, 4)? as usize;
    let count = word(bytes, 8)? as usize;
    let descriptions = word(bytes, 16)? as usize;
    let data = word(bytes, 20)? as usize;
    let mut descriptions =
        bytes.get(descriptions..)?.chunks_exact(DESCRIPTION.checked_add(name_size)?).take(count);
    let found = descriptions.find(|description| {
        description[DESCRIPTION..].split(|&byte| byte == 0).next() == Some(name.as_bytes())
    })?;
    let at = data.checked_add(word(found, 8)? as usize)?;
    bytes.get(at..)?.first_chunk().map(|figure| u64::from_ne_bytes(*figure))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(figures: &[(&str, u64)]) -> Vec<u8> {
        let size = DESCRIPTION + 48;
        let data = 24 + figures.len() * size;
        let header = [0, 48, figures.len(), 24, 24, data].map(|word| u32::try_from(word).unwrap());
        let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_ne_bytes()).collect();
        for (n, (name, _)) in figures.iter().enumerate() {
            let mut description = vec![0; size];
            description[8..12].copy_from_slice(&u32::try_from(n * 8).unwrap().to_ne_bytes());
            description[DESCRIPTION..DESCRIPTION + name.len()].copy_from_slice(name.as_bytes());
            bytes.extend(description);
        }
        bytes.extend(figures.iter().flat_map(|(_, figure)| figure.to_ne_bytes()));
        bytes
    }

    #[test]
    fn a_figure_is_found_by_its_whole_name() {
        let bytes = file(&[("insn_emulation_fail", 3), ("insn_emulation", 20_000), ("exits", 21)]);
        assert_eq!(figure(&bytes, "insn_emulation"), Some(20_000));
        assert_eq!(figure(&bytes, "exits"), Some(21));
        assert_eq!(figure(&bytes, "exit"), None);
        assert_eq!(figure(&bytes[..bytes.len() - 1], "exits"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..400),
            header in proptest::collection::vec(prop_oneof![0u32..300, any::<u32>()], 6),
        ) {
            let _ = figure(&bytes, "exits");
            for (at, word) in header.iter().enumerate() {
                if let Some(place) = bytes.get_mut(at * 4..at * 4 + 4) {
                    place.copy_from_slice(&word.to_ne_bytes());
                }
            }
            let _ = figure(&bytes, "exits");
        }
    }
}
