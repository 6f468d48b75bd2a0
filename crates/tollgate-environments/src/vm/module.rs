//! The kernel module of `traps/invalid-opcode{by=module-…}`, built for a guest's kernel with make(1) and its headers.
//!
//! Its source is `module/tollgate_emulate.c`. `headers` finds the headers, even in packages that were unpacked separately; `tree`
//! makes links so that their Makefiles find each other; `make` runs the build.

use std::fs;
use std::path::Path;

use tollgate_model::text::excerpt;
use tollgate_os::paths;
use tollgate_os::private::PrivateDirectory;

use crate::cleanup::Cleanup;
use crate::commands;
use crate::error::{EnvironmentError, plainly, unusable};

mod headers;
mod make;
mod tree;

use headers::{Headers, Roots};

const SOURCE: &str = include_str!("module/tollgate_emulate.c");
/// Input of kbuild (Documentation/kbuild/modules.rst). Debugging information would be ten times the module's size.
const KBUILD: &str = "obj-m := tollgate_emulate.o\nccflags-y := -g0\n";
const NAME: &str = "tollgate_emulate";
/// Limit for reading the built module, which has about 100 KiB.
const MOST_BYTES: u64 = 8 << 20;

/// Builds the module for the kernel in this image, with release `release`, in the directory `private`, which the caller
/// removes. An error names the header package, program or line of the source that is the obstacle.
pub(crate) fn build(
    kernel_image: &Path,
    release: &str,
    private: &PrivateDirectory,
    cleanup: &Cleanup,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<u8>, EnvironmentError> {
    let make = commands::find("make").ok_or_else(|| unusable!("make is missing (package make)"))?;
    let roots = Roots::find(kernel_image)?;
    let headers = Headers::find(&roots, kernel_image, release)?;
    let compiler = compiler(&headers)?;
    let own = private.path().join("module");
    let fault = |error: std::io::Error| unusable!("{}: {}", own.display(), plainly(error));
    fs::create_dir(&own).map_err(fault)?;
    let tree = tree::lay(&roots, &headers, &own.join("headers"))?;
    let source = own.join("source");
    fs::create_dir(&source).map_err(fault)?;
    fs::write(source.join(NAME).with_extension("c"), SOURCE).map_err(fault)?;
    fs::write(source.join("Kbuild"), KBUILD).map_err(fault)?;
    let built = source.join(NAME).with_extension("ko");
    make::run(
        &make::Order { make: &make, compiler: &compiler, tree: &tree, source: &source, private },
        cleanup,
        stop,
    )?;
    let bytes = paths::read_regular(&built, MOST_BYTES)
        .map_err(|error| unusable!("{}: {}", built.display(), plainly(error)))?;
    is_for(&bytes, release)?;
    Ok(bytes)
}

/// The compiler that built the kernel if it is installed, or else any version of it: a module by another version works if the
/// kernel's options do.
fn compiler(headers: &Headers) -> Result<std::path::PathBuf, EnvironmentError> {
    let named = headers.compiler();
    let others: &[&str] = if named.starts_with("clang") { &["clang"] } else { &["gcc", "cc"] };
    let found = commands::find(&named).or_else(|| others.iter().find_map(commands::find));
    found.ok_or_else(|| unusable!("{} is missing (package {})", excerpt(&named), excerpt(&named)))
}

/// Checks that a kernel of this release accepts the module: its vermagic begins with the release (include/linux/vermagic.h).
fn is_for(module: &[u8], release: &str) -> Result<(), EnvironmentError> {
    const KEY: &[u8] = b"vermagic=";
    let at = module.windows(KEY.len()).position(|window| window == KEY);
    let value = at.map(|at| module[at + KEY.len()..].split(|byte| matches!(byte, b' ' | 0)).next());
    match value.flatten() {
        Some(built) if built == release.as_bytes() => Ok(()),
        Some(built) => Err(unusable!(
            "the headers are for Linux {}, but the guest's kernel is {release}",
            excerpt(&String::from_utf8_lossy(built))
        )),
        None => Err(unusable!("the module that was built has no version (vermagic)")),
    }
}

#[cfg(test)]
mod tests;
