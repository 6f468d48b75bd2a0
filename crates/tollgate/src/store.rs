//! Kept runs: their directory, and how one is found by file, label, id or `last`.

use std::cell::RefCell;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags};
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use tollgate_model::bounded::Bounded;
use tollgate_model::run::{MAX_BYTES, ReadError};
use tollgate_model::{Label, Run, RunId};
use tollgate_os::paths::Directory;
use tollgate_os::users;
use tollgate_view::export::layout::DOCUMENTS;

use crate::failure::{Failure, plainly};
use crate::out::{self, Form};
use crate::stored;
use crate::writing::{self, Existing, Until};

const EXTENSION: &str = "json";
/// The name of standard output where a file is expected.
const STANDARD_OUTPUT: &str = "-";
/// The name of the newest run.
const LAST: &str = "last";

/// The destination of a run.
#[derive(Debug)]
pub enum Destination {
    /// The file that the user named.
    File(PathBuf),
    /// Standard output, in place of the table: for containers and sandboxes whose files are not visible outside.
    Output,
    /// The directory of kept runs.
    Kept(Directory),
    /// A directory of stored runs that the user named.
    Stored(PathBuf),
    /// Nowhere, for this reason: a sentence. The user named no file, so the run is still shown.
    Nowhere(String),
}

impl Destination {
    /// Chosen before the run is made, so that a minute of measuring is not lost.
    ///
    /// # Errors
    /// When a file or directory that the user named cannot be written to.
    pub fn choose(out: Option<&Path>) -> Result<Self, Failure> {
        if out == Some(Path::new(STANDARD_OUTPUT)) {
            if out::is_closed() {
                return Err(Failure::input("--out -: standard output is closed"));
            }
            return Ok(Self::Output);
        }
        if let Some(file) = out {
            writing::check(file).map_err(|why| Failure::input(format!("--out {}: {why}", file.display())))?;
            return Ok(Self::File(file.to_owned()));
        }
        let home = home();
        let (Home::Named(directory) | Home::Usual(directory)) = &home else {
            return Ok(Self::Nowhere("neither XDG_DATA_HOME nor HOME is set".to_owned()));
        };
        if let Some(owner) = owner_of_another(directory) {
            let (directory, owner) = (directory.display(), users::describe(owner));
            return Ok(Self::Nowhere(format!(
                "root keeps no runs in {directory}, which is in a directory of {owner}"
            )));
        }
        match (prepare(directory), &home) {
            (Ok(kept), _) => Ok(Self::Kept(kept)),
            (Err(error), Home::Named(_)) => Err(Failure::input(format!(
                "runs cannot be kept in {} (XDG_DATA_HOME): {}; name another file with --out FILE",
                directory.display(),
                plainly(&error)
            ))),
            (Err(error), _) => {
                let (directory, why) = (directory.display(), plainly(&error));
                Ok(Self::Nowhere(format!("runs cannot be kept in {directory}: {why}")))
            }
        }
    }

    /// The directory of stored runs that the user named.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub fn stored(directory: &Path) -> Result<Self, Failure> {
        stored::prepare(directory)?;
        Ok(Self::Stored(directory.to_owned()))
    }

    /// Keeps a run. The path, where there is one now.
    ///
    /// # Errors
    /// When it cannot be written; then nothing of it is left.
    pub fn keep(&self, run: &Run) -> Result<Option<PathBuf>, Failure> {
        self.keep_until(run, Until::Durable)
    }

    /// The same without waiting for the disk, of a run that is soon made again; see [`writing::write_soon`].
    ///
    /// # Errors
    /// As [`Destination::keep`].
    pub fn keep_soon(&self, run: &Run) -> Result<Option<PathBuf>, Failure> {
        self.keep_until(run, Until::Written)
    }

    fn keep_until(&self, run: &Run, until: Until) -> Result<Option<PathBuf>, Failure> {
        let path = match self {
            Self::Nowhere(_) => return Ok(None),
            Self::Output => {
                let document = run.to_json().map_err(|error| Failure::input(format!("the run {error}")))?;
                return match out::print_document(&document, Form::Json) {
                    Ok(()) => Ok(None),
                    Err(failure) => Err(keep_unprinted(run, failure)),
                };
            }
            Self::Stored(directory) => return stored::write(directory, run).map(Some),
            Self::File(file) => file.clone(),
            Self::Kept(directory) => path_of(directory.path(), &run.id),
        };
        let fault =
            |why: String| Failure::NotKept(format!("the run was not kept: {}: {why}", path.display()));
        let document = run.to_json().map_err(|error| fault(error.to_string()))?;
        if document.len() as u64 > MAX_BYTES {
            return Err(fault(format!("it {}", ReadError::TooLarge)));
        }
        let written = match (self, path.file_name(), until) {
            (Self::Kept(directory), Some(name), _) => {
                writing::write_in(directory, name, &document, Existing::Keep, until, writing::PRIVATE)
            }
            (_, _, Until::Durable) => writing::write_whole(&path, &document, Existing::Replace),
            (_, _, Until::Written) => {
                writing::write_soon(&path, Existing::Replace, |file| file.write_all(&document))
            }
        };
        written.map_err(|error| fault(plainly(&error)))?;
        Ok(Some(path))
    }
}

