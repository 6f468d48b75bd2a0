//! Deflates the files of `claims/` into one: as they are they would be a hundredth of the released program.

use std::io::Write;
use std::path::Path;
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::DeflateEncoder;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=claims");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("Cargo sets OUT_DIR"))?;
    let mut paths = fs::read_dir("claims")?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::best());
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "json")) {
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .ok_or_else(|| io::Error::other("a name is no text"))?;
        // Neither a name nor JSON has a NUL in it.
        write!(deflated, "{name}\0{}\0", fs::read_to_string(path)?)?;
    }
    fs::write(Path::new(&out).join("claims.deflated"), deflated.finish()?)
}
