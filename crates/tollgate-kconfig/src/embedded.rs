//! The configuration that a kernel carries in itself (`CONFIG_IKCONFIG`): gzip between two marks, as
//! kernel/configs.c lays it out.

use std::io::Read;

use crate::error::{ConfigError, io_error};

/// The first mark, and the beginning of the gzip stream after it: the mark's letters alone occur elsewhere.
const START: &[u8] = b"IKCFG_ST\x1f\x8b\x08";
const END: &[u8] = b"IKCFG_ED";
const MARK: usize = 8;
/// The most that lies between the marks; real ones are below 100 KiB.
const MOST: u64 = 4 << 20;
/// The most of a kernel that is searched. A vmlinux with all of its debugging information can be larger, but the
/// data most often come before that.
pub(crate) const MOST_SEARCHED: u64 = 512 << 20;
const STEP: usize = 1 << 16;

/// The amount that was searched in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Searched {
    /// Bytes.
    pub bytes: u64,
    /// Whether there are no more.
    pub whole: bool,
}

/// Searches the first `most` bytes for the configuration's mark, and hands back the gzip stream after it.
/// `Err(searched)` within where it is not there.
pub(crate) fn find(source: &mut dyn Read, most: u64) -> Result<Result<Vec<u8>, Searched>, ConfigError> {
    let mut window: Vec<u8> = Vec::with_capacity(2 * STEP);
    let mut searched = 0_u64;
    loop {
        let before = window.len();
        let read = Read::take(&mut *source, STEP as u64).read_to_end(&mut window).map_err(io_error)?;
        searched += read as u64;
        // The bytes before can hold only the mark's beginning.
        let from = before.saturating_sub(START.len() - 1);
        if let Some(at) = position(&window[from..], START) {
            let stream = window.split_off(from + at + MARK);
            return between(stream, source).map(Ok);
        }
        if read < STEP {
            return Ok(Err(Searched { bytes: searched, whole: true }));
        }
        if searched >= most {
            return Ok(Err(Searched { bytes: searched, whole: is_at_end(source)? }));
        }
        let keep = window.len().saturating_sub(START.len() - 1);
        window.drain(..keep);
    }
}

/// Whether nothing more can be read.
fn is_at_end(source: &mut dyn Read) -> Result<bool, ConfigError> {
    let mut next = Vec::new();
    source.take(1).read_to_end(&mut next).map_err(io_error)?;
    Ok(next.is_empty())
}

/// The bytes before the second mark.
fn between(mut stream: Vec<u8>, source: &mut dyn Read) -> Result<Vec<u8>, ConfigError> {
    source.take(MOST).read_to_end(&mut stream).map_err(io_error)?;
    let end = position(&stream, END).ok_or(ConfigError::Unended(MOST))?;
    stream.truncate(end);
    Ok(stream)
}

/// Where `needle` first stands.
fn position(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let (&first, rest) = needle.split_first()?;
    let mut at = 0;
    while let Some(next) = haystack[at..].iter().position(|&byte| byte == first) {
        at += next + 1;
        if haystack[at..].starts_with(rest) {
            return Some(at - 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn search(bytes: &[u8]) -> Result<Result<Vec<u8>, Searched>, ConfigError> {
        find(&mut { bytes }, MOST_SEARCHED)
    }

    /// Reads exactly so many bytes.
    fn all(bytes: u64) -> Searched {
        Searched { bytes, whole: true }
    }

    #[test]
    fn the_mark_is_found_wherever_it_stands() {
        for before in (0..40).chain(STEP - 30..STEP + 30).chain([5 * STEP - 4]) {
            let mut bytes = vec![b'I'; before];
            bytes.extend(b"\x1f\x8b\x08 IKCFG_ST alone IKCFG_ED");
            bytes.extend(START);
            bytes.extend(b"the stream");
            bytes.extend(END);
            bytes.extend(vec![0; STEP]);
            assert_eq!(search(&bytes), Ok(Ok(b"\x1f\x8b\x08the stream".to_vec())), "{before}");
        }
    }

    #[test]
    fn a_beginning_without_an_end_is_damage() {
        assert_eq!(search(&[START, b"the stream"].concat()), Err(ConfigError::Unended(MOST)));
        assert_eq!(search(b"IKCFG_ST no stream"), Ok(Err(all(18))));
    }

    #[test]
    fn an_unsearched_end_is_no_lack_of_a_configuration() {
        let most = 2 * STEP as u64;
        let of = |bytes: usize| find(&mut vec![0; bytes].as_slice(), most);
        assert_eq!(of(2 * STEP), Ok(Err(all(most))));
        assert_eq!(of(2 * STEP - 1), Ok(Err(all(most - 1))));
        assert_eq!(of(2 * STEP + 1), Ok(Err(Searched { bytes: most, whole: false })));
        let marked = [vec![0; 5 * STEP], START.to_vec(), END.to_vec()].concat();
        assert_eq!(find(&mut marked.as_slice(), most), Ok(Err(Searched { bytes: most, whole: false })));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in any::<Vec<u8>>()) {
            prop_assert_eq!(search(&bytes), Ok(Err(all(bytes.len() as u64))));
        }

        #[test]
        fn a_needle_is_found_where_it_is(bytes in prop::collection::vec(0_u8..3, 0..40), needle in prop::collection::vec(0_u8..3, 1..4)) {
            let plain = bytes.windows(needle.len()).position(|window| window == needle);
            prop_assert_eq!(position(&bytes, &needle), plain);
        }
    }
}