/// A run that could not be printed is kept as usual: it was measured, and that may have taken long.
fn keep_unprinted(run: &Run, failure: Failure) -> Failure {
    let why = match failure {
        Failure::ClosedPipe => "standard output was closed before the run was printed".to_owned(),
        Failure::Input(why) => why,
        other => return other,
    };
    match Destination::choose(None).and_then(|usual| usual.keep(run)) {
        Ok(Some(path)) => Failure::input(format!("{why}; the run is kept in {}", path.display())),
        Ok(None) => Failure::NotKept(format!("{why}, and the run was not kept: it is lost")),
        Err(Failure::Input(also) | Failure::NotKept(also)) => Failure::NotKept(format!("{why}; {also}")),
        Err(other) => other,
    }
}

/// The directory of kept runs, made where it is missing. It is its owner's alone: command lines in runs may hold secrets.
fn prepare(directory: &Path) -> io::Result<Directory> {
    let directory = Directory::create(directory, Mode::RWXU)?;
    let stat = rustix::fs::fstat(&directory)?;
    if stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o077 != 0 {
        // Made by an older version, or by hand.
        let readable = rustix::fs::openat(&directory, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::fs::fchmod(&readable, Mode::RWXU)?;
    }
    writing::try_out(&directory)?;
    Ok(directory)
}

/// As root, the other user that the directory, or the first one above it that is there, belongs to: `sudo` may leave HOME as it was.
fn owner_of_another(directory: &Path) -> Option<u32> {
    let is_root = rustix::process::geteuid().is_root();
    let there = directory.ancestors().find_map(|path| fs::symlink_metadata(path).ok())?;
    (is_root && there.uid() != 0).then_some(there.uid())
}

/// The directory of kept runs by the XDG Base Directory specification, which ignores a relative XDG_DATA_HOME.
enum Home {
    Named(PathBuf),
    Usual(PathBuf),
    Unknown,
}

fn home() -> Home {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    match (absolute("XDG_DATA_HOME"), absolute("HOME")) {
        (Some(data), _) => Home::Named(data.join("tollgate/runs")),
        (None, Some(home)) => Home::Usual(home.join(".local/share/tollgate/runs")),
        (None, None) => Home::Unknown,
    }
}

fn path_of(directory: &Path, id: &RunId) -> PathBuf {
    directory.join(format!("{id}.{EXTENSION}"))
}

/// The id of a run that began then: its UTC time, by which ids sort, and something random, enough for ten thousand machines that
/// begin in the same minute.
pub fn new_id(began: SystemTime) -> Result<RunId, Failure> {
    let time = humantime::format_rfc3339_seconds(began).to_string();
    let digits: String = time.chars().filter(|c| c.is_ascii_digit() || *c == 'T').collect();
    let id = format!("{}-{:08x}", digits.replace('T', "-"), writing::random());
    id.parse().map_err(|error| Failure::input(format!("the system's clock shows no usable time: {error}")))
}

/// A run that is kept.
#[derive(Debug)]
pub struct Entry {
    /// From its file's name.
    pub id: RunId,
    /// Its file.
    pub path: PathBuf,
    written: SystemTime,
}

/// The kept runs, oldest first.
///
/// # Errors
/// When their directory exists and cannot be read.
pub fn kept() -> Result<Vec<Entry>, Failure> {
    let (Home::Named(directory) | Home::Usual(directory)) = home() else { return Ok(Vec::new()) };
    entries(&directory)
}

/// The run documents in a directory, oldest first; none where there is no such directory.
fn entries(directory: &Path) -> Result<Vec<Entry>, Failure> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(Failure::input(format!(
                "{} cannot be read: {}",
                directory.display(),
                plainly(&error)
            )));
        }
    };
    let mut kept: Vec<Entry> = entries.filter_map(|entry| Entry::of(&entry.ok()?.path())).collect();
    tollgate_model::sort::by(&mut kept, |a, b| a.moment().cmp(&b.moment()));
    Ok(kept)
}

