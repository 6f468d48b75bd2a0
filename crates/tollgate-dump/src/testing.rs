use crate::{Format, What, Wrong, read};

/// Returns the content of the text's lines, without evidence for the form of tables.
pub(crate) fn whats(text: &str) -> Vec<What> {
    found(text, |what| (!matches!(what, What::Form(_))).then_some(what))
}

pub(crate) fn found<T>(text: &str, wanted: impl Fn(What) -> Option<T>) -> Vec<T> {
    read(text.as_bytes(), None).pieces.into_iter().filter_map(|piece| wanted(piece.what)).collect()
}

pub(crate) fn bytes_as(text: &str, format: Format, hint: Option<Format>) -> Vec<u8> {
    let pieces = read(text.as_bytes(), hint).pieces.into_iter();
    let bytes = pieces.filter_map(|piece| match piece.what {
        What::Bytes { address: None, bytes } if piece.format == format => Some(bytes),
        _ => None,
    });
    bytes.flatten().collect()
}

pub(crate) fn wrong(text: &str) -> Option<Wrong> {
    read(text.as_bytes(), None).complaints.pop().map(|complaint| complaint.wrong)
}
