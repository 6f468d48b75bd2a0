//! The argument that names a boundary.

use std::ffi::OsStr;
use std::sync::LazyLock;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use tollgate_model::Boundary;
use tollgate_model::text::excerpt;
use tollgate_suites::selection::near;

/// Names that need no quotes in a shell.
static WORDS: LazyLock<Vec<String>> =
    LazyLock::new(|| Boundary::ALL.iter().map(|boundary| boundary.word()).collect());

#[derive(Debug, Clone, Copy)]
pub struct Boundaries;

impl TypedValueParser for Boundaries {
    type Value = Boundary;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<Boundary, Error> {
        let name = value.to_string_lossy();
        Boundary::named(&name).ok_or_else(|| {
            command.clone().error(ErrorKind::ValueValidation, format!("--affects: {}", unknown(&name)))
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(WORDS.iter().map(|word| PossibleValue::new(word.as_str()))))
    }
}

fn unknown(name: &str) -> String {
    let tip = match near(name, WORDS.iter().map(String::as_str)).as_slice() {
        [] => "`tollgate list` names those that each benchmark crosses".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    format!("there is no boundary {:?}; {tip}", excerpt(name))
}