impl Entry {
    /// Other files are skipped, such as those that a killed program left half-written.
    fn of(path: &Path) -> Option<Self> {
        if path.extension()? != EXTENSION {
            return None;
        }
        let id = path.file_stem()?.to_str()?.parse().ok()?;
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Self { id, path: path.to_owned(), written: metadata.modified().ok()? })
    }

    /// When it was kept: the second in which its file was written, by this machine's clock. Files of one second were perhaps copied
    /// together: of these the time that their ids begin with decides, and of ids of one second the files again.
    fn moment(&self) -> (u64, &str, SystemTime, &RunId) {
        let second = self.written.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let id = self.id.as_ref();
        let began = id.rsplit_once('-').map_or(id, |(began, _)| began);
        (second, began, self.written, &self.id)
    }

    /// Reads it.
    ///
    /// # Errors
    /// As [`open`], and where it is not the run that its file's name says.
    pub fn open(&self) -> Result<Run, String> {
        let run = open(&self.path)?;
        match run.id == self.id {
            true => Ok(run),
            false => Err(another_run(&run.id)),
        }
    }

    /// Its label, read without reading the samples.
    fn label(&self) -> Option<String> {
        label_of(File::open(&self.path).ok()?)
    }
}

/// The run that a user means: a file where it looks like one, else a kept run by `last`, id, label (the
/// newest that has it) or the beginning of an id, else a file after all. A directory of stored runs means the
/// newest of them, and `DIR:` before any of these names one of them.
///
/// # Errors
/// When there is none, when a beginning fits several, or when the document is not a run.
pub fn find(meant: &str) -> Result<Run, Failure> {
    let (path, run) = match locate(meant)? {
        Located::File(path) => (path.clone(), open(&path)),
        Located::Kept(entry) => (entry.path.clone(), entry.open()),
    };
    run.map_err(|why| Failure::input(format!("{} {why}", path.display())))
}

/// The file of a run.
enum Located {
    /// In a file, which may be called anything.
    File(PathBuf),
    /// Among runs whose files have their ids as names.
    Kept(Entry),
}

fn locate(meant: &str) -> Result<Located, Failure> {
    let file = PathBuf::from(meant);
    let is_called_so = || file.extension().is_some_and(|extension| extension == EXTENSION) && file.is_file();
    if let Some((directory, run)) = in_store(meant) {
        return locate_stored(directory, run);
    }
    if meant.contains('/') || is_called_so() {
        return Ok(Located::File(file));
    }
    if let Some(entry) = among(kept()?, meant)? {
        return Ok(Located::Kept(entry));
    }
    match meant {
        _ if stored::is_store(&file) => locate_stored(&file, LAST),
        LAST => Err(Failure::input("no run is kept yet; `tollgate run` makes one")),
        _ if file.exists() => Ok(Located::File(file)),
        _ => Err(Failure::input(format!(
            "no kept run has the label or id {meant:?}, and there is no such file; `tollgate list --runs` shows \
             what is kept"
        ))),
    }
}

/// The directory of stored runs that is meant, and which of them. What has no `/` and no `:` may be a label.
fn in_store(meant: &str) -> Option<(&Path, &str)> {
    let whole = Path::new(meant);
    if meant.contains('/') && stored::is_store(whole) {
        return Some((whole, LAST));
    }
    let (directory, run) = meant.rsplit_once(':')?;
    let directory = Path::new(directory);
    (!whole.exists() && stored::is_store(directory)).then_some((directory, run))
}

fn locate_stored(directory: &Path, meant: &str) -> Result<Located, Failure> {
    let documents = directory.join(DOCUMENTS);
    let entries = entries(&documents)?;
    let fault = |why: String| Failure::input(format!("{} {why}", directory.display()));
    if entries.is_empty() {
        return Err(fault(format!(
            "has no run documents in {DOCUMENTS}/: samples are only there, and without them nothing can be shown or compared"
        )));
    }
    let found = among(entries, meant)?.map(Located::Kept);
    found.ok_or_else(|| {
        fault(format!(
            "has no run with the label or id {meant:?}; `tollgate store list` shows what is stored"
        ))
    })
}

