use std::path::Path;

use serde::Serialize;

use super::contents::{Contents, ContentsError, Rows};

/// The contents of a fleet's directory.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ListedStore"))]
pub struct Listed {
    /// The directory.
    pub dir: String,
    /// The runs, sorted by day, machine and kernel.
    pub runs: Vec<StoredRun>,
    /// The number of files of facts.
    pub fact_sets: usize,
    /// The number of run documents.
    pub documents: usize,
    /// The size of all files, in bytes.
    pub bytes: u64,
}

/// A run, as its first line describes it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoredRun {
    /// Its id, from its file's name.
    pub id: String,
    /// Its day, from its file's directory.
    pub date: String,
    /// The user's name for the run.
    pub label: Option<String>,
    /// The user's name for the machine.
    pub machine: Option<String>,
    /// The kind of environment.
    pub environment: Option<tollgate_model::Environment>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The processor's model.
    pub cpu: Option<String>,
    /// The name of its set of facts.
    pub env_id: Option<String>,
    /// The size of its lines, in bytes.
    pub bytes: u64,
    /// Whether its samples are stored too.
    pub document: bool,
    /// The path of the file of its lines, relative to the directory.
    pub path: String,
    /// Why its first line cannot be read, as the predicate of a sentence whose subject is that file; or null.
    pub fault: Option<String>,
}

/// Lists the runs of a directory.
///
/// # Errors
/// If the directory is not a store.
pub fn list(directory: &Path) -> Result<Listed, ContentsError> {
    let contents = Contents::read(directory)?;
    let mut runs: Vec<StoredRun> = contents
        .rows
        .iter()
        .map(|Rows { date, id, path, size }| {
            let (row, fault) =
                contents.first_row(path).map_or_else(|fault| (None, Some(fault)), |row| (row, None));
            let text = |text: Option<&str>| text.map(str::to_owned);
            let row = row.as_ref();
            StoredRun {
                id: id.to_string(),
                date: date.to_string(),
                label: text(row.and_then(|row| row.label.as_deref())),
                machine: text(row.and_then(|row| row.machine.as_deref())),
                environment: row.map(|row| row.environment),
                kernel: text(row.and_then(|row| row.key_facts.kernel.as_deref())),
                cpu: text(row.and_then(|row| row.key_facts.cpu.as_deref())),
                env_id: text(row.map(|row| row.env_id.as_ref())),
                bytes: *size,
                document: contents.documents.contains(id),
                path: path.clone(),
                fault,
            }
        })
        .collect();
    runs.sort_by(|a, b| {
        (&a.date, &a.machine, &a.kernel, &a.id).cmp(&(&b.date, &b.machine, &b.kernel, &b.id))
    });
    Ok(Listed {
        dir: directory.display().to_string(),
        runs,
        fact_sets: contents.fact_sets,
        documents: contents.documents.len(),
        bytes: contents.bytes,
    })
}
