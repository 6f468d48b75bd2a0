//! Programs of a build with their functions in another order. A change of one line moves functions too, which alone can change a
//! time by some percent.
//!
//! Cargo's programs are linked again by LLD, from the same objects. Go's linker, and that of any other build, takes a seed by
//! the build command.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tollgate_model::text::{excerpt, plainly};
use tollgate_os::paths::read_regular;

/// The layouts of each side, if the user gives no number.
pub const USUAL: usize = 8;
/// More are linked at once if that is quick, for sides whose layouts lie far apart.
pub const MOST: usize = 32;
/// In a build command, the seed of a layout.
pub const SEED: &str = "{layout}";

/// In the source: the scripts, then the names of the programs, and a directory for each layout.
const DIRECTORY: &str = ".tollgate-layouts";
const WRAPPER: &str = "rustc";
const LINKER: &str = "link";
const PROGRAMS: &str = "programs";
const WHY: &str = "why";
const MOST_TEXT: u64 = 1 << 20;

/// Cargo executes this in place of rustc for packages of the workspace. It has rustc link the programs by the other script.
const WRAPPER_SCRIPT: &str = r#"#!/bin/sh
eval "is_meant=\$$TOLLGATE_LAYOUTS_OF"
[ -n "$is_meant" ] || exec "$@"
linker=cc
for word; do
    case $word in linker=* | -Clinker=*) linker=${word#*linker=} ;; esac
done
# rustc concludes from the name of a linker what it is.
mkdir -p "$TOLLGATE_LAYOUTS/linkers"
ln -sf ../link "$TOLLGATE_LAYOUTS/linkers/${linker##*/}"
TOLLGATE_LINKER=$linker exec "$@" -C "linker=$TOLLGATE_LAYOUTS/linkers/${linker##*/}"
"#;

/// Links as asked, then with the functions in other orders.
const LINKER_SCRIPT: &str = r#"#!/bin/sh
"$TOLLGATE_LINKER" "$@" || exit
output='' previous=''
for word; do
    [ "$previous" != -o ] || output=$word
    previous=$word
done
began=$(date +%s) seed=0
while [ $seed -lt "$TOLLGATE_LAYOUTS_MOST" ]; do
    [ $seed -lt "$TOLLGATE_LAYOUTS_LEAST" ] || [ $(($(date +%s) - began)) -lt 20 ] || break
    previous=''
    for word; do
        shift
        [ "$previous" != -o ] || word=$output.layout-$((seed + 1))
        set -- "$@" "$word"
        previous=$word
    done
    "$TOLLGATE_LINKER" "$@" "-Wl,--shuffle-sections=.text*=$((seed + 1))" 2>"$TOLLGATE_LAYOUTS/why" || break
    seed=$((seed + 1))
done
printf '%s %s\n' $seed "$output" >>"$TOLLGATE_LAYOUTS/programs"
"#;

/// Has a command of Cargo in this source link programs several times: its benches, or else those that it installs.
pub fn link(
    command: &mut Command,
    source: &Path,
    [least, most]: [usize; 2],
    is_bench: bool,
) -> io::Result<()> {
    let directory = source.join(DIRECTORY);
    fs::create_dir(&directory)?;
    for (name, text) in [(WRAPPER, WRAPPER_SCRIPT), (LINKER, LINKER_SCRIPT)] {
        let script = File::options().write(true).create_new(true).mode(0o700).open(directory.join(name));
        script?.write_all(text.as_bytes())?;
    }
    // Cargo sets them for the targets of these kinds alone (The Cargo Book, "Environment variables Cargo sets for crates").
    let of = if is_bench { "CARGO_TARGET_TMPDIR" } else { "CARGO_BIN_NAME" };
    command
        .env("RUSTC_WORKSPACE_WRAPPER", directory.join(WRAPPER))
        .env("TOLLGATE_LAYOUTS_OF", of)
        .env("TOLLGATE_LAYOUTS_LEAST", least.to_string())
        .env("TOLLGATE_LAYOUTS_MOST", most.to_string())
        .env("TOLLGATE_LAYOUTS", directory);
    Ok(())
}

/// A program of a build, and how often it was linked.
struct Linked {
    /// Its path in the build.
    program: PathBuf,
    number: usize,
}

impl Linked {
    fn layout(&self, number: usize) -> PathBuf {
        let mut path = self.program.clone().into_os_string();
        path.push(format!(".layout-{number}"));
        path.into()
    }
}

/// The programs that [`link`] linked, built in `source` and now in `build`.
fn linked(build: &Path, source: &Path) -> Result<Vec<Linked>, String> {
    let text = |name: &str| read_regular(&build.join(DIRECTORY).join(name), MOST_TEXT).unwrap_or_default();
    let programs = String::from_utf8_lossy(&text(PROGRAMS)).into_owned();
    let program = |line: &str| {
        let (number, path) = line.split_once(' ')?;
        let program = Path::new(path).strip_prefix(source).ok()?.to_owned();
        Some(Linked { program, number: number.parse().ok()? })
    };
    let linked: Vec<Linked> = programs.lines().filter_map(program).collect();
    match linked.iter().map(|linked| linked.number).min() {
        Some(1..) => Ok(linked),
        Some(0) => {
            let said = String::from_utf8_lossy(&text(WHY)).into_owned();
            let said = said.lines().last().unwrap_or_default();
            Err(format!("its linker takes no --shuffle-sections, which LLD has: {}", excerpt(said)))
        }
        None => Err("Cargo linked no program by the script that orders its functions".to_owned()),
    }
}

/// The programs of each layout of a bench, or why there is none.
pub fn of_bench(build: &Path, source: &Path, bench: &Path) -> Result<Vec<PathBuf>, String> {
    let linked = linked(build, source)?;
    let bench = bench.strip_prefix(build).unwrap_or(bench);
    let linked = linked.iter().find(|linked| linked.program == bench);
    let linked = linked.ok_or_else(|| format!("Cargo did not link {} anew", bench.display()))?;
    Ok((1..=linked.number).map(|number| build.join(linked.layout(number))).collect())
}

/// For each layout a directory that has the programs of this layout, and links to everything else of the build.
pub fn of_build(build: &Path, source: &Path) -> Result<Vec<PathBuf>, String> {
    let linked = linked(build, source)?;
    let least = linked.iter().map(|linked| linked.number).min().unwrap_or_default();
    let directory = |number: usize| build.join(DIRECTORY).join(number.to_string());
    for number in 1..=least {
        let layout = directory(number);
        let made = linked.iter().try_for_each(|linked| {
            let file = build.join(linked.layout(number));
            names(build, &linked.program)?.iter().try_for_each(|name| place(build, &layout, name, &file))
        });
        made.map_err(|why| format!("{}: {}", layout.display(), plainly(&why)))?;
    }
    Ok((1..=least).map(directory).collect())
}

/// The paths of a program in a build: Cargo links `target/release/deps/tool-HASH` as `target/release/tool`.
fn names(build: &Path, program: &Path) -> io::Result<Vec<PathBuf>> {
    let file = fs::metadata(build.join(program))?;
    let above = program.parent().and_then(Path::parent).unwrap_or(Path::new(""));
    let mut names = Vec::new();
    for entry in fs::read_dir(build.join(above))?.flatten() {
        if entry.metadata().is_ok_and(|found| (found.dev(), found.ino()) == (file.dev(), file.ino())) {
            names.push(above.join(entry.file_name()));
        }
    }
    Ok(names)
}

/// Places a file at a path in the directory of a layout. Directories on the way have links to what the build has there.
fn place(build: &Path, layout: &Path, path: &Path, file: &Path) -> io::Result<()> {
    let mut within = PathBuf::new();
    for part in path.parent().into_iter().flat_map(Path::components).map(Some).chain([None]) {
        let directory = layout.join(&within);
        if !directory.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            let _ = fs::remove_file(&directory);
            fs::create_dir_all(&directory)?;
            for entry in fs::read_dir(build.join(&within))?.flatten() {
                if entry.file_name() != DIRECTORY {
                    symlink(entry.path(), directory.join(entry.file_name()))?;
                }
            }
        }
        within.extend(part);
    }
    let name = layout.join(path);
    let _ = fs::remove_file(&name);
    fs::hard_link(file, name)
}
