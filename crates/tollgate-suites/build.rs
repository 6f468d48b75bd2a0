//! Builds `image/image.rs` twice, linked statically and dynamically, because that changes how long a program takes to
//! start. Both are embedded compressed: uncompressed they would be a seventh of the program.

use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use flate2::Compression;
use flate2::write::DeflateEncoder;

const SOURCE: &str = "image/image.rs";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    for (name, feature) in [("image-static", "+crt-static"), ("image-dynamic", "-crt-static")] {
        if let Err(why) = build(name, feature) {
            println!("cargo::error={SOURCE} cannot be built with target-feature={feature}: {why}");
        }
    }
}

fn build(name: &str, feature: &str) -> Result<(), String> {
    let variable = |name: &str| env::var_os(name).ok_or_else(|| format!("cargo did not set {name}"));
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc.arg(SOURCE).arg("--target").arg(variable("TARGET")?);
    rustc.args([
        "--edition=2024",
        "--crate-name=image",
        "--crate-type=bin",
        "-Cpanic=abort",
        "-Copt-level=s",
    ]);
    rustc.args(["-Cstrip=symbols", &format!("-Ctarget-feature={feature}")]);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("linker=");
        option.push(linker);
        rustc.arg("-C").arg(option);
    }
    let path: PathBuf = [variable("OUT_DIR")?, name.into()].iter().collect();
    let output = rustc.arg("-o").arg(&path).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "));
    }
    compress(&path).map_err(|error| error.to_string())
}

/// Writes the compressed file next to the original, with the suffix `.deflate`.
fn compress(path: &PathBuf) -> std::io::Result<()> {
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&std::fs::read(path)?)?;
    std::fs::write(path.with_extension("deflate"), packed.finish()?)
}
