//! The modules that a guest needs, with their dependencies, in the order of loading.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use tollgate_os::paths::read_regular;

use super::kernel::Kernel;

const MOST_FILES: usize = 1 << 16;
const DEEPEST: usize = 16;
/// Limit in bytes of the list of built-in modules; a distribution's has 20 KiB.
const MOST_LIST: u64 = 4 << 20;
/// Limit in bytes of a module, which has no debugging information.
const MOST_BYTES: u64 = 64 << 20;
/// Limit of a module's direct and indirect dependencies.
const MOST_NEEDED: usize = 256;

/// The kernel's modules, by name, and what is built in.
#[derive(Debug, Clone, Default)]
pub(super) struct Modules {
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
    /// In the order of loading.
    chosen: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Has {
    /// Built in, according to its list.
    BuiltIn,
    Module,
    No,
}

impl Modules {
    pub fn read(kernel: &Kernel) -> Self {
        let Some(directory) = kernel.modules() else { return Self::default() };
        let mut files = BTreeMap::new();
        collect(&directory, DEEPEST, &mut files);
        let listed = read_regular(&directory.join("modules.builtin"), MOST_LIST).unwrap_or_default();
        let listed = String::from_utf8_lossy(&listed);
        let built_in = listed.lines().filter_map(|line| name(Path::new(line))).collect();
        Self { files, built_in, chosen: Vec::new() }
    }

    pub fn has(&self, name: &str) -> Has {
        match (self.files.contains_key(name), self.built_in.contains(name)) {
            (true, _) => Has::Module,
            (_, true) => Has::BuiltIn,
            _ => Has::No,
        }
    }

    /// Chooses a module and its dependencies, unless it is built in. Fails if a file is not a module or a dependency is missing.
    pub fn choose(&mut self, wanted: &str) -> Result<(), String> {
        self.choose_for(wanted, &mut Vec::new())
    }

    /// `above` are the modules that depend on it.
    fn choose_for(&mut self, wanted: &str, above: &mut Vec<String>) -> Result<(), String> {
        if self.chosen.iter().any(|chosen| chosen == wanted) || self.has(wanted) == Has::BuiltIn {
            return Ok(());
        }
        let Some(file) = self.files.get(wanted) else {
            return Err(format!("the kernel has no module {wanted}"));
        };
        if above.iter().any(|name| name == wanted) || self.chosen.len() > MOST_NEEDED {
            return Err(format!("the module {wanted} needs itself, or too many others"));
        }
        let needs = needs(file).map_err(|why| format!("{}: {why}", file.display()))?;
        above.push(wanted.to_owned());
        for need in needs {
            self.choose_for(&need, above)?;
        }
        above.pop();
        self.chosen.push(wanted.to_owned());
        Ok(())
    }

    /// The bytes of a module, chosen or not; empty if it is built in.
    pub fn bytes(&self, name: &str) -> io::Result<Vec<u8>> {
        self.files.get(name).map_or_else(|| Ok(Vec::new()), |file| read(file))
    }

    /// The chosen modules, with names that sort in the order of loading.
    pub fn files(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let read = |(at, name): (usize, &String)| Ok((format!("{at:03}-{name}.ko"), self.bytes(name)?));
        self.chosen.iter().enumerate().map(read).collect()
    }
}

/// Name of a module's file, as `depends=` writes it.
fn name(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    let (name, rest) = name.split_once(".ko")?;
    matches!(rest, "" | ".xz" | ".zst" | ".gz").then(|| name.replace('-', "_"))
}

fn collect(directory: &Path, depth: usize, files: &mut BTreeMap<String, PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type());
        // The links `build` and `source` lead elsewhere, and are not followed.
        if kind.as_ref().is_ok_and(fs::FileType::is_dir) && depth > 0 {
            collect(&path, depth - 1, files);
        } else if kind.is_ok_and(|kind| kind.is_file()) && files.len() < MOST_FILES {
            files.extend(name(&path).map(|name| (name, path)));
        }
    }
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    Ok(read_regular(file, MOST_BYTES)?)
}

/// Direct dependencies of a module: `depends=` in its section .modinfo, a list of NUL-terminated strings. The whole file is
/// searched, since no other section of a module has this string between NUL bytes.
fn needs(file: &Path) -> Result<Vec<String>, String> {
    let bytes = read(file).map_err(crate::error::plainly)?;
    if !bytes.starts_with(b"\x7fELF") {
        return Err(
            "it is compressed, or is not a module; unpack it, for example with unxz or unzstd".to_owned()
        );
    }
    Ok(depends(&bytes))
}

fn depends(bytes: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"depends=";
    let value = bytes.split(|byte| *byte == 0).find_map(|text| text.strip_prefix(KEY));
    let value = String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
    let is_name =
        |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    value.split(',').filter(is_name).take(MOST_NEEDED).map(|name| name.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tree(modules: &[(&str, &str)]) -> (tempfile::TempDir, Modules) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let inner = root.join("lib/modules/6.1/kernel/drivers");
        fs::create_dir_all(&inner).unwrap();
        for (name, needs) in modules {
            fs::write(
                inner.join(format!("{name}.ko")),
                format!("\x7fELF\0license=GPL\0depends={needs}\0name={name}\0"),
            )
            .unwrap();
        }
        fs::write(root.join("lib/modules/6.1/modules.builtin"), "kernel/drivers/tty/serial/8250/8250.ko\n")
            .unwrap();
        let kernel = Kernel { file: root.join("vmlinuz"), release: "6.1".to_owned(), root: root.to_owned() };
        let modules = Modules::read(&kernel);
        (directory, modules)
    }

    #[test]
    fn what_a_module_needs_is_loaded_before_it() {
        let (_directory, mut modules) =
            tree(&[("top", "mid-dle,base"), ("mid-dle", "base"), ("base", ""), ("other", "")]);
        modules.choose("top").unwrap();
        modules.choose("base").unwrap();
        modules.choose("8250").unwrap();
        let names: Vec<String> = modules.files().unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["000-base.ko", "001-mid_dle.ko", "002-top.ko"]);
        assert_eq!(
            (modules.has("8250"), modules.has("other"), modules.has("none")),
            (Has::BuiltIn, Has::Module, Has::No)
        );
        assert_eq!(modules.choose("none").unwrap_err(), "the kernel has no module none");
    }

    #[test]
    fn a_fifo_in_the_place_of_the_list_is_not_waited_for() {
        use rustix::fs::{CWD, FileType, Mode};
        let (directory, _) = tree(&[("base", "")]);
        let root = directory.path();
        let list = root.join("lib/modules/6.1/modules.builtin");
        fs::remove_file(&list).unwrap();
        rustix::fs::mknodat(CWD, &list, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let kernel = Kernel { file: root.join("vmlinuz"), release: "6.1".to_owned(), root: root.to_owned() };
        let modules = Modules::read(&kernel);
        assert_eq!((modules.has("base"), modules.has("8250")), (Has::Module, Has::No));
    }

    #[test]
    fn modules_that_need_each_other_end() {
        let (_directory, mut modules) = tree(&[("one", "two"), ("two", "one")]);
        assert!(modules.choose("one").is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes = [b"\0depends=".as_slice(), &bytes].concat();
            prop_assert!(depends(&bytes).len() <= MOST_NEEDED);
        }
    }
}
