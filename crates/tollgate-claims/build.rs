//! Deflates the files of `claims/` into one file and those of `published/` into another. Uncompressed they would be 1 % of the
//! released program.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::DeflateEncoder;

fn main() -> io::Result<()> {
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("Cargo sets OUT_DIR"))?;
    // An experiment is named by its file without the extension, a source by the whole file name.
    deflate(
        "claims",
        |path| path.file_stem().filter(|_| path.extension().is_some_and(|end| end == "json")),
        &out,
    )?;
    deflate("published", |path| path.file_name(), &out)
}

/// Writes those files of a folder for which `name` returns one into a single file.
fn deflate(folder: &str, name: fn(&Path) -> Option<&OsStr>, out: &OsStr) -> io::Result<()> {
    println!("cargo::rerun-if-changed={folder}");
    let mut paths =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::best());
    for path in &paths {
        let Some(name) = name(path) else { continue };
        let name = name.to_str().ok_or_else(|| io::Error::other("a name is not UTF-8"))?;
        // Neither a name nor a text contains NUL.
        write!(deflated, "{name}\0{}\0", fs::read_to_string(path)?)?;
    }
    fs::write(Path::new(out).join(format!("{folder}.deflated")), deflated.finish()?)
}
