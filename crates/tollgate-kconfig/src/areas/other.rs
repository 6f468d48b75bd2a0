//! What no other area names. It has no entries: whatever is not found belongs here.

use super::Entry;

pub(crate) static ENTRIES: &[Entry] = &[];
