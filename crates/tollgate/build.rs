//! Leaves the tables of stack unwinding out of a program that cannot unwind.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=no-unwinding.ld");
    // The released program aborts where it panics, and its symbols are stripped: nothing reads the tables, which the compiler and the C
    // library bring along all the same. They are a tenth of the file.
    let is_released = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    match env::var("CARGO_MANIFEST_DIR") {
        Ok(directory) if is_released && aborts(Path::new(&directory)) => {
            println!("cargo::rustc-link-arg-bins=-Wl,-T,{directory}/no-unwinding.ld");
        }
        _ => {}
    }
}

/// Whether profile.release is the workspace's. A package from a registry comes without it: its program unwinds, and needs the tables.
fn aborts(directory: &Path) -> bool {
    let workspace = directory.join("../../Cargo.toml");
    println!("cargo::rerun-if-changed={}", workspace.display());
    fs::read_to_string(workspace)
        .is_ok_and(|text| text.contains("[workspace.package]") && text.contains("panic = \"abort\""))
}
