use std::str::FromStr;

use super::given::KINDS;
use crate::{FORMATS, Format};

const SESSION: (&str, &str) = ("session", "a pasted text with any of these in it");

/// The kind of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// Items of one kind, by its name.
    Item(&'static str),
    /// A whole text in any forms.
    Session,
    /// A text in one form.
    Reader(Format),
}

/// No kind has this name.
#[derive(Debug, thiserror::Error)]
#[error("it is not one of {}", kinds().map(|(name, _)| name).collect::<Vec<_>>().join(", "))]
pub struct NoSuchKind;

impl FromStr for InputKind {
    type Err = NoSuchKind;

    fn from_str(text: &str) -> Result<Self, NoSuchKind> {
        if text == SESSION.0 {
            return Ok(Self::Session);
        }
        let item = KINDS.iter().find(|(name, _)| *name == text).map(|(name, _)| Self::Item(name));
        item.or_else(|| Format::by_name(text).map(Self::Reader)).ok_or(NoSuchKind)
    }
}

fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    let readers = FORMATS.iter().map(|spec| (spec.name, spec.about.trim_end_matches('.')));
    KINDS.into_iter().chain([SESSION]).chain(readers)
}

/// Lists the kinds and forms for the help, one per line.
pub fn kinds_for_help() -> String {
    let lines: String = kinds().map(|(name, about)| format!("\n  {name:13} {about}")).collect();
    format!("Values of --as:{lines}")
}
