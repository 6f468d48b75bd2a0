//! A session as JSON: its runs as each is shown alone, and the comparison of the others with the first.

use std::path::PathBuf;

use serde::Serialize;
use tollgate_model::RunId;

use super::Session;
use crate::compare::json::Lists;
use crate::show::json as run;

/// The document.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MeasuredSession"))]
pub struct SessionDocument<'a> {
    /// The id of the session.
    session: &'a RunId,
    /// A run for each environment, as `show` prints it.
    runs: Vec<run::ShowDocument<'a>>,
    /// The others compared with the first.
    comparison: Lists<'a>,
}

impl<'a> SessionDocument<'a> {
    /// The document, with the files in which the runs are kept, in the order of the session's environments; fewer if they are not
    /// kept.
    pub fn new(session: &'a Session<'a>, kept: &[PathBuf]) -> Self {
        let files = kept.iter().map(|file| Some(file.as_path())).chain(std::iter::repeat(None));
        let members = session.members.iter();
        Self {
            session: session.id,
            runs: members
                .zip(files)
                .map(|(member, kept)| run::ShowDocument::new(&member.summary, kept))
                .collect(),
            comparison: Lists::from_comparisons(session.compared()),
        }
    }
}
