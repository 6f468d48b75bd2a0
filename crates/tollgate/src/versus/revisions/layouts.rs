//! Programs of a build with their functions in another order. A change of one line moves functions too, which alone can change a
//! time by some percent.
//!
//! Cargo's programs are linked again by LLD, from the same objects. Go's linker, and that of any other build, takes a seed by
//! the build command.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tollgate_model::stats::FEWEST_LAYOUTS;
use tollgate_model::text::{excerpt, plainly};
use tollgate_os::paths::read_regular;

use super::equal::have_equal_bytes;

/// The layouts of each side, if the user gives no number.
pub const USUAL: usize = 8;
/// The most layouts that are linked at once, if that is quick, for sides whose layouts lie far apart.
pub const MOST: usize = 32;
/// In a build command, the seed of a layout.
pub const SEED: &str = "{layout}";

/// In the source: the scripts, then the names of the programs, and a directory for each layout.
const DIRECTORY: &str = ".tollgate-layouts";
const WRAPPER: &str = "rustc";
const LINKER: &str = "link";
const PROGRAMS: &str = "programs";
const MOST_TEXT: u64 = 1 << 20;

/// Cargo executes this in place of rustc for packages of the workspace, before a wrapper of the user's. It has rustc link the programs
/// by the other script.
const WRAPPER_SCRIPT: &str = r#"#!/bin/sh
eval "is_meant=\$$TOLLGATE_LAYOUTS_OF"
[ -n "$is_meant" ] || exec ${TOLLGATE_WRAPPED:+"$TOLLGATE_WRAPPED"} "$@"
linker=cc previous=''
for word; do
    case $previous$word in
    -Clinker=* | --codegenlinker=* | --codegen=linker=*) linker=${word#*linker=} ;;
    esac
    case $word in -Clinker=*) linker=${word#*linker=} ;; esac
    previous=''
    case $word in -C | --codegen) previous=$word ;; esac
done
# rustc concludes from the name of a linker what it is.
mkdir -p "$TOLLGATE_LAYOUTS/linkers"
ln -sf ../link "$TOLLGATE_LAYOUTS/linkers/${linker##*/}"
TOLLGATE_LINKER=$linker exec ${TOLLGATE_WRAPPED:+"$TOLLGATE_WRAPPED"} "$@" -C "linker=$TOLLGATE_LAYOUTS/linkers/${linker##*/}"
"#;

/// Links as asked, then with the functions in other orders: the least number in any case, and more of them as long as they take less
/// than 20 s and 256 MiB.
const LINKER_SCRIPT: &str = r#"#!/bin/sh
"$TOLLGATE_LINKER" "$@" || exit
output='' previous=''
for word; do
    [ "$previous" != -o ] || output=$word
    previous=$word
done
size=$(wc -c <"$output") began=$(date +%s) seed=0
while [ $seed -lt "$TOLLGATE_LAYOUTS_MOST" ]; do
    if [ $seed -ge "$TOLLGATE_LAYOUTS_LEAST" ]; then
        [ $(($(date +%s) - began)) -lt 20 ] && [ $((size * seed)) -lt 268435456 ] || break
    fi
    previous=''
    for word; do
        shift
        [ "$previous" != -o ] || word=$output.layout-$((seed + 1))
        set -- "$@" "$word"
        previous=$word
    done
    "$TOLLGATE_LINKER" "$@" "-Wl,--shuffle-sections=.text*=$((seed + 1))" 2>"$output.layout-why" || break
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
    // Cargo sets these variables only for targets of these kinds (The Cargo Book, "Environment variables Cargo sets for crates").
    let of = if is_bench { "CARGO_TARGET_TMPDIR" } else { "CARGO_BIN_NAME" };
    command
        .env("RUSTC_WORKSPACE_WRAPPER", directory.join(WRAPPER))
        .env("TOLLGATE_LAYOUTS_OF", of)
        .env("TOLLGATE_LAYOUTS_LEAST", least.to_string())
        .env("TOLLGATE_LAYOUTS_MOST", most.to_string())
        .env("TOLLGATE_LAYOUTS", directory);
    if let Some(wrapper) = std::env::var_os("RUSTC_WORKSPACE_WRAPPER").filter(|wrapper| !wrapper.is_empty()) {
        command.env("TOLLGATE_WRAPPED", wrapper);
    }
    Ok(())
}

