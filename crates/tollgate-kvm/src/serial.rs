//! A guest's output.

/// Bytes that a guest may write to its serial port. A run of all experiments of the lab writes a few thousand.
const MAX_SERIAL: usize = 1 << 20;

/// Adds to a guest's output; returns a clause if the guest wrote more than the limit.
pub fn written(serial: &mut Vec<u8>, bytes: &[u8]) -> Option<String> {
    let room = MAX_SERIAL.saturating_sub(serial.len());
    serial.extend_from_slice(&bytes[..bytes.len().min(room)]);
    (bytes.len() > room).then(|| format!("it wrote more than {MAX_SERIAL} bytes to its serial port"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_has_a_bound(parts in proptest::collection::vec(0usize..(MAX_SERIAL / 2), 0..6)) {
            let mut serial = Vec::new();
            let refused = parts.iter().filter_map(|&part| written(&mut serial, &vec![1; part])).count();
            let all: usize = parts.iter().sum();
            prop_assert_eq!(serial.len(), all.min(MAX_SERIAL));
            prop_assert_eq!(refused > 0, all > MAX_SERIAL);
        }
    }
}
