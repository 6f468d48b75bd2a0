//! `tollgate ram --compare`: file calls on each way to have files in memory, one way after the other.

use tollgate_engine::{Plan, Storage, Topology, interrupt};
use tollgate_environments::{Driver, EnvironmentError, OnRam, RamDisk};
use tollgate_model::Run;
use tollgate_suites::{Extent, Size};
use tollgate_view::ram::{CASES, Way};

use crate::args::{Format, ram::RamArgs};
use crate::failure::{Failure, go_on};
use crate::{out, run, storage};

/// The processes of each case on each way: a few seconds, and longer on a machine that is busy.
const PROCESSES: usize = 40;

/// Measures [`CASES`] on each way that works here and shows one table.
///
/// # Errors
/// When it is interrupted, or nothing can be measured at all; the need of root.
pub fn compare(args: &RamArgs) -> Result<(), Failure> {
    let cases = CASES.map(|(case, _)| case.to_owned());
    let selection = tollgate_suites::select(&Topology::here(), &cases, Extent::Usual, Size::Small)
        .map_err(|unknown| Failure::input(unknown.to_string()))?;
    let stop = || interrupt::requested().is_some();
    let file_system = match args.fs.as_str() {
        "none" | "tmpfs" => "ext4",
        name => name,
    };
    let ways = [
        ("brd", Driver::Brd, file_system),
        ("null_blk", Driver::NullBlk, file_system),
        ("loop", Driver::Loop, file_system),
        ("tmpfs", Driver::Any, "tmpfs"),
    ];
    RamDisk::check_privilege().map_err(super::failure)?;
    let mut measured: Vec<(String, Result<Run, String>)> = Vec::new();
    for (name, driver, file_system) in ways {
        let shown = if name == "tmpfs" { name.to_owned() } else { format!("{name}, {file_system}") };
        let on = OnRam { driver, file_system: file_system.to_owned() };
        let made = match RamDisk::make(&on, &storage::memory(), &stop) {
            Ok(disk) => {
                let (limit, by) = disk.limit();
                let storage = Storage { directory: disk.directory().clone(), limit, by };
                let plan = Plan { storage: Ok(storage), ..Plan::of_processes(PROCESSES) };
                let mut run = run::make(&selection, &plan, None, !args.quiet)?;
                run.facts.extend(disk.facts());
                Ok(run)
            }
            Err(EnvironmentError::Interrupted) => return Err(super::failure(EnvironmentError::Interrupted)),
            Err(error) => Err(error.to_string()),
        };
        go_on()?;
        measured.push((shown, made));
    }
    let ways: Vec<Way> = measured.iter().map(|(name, made)| Way::new(name, made)).collect();
    match args.format {
        Format::Json => out::print_json(&tollgate_view::ram::Records { ways: &ways }),
        Format::Table => out::print(&tollgate_view::ram::text(&ways, out::width())),
    }
}
