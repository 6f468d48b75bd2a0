//! Leaves the tables of stack unwinding out of a program that cannot unwind.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=no-unwinding.ld");
    // The released program aborts where it panics (profile.release in the workspace's Cargo.toml), and its symbols are stripped: nothing
    // reads the tables, which the compiler and the C library bring along all the same. They are a tenth of the file.
    let is_released = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if let (true, Ok(directory)) = (is_released, env::var("CARGO_MANIFEST_DIR")) {
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{directory}/no-unwinding.ld");
    }
}
