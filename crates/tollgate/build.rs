//! How the released program is linked: without the tables of stack unwinding if it cannot unwind, and with few bytes for its
//! relocations.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=no-unwinding.ld");
    // The released program aborts on panic, and its symbols are stripped, so nothing reads the tables that the compiler and the C
    // library bring along. They are a tenth of the file. On arm64 GCC's crtbeginT.o refers to its own.
    let is_released = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let needs_tables = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|architecture| architecture == "aarch64");
    match env::var("CARGO_MANIFEST_DIR") {
        Ok(directory) if is_released && !needs_tables && aborts(Path::new(&directory)) => {
            println!("cargo::rustc-link-arg-bins=-Wl,-T,{directory}/no-unwinding.ld");
        }
        _ => {}
    }
    // A static program that can be loaded at any address has some 14,000 relocations of 24 bytes. Packed (DT_RELR) they are a few
    // hundred; the C library that is linked in must know that form, since it relocates the program.
    if is_released
        && env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|environment| environment == "gnu")
        && knows_packed_relocations()
    {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether the C library is glibc 2.36 or later (NEWS for 2.36: "Support for DT_RELR relative relocation format"). The build
/// script is linked with the same one as the program if host and target are the same.
fn knows_packed_relocations() -> bool {
    unsafe extern "C" {
        fn gnu_get_libc_version() -> *const c_char;
    }
    if env::var("HOST").ok() != env::var("TARGET").ok() {
        return false;
    }
    // SAFETY: the function takes nothing and returns a string that lives as long as the process.
    let version = unsafe { CStr::from_ptr(gnu_get_libc_version()) };
    let mut parts = version.to_str().unwrap_or_default().split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (2, 36)
}

fn aborts(directory: &Path) -> bool {
    let workspace = directory.join("../../Cargo.toml");
    println!("cargo::rerun-if-changed={}", workspace.display());
    fs::read_to_string(workspace)
        .is_ok_and(|text| text.contains("[workspace.package]") && text.contains("panic = \"abort\""))
}
