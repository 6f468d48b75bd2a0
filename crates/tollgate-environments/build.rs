//! Builds `plugin/plugin.rs`, a plugin for QEMU, which the program contains. If no shared object can be built, it contains the
//! reason instead.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "plugin/plugin.rs";

fn main() {
    for file in [SOURCE, "src/vm/ring.rs"] {
        println!("cargo::rerun-if-changed={file}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let why = build(&out.join("plugin.so")).err().unwrap_or_default();
    if !why.is_empty() {
        println!("cargo::warning={SOURCE} cannot be built, so --in vm:exact divides no instructions: {why}");
        let _ = std::fs::write(out.join("plugin.so"), "");
    }
    println!("cargo::rustc-env=TOLLGATE_WHY_NO_PLUGIN={why}");
}

/// Fails with the reason on one line.
fn build(to: &PathBuf) -> Result<(), String> {
    let variable = |name: &str| env::var_os(name).ok_or_else(|| format!("cargo did not set {name}"));
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc.arg(SOURCE).arg("--target").arg(variable("TARGET")?);
    rustc.args(["--edition=2024", "--crate-name=plugin", "--crate-type=cdylib", "-Cpanic=abort"]);
    rustc.args(["-Copt-level=2", "-Cstrip=symbols", "-Ctarget-feature=-crt-static", "-Clink-arg=-nostdlib"]);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("linker=");
        option.push(linker);
        rustc.arg("-C").arg(option);
    }
    let output = rustc.arg("-o").arg(to).output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ")),
    }
}
