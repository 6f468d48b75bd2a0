use std::path::PathBuf;

use super::*;
use crate::vm::kernel::Kernel;

/// The kernel of a guest here, or `None`.
fn kernel() -> Option<Kernel> {
    match Kernel::find(None, tollgate_engine::Architecture::X86_64) {
        Ok(kernel) => Some(kernel),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

fn cleanup() -> Cleanup {
    Cleanup::begin().unwrap()
}

fn release_of(made: &str) -> Result<(), String> {
    is_for(made.as_bytes(), "6.1.0").map_err(|error| error.to_string())
}

#[test]
fn it_is_built_for_the_kernel_of_a_guest() {
    let Some(kernel) = kernel() else { return };
    let private = PrivateDirectory::temporary().unwrap();
    match build(&kernel.file, &kernel.release, &private, &cleanup(), &|| false) {
        Ok(module) => {
            assert!(module.starts_with(b"\x7fELF"));
            // The kernel gives notifiers only to modules with a GPL-compatible license.
            let license = b"license=Dual MIT/GPL\0";
            assert!(module.windows(license.len()).any(|window| window == license));
        }
        // Headers or a compiler are missing here. A failed compilation is not a reason to skip.
        Err(why) if !why.to_string().starts_with("make: ") => println!("skipped: {why}"),
        Err(why) => panic!("{why}"),
    }
}

#[test]
fn a_caller_who_wants_to_stop_is_obeyed() {
    let Some(kernel) = kernel() else { return };
    let private = PrivateDirectory::temporary().unwrap();
    let why = build(&kernel.file, &kernel.release, &private, &cleanup(), &|| true).unwrap_err();
    assert!(why == EnvironmentError::Interrupted || why.to_string().contains("(package "), "{why}");
}

#[test]
fn a_module_of_another_kernel_is_refused_by_name() {
    assert_eq!(release_of("x\0vermagic=6.1.0 SMP mod_unload\0"), Ok(()));
    let other = release_of("vermagic=6.1.0-1 SMP\0").unwrap_err();
    assert_eq!(other, "the headers are for Linux 6.1.0-1, but the guest's kernel is 6.1.0");
    assert!(release_of("vermagic").is_err() && release_of("vermagic=").is_err());
}

/// Packages of a kernel `9.9` that were unpacked separately.
struct Unpacked(tempfile::TempDir);

impl Unpacked {
    fn new() -> Self {
        let all = Self(tempfile::tempdir().unwrap());
        all.file("image/boot/vmlinuz-9.9", "");
        all.file(
            "headers/usr/src/linux-headers-9.9/Makefile",
            "include /usr/src/linux-headers-9.9-common/Makefile\n",
        );
        all.file("headers/usr/src/linux-headers-9.9/Module.symvers", "");
        all.link("headers/usr/src/linux-headers-9.9/scripts", "../../lib/linux-kbuild-9.9/scripts");
        all.link("headers/lib/modules/9.9/build", "/usr/src/linux-headers-9.9");
        all
    }

    fn with_common(self) -> Self {
        self.file("common/usr/src/linux-headers-9.9-common/Makefile", "modules:\n");
        self
    }

    fn with_kbuild(self) -> Self {
        self.file("kbuild/usr/lib/linux-kbuild-9.9/scripts/Kbuild.include", "# rules\n");
        self
    }

    fn path(&self, path: &str) -> PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn file(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).unwrap();
    }

    fn link(&self, path: &str, to: &str) {
        std::os::unix::fs::symlink(to, self.path(path)).unwrap();
    }

    fn image(&self) -> PathBuf {
        self.path("image/boot/vmlinuz-9.9")
    }

    fn lay(&self) -> Result<PathBuf, String> {
        let into = self.path("laid");
        let laid = || {
            let roots = Roots::find(&self.image())?;
            tree::lay(&roots, &Headers::find(&roots, &self.image(), "9.9")?, &into)
        };
        laid().map_err(|error| error.to_string())
    }
}

#[test]
fn packages_that_were_unpacked_apart_find_each_other() {
    let unpacked = Unpacked::new().with_common().with_kbuild();
    let laid = unpacked.lay().unwrap();
    assert_eq!(fs::read_to_string(laid.join("scripts/Kbuild.include")).unwrap(), "# rules\n");
    let makefile = fs::read_to_string(laid.join("Makefile")).unwrap();
    let included = makefile.strip_prefix("include ").unwrap().trim();
    assert!(Path::new(included).starts_with(unpacked.path("laid")), "{makefile}");
    assert_eq!(fs::read_to_string(included).unwrap(), "modules:\n");
}

#[test]
fn a_package_that_is_not_there_is_named() {
    let none = tempfile::tempdir().unwrap();
    fs::create_dir(none.path().join("boot")).unwrap();
    let image = none.path().join("boot/vmlinuz-9.9");
    fs::write(&image, "").unwrap();
    let private = PrivateDirectory::temporary().unwrap();
    let why = build(&image, "9.9", &private, &cleanup(), &|| false).unwrap_err().to_string();
    assert!(why.contains("(package linux-headers-9.9)") || why.contains("(package make)"), "{why}");
    let why = Unpacked::new().with_common().lay().unwrap_err();
    assert!(why.ends_with("(package linux-kbuild-9.9)"), "{why}");
    let why = Unpacked::new().with_kbuild().lay().unwrap_err();
    assert!(why.ends_with("(package linux-headers-9.9-common)"), "{why}");
}

#[test]
fn makefiles_that_include_each_other_are_laid_once() {
    let unpacked = Unpacked::new().with_kbuild();
    unpacked.file(
        "common/usr/src/linux-headers-9.9-common/Makefile",
        "include /usr/src/linux-headers-9.9/Makefile\n",
    );
    assert!(unpacked.lay().is_ok());
    for n in 0..6 {
        let next = format!("include /usr/src/linux-headers-9.9-{}/Makefile\n", n + 1);
        unpacked.file(&format!("common/usr/src/linux-headers-9.9-{n}/Makefile"), &next);
    }
    unpacked.file(
        "common/usr/src/linux-headers-9.9-common/Makefile",
        "include /usr/src/linux-headers-9.9-0/Makefile\n",
    );
    fs::remove_dir_all(unpacked.path("laid")).unwrap();
    assert_eq!(unpacked.lay().unwrap_err(), "the Makefiles of the headers include too many others");
}

#[test]
fn what_others_may_write_is_not_executed() {
    use std::os::unix::fs::PermissionsExt;
    let unpacked = Unpacked::new().with_common().with_kbuild();
    let open = unpacked.path("kbuild/usr/lib/linux-kbuild-9.9");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let why = unpacked.lay().unwrap_err();
    assert!(
        why.ends_with(
            " needs /usr/lib/linux-kbuild-9.9/scripts, which is neither installed nor unpacked beside the kernel \
             (package linux-kbuild-9.9)"
        ),
        "{why}"
    );
}

/// The build directory of a kernel around `image`, with a Makefile that would be executed.
fn built_around(unpacked: &Unpacked) -> PathBuf {
    unpacked.file("tree/arch/x86/boot/bzImage", "");
    unpacked.file("tree/include/config/kernel.release", "9.9\n");
    unpacked.file("tree/Makefile", "modules:\n");
    unpacked.file("tree/Module.symvers", "");
    unpacked.path("tree/arch/x86/boot/bzImage")
}

fn found(unpacked: &Unpacked, image: &Path) -> Option<PathBuf> {
    let roots = Roots::find(image).unwrap();
    Headers::find(&roots, image, "9.9").ok().map(|headers| headers.found).filter(|found| {
        let packages = unpacked.path("headers/usr/src/linux-headers-9.9");
        *found != packages
    })
}

#[test]
fn a_build_around_the_kernel_is_taken_unless_others_may_write_there() {
    use std::os::unix::fs::PermissionsExt;
    let unpacked = Unpacked::new();
    let image = built_around(&unpacked);
    let tree = fs::canonicalize(unpacked.path("tree")).unwrap();
    assert_eq!(found(&unpacked, &image), Some(tree.clone()));
    // In a sticky directory, another user could have made all of it.
    for mode in [0o1777, 0o777] {
        fs::set_permissions(&tree, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(found(&unpacked, &image), None, "{mode:o}");
    }
}

#[test]
fn nothing_that_stands_in_for_a_release_is_waited_for_or_read_whole() {
    use rustix::fs::{CWD, FileType, Mode};
    let unpacked = Unpacked::new();
    let image = built_around(&unpacked);
    let release = unpacked.path("tree/include/config/kernel.release");
    fs::remove_file(&release).unwrap();
    rustix::fs::mknodat(CWD, &release, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert_eq!(found(&unpacked, &image), None, "a FIFO");
    fs::remove_file(&release).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &release).unwrap();
    assert_eq!(found(&unpacked, &image), None, "no end");
}

#[test]
fn a_failed_build_says_the_compilers_sentence() {
    let Some(make) = commands::find("make") else { return println!("skipped: make is not installed") };
    let run = |rules: &str, stop: &dyn Fn() -> bool| {
        let private = PrivateDirectory::temporary().unwrap();
        let source = private.path();
        fs::write(source.join("Makefile"), rules).unwrap();
        let compiler = Path::new("cc");
        let order = make::Order { make: &make, compiler, tree: source, source, private: &private };
        make::run(&order, &cleanup(), stop).map_err(|error| error.to_string())
    };
    let failed = run(
        "modules:\n\t@echo 'warning: skew' >&2; echo 'x.c:1: error: no such thing' >&2; false\n",
        &|| false,
    );
    assert_eq!(failed.unwrap_err(), "make: x.c:1: error: no such thing");
    assert_eq!(run("modules:\n\t@true\n", &|| false).unwrap_err(), "make: it built nothing");
    // The compiler's files are where no other user can replace them.
    let beside = "modules:\n\t@test $$TMPDIR = $(M) && touch $(M)/tollgate_emulate.ko\n";
    assert_eq!(run(beside, &|| false), Ok(()));
    assert_eq!(run("modules:\n\t@touch $(M)/tollgate_emulate.ko; cat\n", &|| false), Ok(()));
    assert_eq!(run("modules:\n\t@sleep 100\n", &|| true).unwrap_err(), "interrupted");
}
