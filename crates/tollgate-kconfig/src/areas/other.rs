//! Options of no other area. It has no entries: an option that is not found belongs here.

use super::Entry;

pub(crate) static ENTRIES: &[Entry] = &[];