/// A program of a build, and how often it was linked.
struct Linked {
    /// Its path in the build.
    program: PathBuf,
    number: usize,
}

impl Linked {
    fn beside(&self, what: impl std::fmt::Display) -> PathBuf {
        let mut path = self.program.clone().into_os_string();
        path.push(format!(".layout-{what}"));
        path.into()
    }

    /// Why it has too few layouts for an interval, if so.
    fn why_few(&self, build: &Path) -> Result<(), String> {
        if self.number >= FEWEST_LAYOUTS {
            return Ok(());
        }
        let said = read_regular(&build.join(self.beside("why")), MOST_TEXT).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).into_owned();
        let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("the disk may be full");
        let number = self.number;
        Err(format!(
            "{} was linked with its functions in {number} other orders, and {FEWEST_LAYOUTS} are needed: {}",
            self.program.display(),
            excerpt(said)
        ))
    }
}

/// The programs that [`link`] linked, built in `source` and now in `build`.
fn linked(build: &Path, source: &Path) -> Result<Vec<Linked>, String> {
    let text = read_regular(&build.join(DIRECTORY).join(PROGRAMS), MOST_TEXT).unwrap_or_default();
    let program = |line: &str| {
        let (number, path) = line.split_once(' ')?;
        let program = Path::new(path).strip_prefix(source).ok()?.to_owned();
        Some(Linked { program, number: number.parse().ok()? })
    };
    let linked: Vec<Linked> = String::from_utf8_lossy(&text).lines().filter_map(program).collect();
    if linked.is_empty() {
        return Err("Cargo linked no program here by the script that orders its functions".to_owned());
    }
    Ok(linked)
}

/// The programs of each layout of a bench, or why there is none.
pub fn of_bench(build: &Path, source: &Path, bench: &Path) -> Result<Vec<PathBuf>, String> {
    let linked = linked(build, source)?;
    let bench = bench.strip_prefix(build).unwrap_or(bench);
    let linked = linked.iter().find(|linked| linked.program == bench);
    let linked = linked.ok_or_else(|| format!("Cargo did not link {} anew", bench.display()))?;
    linked.why_few(build)?;
    Ok((1..=linked.number).map(|number| build.join(linked.beside(number))).collect())
}

/// For each layout a directory that has the programs of this layout, and links to everything else of the build. With `named`, the files
/// that a command executes, one of them must be such a program.
pub fn of_build(
    build: &Path,
    source: &Path,
    named: Option<&BTreeSet<PathBuf>>,
) -> Result<Vec<PathBuf>, String> {
    let mut programs = Vec::new();
    for linked in linked(build, source)? {
        let names = match named {
            None => names(build, &linked.program).map_err(|why| plainly(&why).to_string())?,
            Some(named) => {
                let is_it =
                    |name: &&PathBuf| have_equal_bytes(&build.join(name), &build.join(&linked.program));
                named.iter().filter(is_it).cloned().collect()
            }
        };
        if !names.is_empty() {
            linked.why_few(build)?;
            programs.push((linked, names));
        }
    }
    let least = programs.iter().map(|(linked, _)| linked.number).min();
    let least = least.ok_or("the command names no program that Cargo linked here")?;
    let directory = |number: usize| build.join(DIRECTORY).join(number.to_string());
    for number in 1..=least {
        let layout = directory(number);
        let made = programs.iter().try_for_each(|(linked, names)| {
            let file = build.join(linked.beside(number));
            names.iter().try_for_each(|name| place(build, &layout, name, &file))
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
