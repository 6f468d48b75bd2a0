//! A session as JSON: its runs as each is shown alone, and the comparison of the others with the first.

use std::path::PathBuf;

use serde::Serialize;
use tollgate_model::RunId;

use super::Session;
use crate::compare::json::Lists;
use crate::show::json as run;

/// The document.
#[derive(Serialize)]
pub struct Document<'a> {
    session: &'a RunId,
    runs: Vec<run::Document<'a>>,
    comparison: Lists<'a>,
}

impl<'a> Document<'a> {
    /// The document, with the files in which the runs are kept, in the order of the session's environments; fewer where they are not
    /// kept.
    pub fn of(session: &'a Session<'a>, kept: &[PathBuf]) -> Self {
        let files = kept.iter().map(|file| Some(file.as_path())).chain(std::iter::repeat(None));
        let members = session.members.iter();
        Self {
            session: session.id,
            runs: members.zip(files).map(|(member, kept)| run::Document::of(&member.summary, kept)).collect(),
            comparison: Lists::of(session.compared()),
        }
    }
}
