//! A study: a program, a number of starts, and their evaluation.

use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{fs::File, io};

use super::allowed::{Allowed, Settings, allowed};
use super::child::Program;
use super::elf::{self, Elf, NotElf};
use super::spread::{Bits, Spread};
use super::together::{Together, Track};
use super::{ElfKind, NoStart, Region, Sighting, observed, plainly};
use crate::machine::Machine;

const TRUE: [&str; 2] = ["/bin/true", "/usr/bin/true"];
/// Bits by which a measurement may differ from the allowed bits and still agree with them.
const AGREES: f64 = 0.3;

/// A program that can be studied.
#[derive(Debug)]
pub struct Subject {
    /// Path as it is started.
    pub path: PathBuf,
    /// Properties of its file.
    pub elf: Elf,
    /// Whether it is set-user-ID or set-group-ID; while it is traced, it runs without those rights.
    pub changes_user: bool,
}

/// Why there is no study: one sentence, with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum NoStudy {
    /// A name without a slash that is in no directory of PATH.
    #[error("{0:?} is not in PATH; for a file in the current directory write \"./{0}\"")]
    NotInPath(String),
    /// The file cannot be opened.
    #[error("{:?} cannot be opened: {}{}", .0, plainly(.1), hint(.1))]
    NotOpened(PathBuf, io::Error),
    /// A directory, a device, a pipe.
    #[error("{0:?} is not a file with a program in it")]
    NotAFile(PathBuf),
    /// Not an ELF file for this machine.
    #[error("{0:?} {1}")]
    NotElf(PathBuf, NotElf),
    /// A start showed nothing.
    #[error("{0:?} cannot be read: {1}")]
    NoStart(PathBuf, NoStart),
    /// Neither a program that does nothing nor this program's file was found.
    #[error("neither /bin/true nor this program's own file was found; name a program to start")]
    NoDefault,
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; it must be readable, because its headers are read first",
        _ => "",
    }
}

/// The result for a region.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionResult {
    /// The region.
    pub region: Region,
    /// The measured spread, or why there is none.
    pub seen: Result<Spread, &'static str>,
    /// The bits that the settings allow.
    pub allowed: Allowed,
    /// Why the two differ, if they do.
    pub differs: Option<String>,
}

/// The result of a study.
#[derive(Debug)]
pub struct Study {
    /// The program.
    pub subject: Subject,
    /// Number of starts.
    pub starts: u32,
    /// The library that represents all.
    pub library: Option<String>,
    /// Results of all regions.
    pub regions: Vec<RegionResult>,
    /// The regions that move together.
    pub together: Together,
    /// The settings that decide how much is random.
    pub settings: Settings,
}

impl Subject {
    /// Finds a program: a path, a name in PATH, or by default a program that does nothing.
    ///
    /// # Errors
    /// A file that does not exist, or is not a program for this machine.
    pub fn find(named: Option<&Path>) -> Result<Self, NoStudy> {
        match named {
            Some(name) => Self::open(in_path(name)?),
            None => {
                let mut candidates = TRUE.iter().map(PathBuf::from).chain(std::env::current_exe());
                candidates.find_map(|path| Self::open(path).ok()).ok_or(NoStudy::NoDefault)
            }
        }
    }

    fn open(path: PathBuf) -> Result<Self, NoStudy> {
        let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(&path);
        let fault = |error| NoStudy::NotOpened(path.clone(), error);
        let file = opened.map_err(fault)?;
        let status = file.metadata().map_err(fault)?;
        if !status.is_file() {
            return Err(NoStudy::NotAFile(path));
        }
        let elf = elf::read(&file).map_err(|why| NoStudy::NotElf(path.clone(), why))?;
        let changes_user = status.mode() & (libc::S_ISUID | libc::S_ISGID) != 0;
        Ok(Self { path, elf, changes_user })
    }
}