/// The run that is meant by `last`, id, label or the beginning of an id.
fn among(mut entries: Vec<Entry>, meant: &str) -> Result<Option<Entry>, Failure> {
    if meant == LAST {
        return Ok(entries.pop());
    }
    let is_labelled = |entry: &Entry| entry.label().as_deref() == Some(meant);
    let exact = entries.iter().position(|entry| entry.id.as_ref() == meant).or_else(|| {
        meant.parse::<Label>().ok()?;
        entries.iter().rposition(is_labelled)
    });
    if let Some(exact) = exact {
        return Ok(Some(entries.swap_remove(exact)));
    }
    entries.retain(|entry| !meant.is_empty() && entry.id.as_ref().starts_with(meant));
    match entries.as_slice() {
        [] | [_] => Ok(entries.pop()),
        [first, .., last] => Err(Failure::input(format!(
            "{} kept runs have an id that begins with {meant:?}, from {} to {}; say more of it",
            entries.len(),
            first.id,
            last.id
        ))),
    }
}

/// The fault of a kept run whose document has another id: the predicate of a sentence whose subject is the file.
pub fn another_run(id: &RunId) -> String {
    format!("holds the run {id}, which is not the one that its name says; give it the name {id}.{EXTENSION}")
}

/// Reads a run document of unknown origin.
///
/// # Errors
/// The predicate of a sentence whose subject is the file.
pub fn open(path: &Path) -> Result<Run, String> {
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("cannot be read: {}", plainly(&error)),
    })?;
    let metadata = file.metadata().map_err(|error| format!("cannot be read: {}", plainly(&error)))?;
    if metadata.is_dir() {
        return Err("is a directory; a run document is a file".to_owned());
    }
    if path.extension().is_some_and(|extension| extension == "ndjson") {
        return Err(format!("holds lines, without samples; the run is beside them in {DOCUMENTS}/"));
    }
    if metadata.is_file() && metadata.len() > MAX_BYTES {
        return Err(ReadError::TooLarge.to_string());
    }
    read(file)
}

/// Reads a run document from an open file.
///
/// # Errors
/// The predicate of a sentence whose subject is the file.
pub fn read(source: impl io::Read) -> Result<Run, String> {
    Run::read(source).map_err(|error| match error {
        ReadError::Io(error) => format!("cannot be read: {}", plainly(&error)),
        other => other.to_string(),
    })
}

/// The top-level `label` of a document, read no further than to there.
fn label_of(source: impl io::Read) -> Option<String> {
    let found = RefCell::new(None);
    // The visitor stops in the middle of the document, which the deserializer then takes for an error.
    let source = BufReader::new(Bounded::new(source));
    let _ = serde_json::Deserializer::from_reader(source).deserialize_map(UpToLabel(&found));
    found.into_inner()
}

struct UpToLabel<'a>(&'a RefCell<Option<String>>);

impl<'de> Visitor<'de> for UpToLabel<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a run document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            if name == "label" {
                *self.0.borrow_mut() = fields.next_value()?;
                return Ok(());
            }
            fields.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_names_that_sort_by_time() {
        let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let earlier = new_id(at(1_795_226_067)).expect("an id");
        assert!(earlier.as_ref().starts_with("20261121-015427-"), "{earlier}");
        assert_eq!(earlier.as_ref().len(), "20261121-015427-3f2a91c4".len());
        assert!(earlier < new_id(at(1_795_226_068)).expect("an id"));
    }

    #[test]
    fn a_label_is_found_without_the_rest_of_the_document() {
        assert_eq!(
            label_of(&br#"{"schema": 2,"tool":{"label":"no"},"label":"yes","environment":"#[..]),
            Some("yes".into())
        );
        assert_eq!(label_of(&br#"{"schema": 2,"label":null,"environment":"vm"}"#[..]), None);
        assert_eq!(label_of(&b"not json"[..]), None);
        assert_eq!(label_of(&br#"{"label":7}"#[..]), None);
    }

    #[test]
    fn only_whole_runs_are_entries() {
        let directory = tempfile::tempdir().expect("a directory");
        let entry = |name: &str| {
            let path = directory.path().join(name);
            fs::write(&path, "{}").expect("written");
            Entry::of(&path).is_some()
        };
        assert!(entry("20261121-015427-3f2a.json"));
        assert!(!entry(".20261121-015427-3f2a.json.00c0ffee.tmp"));
        assert!(!entry("notes.txt"));
        assert!(!entry(".hidden.json"));
        fs::create_dir(directory.path().join("directory.json")).expect("made");
        assert!(Entry::of(&directory.path().join("directory.json")).is_none());
    }
}