fn in_path(name: &Path) -> Result<PathBuf, NoStudy> {
    let text = name.to_string_lossy();
    if text.contains('/') || text.is_empty() {
        return Ok(name.to_owned());
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let files = std::env::split_paths(&directories).map(|directory| directory.join(name));
    let executable =
        |path: &PathBuf| path.metadata().is_ok_and(|status| status.is_file() && status.mode() & 0o111 != 0);
    files.into_iter().find(executable).ok_or_else(|| NoStudy::NotInPath(text.into_owned()))
}

/// Starts a program `starts` times and evaluates its addresses. `progress` gets the number of finished starts; `stop` is checked
/// before and during each start.
///
/// # Errors
/// Starts of this program show nothing, or the caller asked to stop.
pub fn study(
    subject: Subject,
    starts: u32,
    machine: &Machine,
    progress: &mut dyn FnMut(u32),
    stop: &dyn Fn() -> bool,
) -> Result<Study, NoStudy> {
    let settings = Settings::read(machine);
    match traced(&subject, starts, progress, stop) {
        Ok((sightings, library)) => Ok(put_together(subject, &sightings, library, settings)),
        Err(NoStart::Stopped) => Err(NoStudy::Stopped),
        Err(why) => Err(NoStudy::NoStart(subject.path, or_no_loader(why, &subject.elf))),
    }
}

/// If the file exists, "No such file" refers to its loader.
fn or_no_loader(why: NoStart, elf: &Elf) -> NoStart {
    match (why, &elf.interpreter) {
        (NoStart::Failed("execve", error), Some(loader)) if error.kind() == io::ErrorKind::NotFound => {
            NoStart::NoLoader(loader.clone())
        }
        (why, _) => why,
    }
}

type Traces = (Vec<Sighting>, Option<String>);

fn traced(
    subject: &Subject,
    starts: u32,
    progress: &mut dyn FnMut(u32),
    stop: &dyn Fn() -> bool,
) -> Result<Traces, NoStart> {
    let program = Program::new(&subject.path, &subject.path)
        .map_err(|error| NoStart::Failed("preparing a start", error))?;
    // If they were reparented to init, dead processes would stay in the list until init reaps them.
    let _subreaper = tollgate_os::children::Subreaper::begin();
    let mut library = None;
    let one = |done| {
        progress(done);
        if stop() {
            return Err(NoStart::Stopped);
        }
        let (sighting, path) = observed::observe(&program, stop)?;
        library = path;
        Ok(sighting)
    };
    let sightings: Result<_, _> = (0..starts).map(one).collect();
    Ok((sightings?, library))
}

fn put_together(
    subject: Subject,
    sightings: &[Sighting],
    library: Option<String>,
    settings: Settings,
) -> Study {
    let mut tracks = Vec::new();
    let mut regions = Vec::new();
    for region in Region::ALL {
        let addresses: Option<Vec<u64>> = sightings.iter().map(|sighting| sighting.at(region)).collect();
        let track = addresses
            .and_then(|addresses| Spread::of(&addresses).map(|spread| Track { region, addresses, spread }));
        let seen =
            track.as_ref().map(|track| track.spread.clone()).ok_or_else(|| missing(region, &subject.elf));
        let allowed = allowed(&settings, &subject.elf, region);
        let differs = seen.as_ref().ok().and_then(|spread| differs(spread, &allowed, region));
        regions.push(RegionResult { region, seen, allowed, differs });
        tracks.extend(track);
    }
    let starts = sightings.len() as u32;
    Study { subject, starts, library, regions, together: Together::of(&tracks), settings }
}

fn missing(region: Region, elf: &Elf) -> &'static str {
    let has_loader = elf.interpreter.is_some();
    match region {
        Region::Libraries | Region::Loader if !has_loader => "it has no dynamic loader",
        Region::Libraries => "/proc shows no shared library at the entry point",
        Region::ThreadStorage if !has_loader => "it is not set up before the entry point",
        Region::ThreadStorage => "the loader did not set it up",
        Region::Loader => "the kernel did not say where it is",
        Region::Vdso => "the kernel mapped none",
        _ => "it was not there in every start",
    }
}

fn differs(spread: &Spread, allowed: &Allowed, region: Region) -> Option<String> {
    let most = allowed.bits?;
    let (measured, error) = match spread.bits {
        Bits::Uniform(interval) => (interval.bits, (interval.high - interval.low) / 2.0),
        // A deviation that could have gone unseen is not a difference: with one start, any could.
        Bits::Constant { at_most } => (0.0, at_most),
        _ => (spread.bits.figure()?, 0.0),
    };
    let less = most - measured;
    if less.abs() <= AGREES.max(error) {
        return None;
    }
    if less < 0.0 {
        return Some(format!("{:.1} bits more than {} allows", -less, allowed.source));
    }
    let lost = spread.alignment.map_or(0.0, |alignment| (alignment.max(4096) / 4096) as f64).log2();
    if lost > 0.0 && (less - lost).abs() <= AGREES.max(error) {
        let why = match region {
            Region::Code | Region::Libraries | Region::Loader => {
                ": so large a file is mapped where huge pages fit (thp_get_unmapped_area)"
            }
            _ => "",
        };
        return Some(format!("its alignment takes {lost:.0} bits{why}"));
    }
    Some(format!("{less:.1} bits fewer than {} allows", allowed.source))
}

impl Study {
    /// The spread of each region that was seen.
    pub fn seen(&self) -> impl Iterator<Item = (Region, &Spread)> {
        self.regions.iter().filter_map(|found| Some((found.region, found.seen.as_ref().ok()?)))
    }

    /// Returns whether no region moves.
    pub fn stands_still(&self) -> bool {
        self.seen().all(|(_, spread)| spread.bits.stays())
    }

    /// Returns whether the code cannot move.
    pub fn is_fixed(&self) -> bool {
        self.subject.elf.kind == ElfKind::Fixed
    }
}
