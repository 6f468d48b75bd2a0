//! Configurations of kernels from 2.6 to 6.18 on several machines, a few lines of each: the kernel that they identify,
//! and what the absence of an option means there. They were written by hand, modelled on what those kernels write.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use tollgate_kconfig::{Configuration, identity, parse};

/// The version line, the options of the machine, the architecture, and the version's numbers.
type Kernel = (&'static str, &'static str, &'static str, (u32, u32, u32));

const KERNELS: [Kernel; 16] = [
    (
        "# Linux kernel version: 2.6.32",
        "# CONFIG_64BIT is not set\nCONFIG_X86_32=y\n# CONFIG_X86_64 is not set",
        "x86",
        (2, 6, 32),
    ),
    (
        "# Linux kernel version: 2.6.18",
        "CONFIG_X86_32=y\nCONFIG_GENERIC_TIME=y\nCONFIG_X86=y",
        "x86",
        (2, 6, 18),
    ),
    ("# Linux kernel version: 2.6.18", "CONFIG_X86_64=y\nCONFIG_64BIT=y\nCONFIG_X86=y", "x86", (2, 6, 18)),
    (
        "# Linux/i386 2.6.38.8 Kernel Configuration",
        "# CONFIG_64BIT is not set\nCONFIG_X86_32=y",
        "x86",
        (2, 6, 38),
    ),
    (
        "# Linux/x86_64 3.2.0-4-amd64 Kernel Configuration",
        "CONFIG_64BIT=y\nCONFIG_X86_64=y",
        "x86",
        (3, 2, 0),
    ),
    ("# Linux/x86 4.9.0 Kernel Configuration", "CONFIG_64BIT=y\nCONFIG_X86_64=y", "x86", (4, 9, 0)),
    ("# Linux/x86 6.18.5 Kernel Configuration", "CONFIG_64BIT=y\nCONFIG_X86_64=y", "x86", (6, 18, 5)),
    ("# Linux/arm64 4.19.325 Kernel Configuration", "CONFIG_ARM64=y\nCONFIG_64BIT=y", "arm64", (4, 19, 325)),
    ("# Linux/arm64 6.12.0-rc3 Kernel Configuration", "CONFIG_ARM64=y\nCONFIG_64BIT=y", "arm64", (6, 12, 0)),
    ("# Linux kernel version: 2.6.28", "CONFIG_ARM=y\nCONFIG_MMU=y", "arm", (2, 6, 28)),
    ("# Linux/arm 5.15.0 Kernel Configuration", "CONFIG_ARM=y\nCONFIG_ARM_LPAE=y", "arm", (5, 15, 0)),
    ("# Linux/riscv 6.6.0 Kernel Configuration", "CONFIG_64BIT=y\nCONFIG_RISCV=y", "riscv", (6, 6, 0)),
    ("# Linux kernel version: 2.6.25", "CONFIG_PPC64=y\nCONFIG_64BIT=y\nCONFIG_PPC=y", "powerpc", (2, 6, 25)),
    ("# Linux/powerpc 5.4.0 Kernel Configuration", "CONFIG_PPC=y\nCONFIG_PPC32=y", "powerpc", (5, 4, 0)),
    ("# Linux kernel version: 2.6.32", "CONFIG_S390=y\nCONFIG_64BIT=y", "s390", (2, 6, 32)),
    ("# Linux/s390 6.1.0 Kernel Configuration", "CONFIG_S390=y\nCONFIG_64BIT=y", "s390", (6, 1, 0)),
];

fn configuration(version: &str, options: &str) -> Configuration {
    let text = format!(
        "#\n# Automatically generated file\n{version}\n# Mon Jan 11 00:22:51 2010\n#\n{options}\nCONFIG_HZ=250\n"
    );
    parse(text.as_bytes()).unwrap()
}

#[test]
fn every_kernel_is_known_by_its_options() {
    for (version, options, architecture, release) in KERNELS {
        let with = configuration(version, options);
        assert_eq!((with.architecture(), with.release()), (Some(architecture), Some(release)), "{version}");
        let without = configuration("# no version", options);
        assert_eq!((without.architecture(), without.release()), (Some(architecture), None), "{options}");
    }
    let none = configuration("# Linux/loongarch 6.6.0 Kernel Configuration", "");
    assert_eq!(
        none.architecture(),
        Some("loongarch"),
        "by the line above the options, where no option says it"
    );
    assert_eq!(configuration("# no version", "").architecture(), None);
}

#[test]
fn an_absent_option_is_judged_by_the_kernel_that_lacks_it() {
    let x86 = "CONFIG_64BIT=y\nCONFIG_X86_64=y\nCONFIG_X86=y";
    let judged = |architecture: &str, version: &str, options: &str, name: &str| {
        let header = format!("# Linux/{architecture} {version} Kernel Configuration");
        identity(name).entry.unwrap().without_in(&configuration(&header, options))
    };
    // Kernels that lack the feature or offer the option, and kernels that have the feature without the option.
    for (name, not_offered, with) in [
        (
            "X86_BUS_LOCK_DETECT",
            &["2.6.32", "4.9.0", "5.11.0", "6.12.0", "6.18.5"][..],
            &["5.12.0", "6.11.9"][..],
        ),
        ("X86_5LEVEL", &["4.9.0", "4.14.0", "6.1.0"], &["6.18.5"]),
        ("X86_SMAP", &["3.2.0", "4.9.0"], &["5.18.0", "6.18.5"]),
        ("HARDENED_USERCOPY_DEFAULT_ON", &["4.7.0", "6.15.0"], &["4.8.0", "6.14.0"]),
        ("SPLIT_PTE_PTLOCKS", &["6.12.0"], &["4.9.0", "6.11.0"]),
        ("MITIGATION_MDS", &["6.12.0"], &["4.9.0", "6.11.0"]),
        ("GENERIC_GETTIMEOFDAY", &["2.6.18", "5.3.0"], &["2.6.32", "4.9.0", "5.2.0"]),
        ("LEGACY_VSYSCALL_EMULATE", &["4.3.0", "5.18.0"], &["5.19.0"]),
        ("MEMCG_KMEM", &["3.2.0", "6.10.0"], &["6.11.0"]),
    ] {
        for version in not_offered {
            assert_eq!(judged("x86", version, x86, name), None, "{name} of {version}");
        }
        for version in with {
            assert!(judged("x86", version, x86, name).is_some(), "{name} of {version}");
        }
        let unknown = configuration("# no version", x86);
        assert_eq!(identity(name).entry.unwrap().without_in(&unknown), None, "a text that says no version");
    }
    for (name, version) in [("X86_SMAP", "6.1.0"), ("MITIGATION_MDS", "6.1.0"), ("X86_5LEVEL", "6.18.5")] {
        assert_eq!(
            judged("arm64", version, "CONFIG_ARM64=y\nCONFIG_64BIT=y", name),
            None,
            "{name} is of x86"
        );
    }
    let narrow = "CONFIG_X86=y\nCONFIG_X86_32=y";
    assert_eq!(
        judged("x86", "2.6.32", narrow, "GENERIC_GETTIMEOFDAY"),
        None,
        "32 bits had no clock in the vDSO yet"
    );
    assert!(judged("x86", "4.9.0", narrow, "GENERIC_GETTIMEOFDAY").is_some());
    assert_eq!(judged("x86", "6.18.5", narrow, "X86_5LEVEL"), None, "kernels of 32 bits have no five levels");
}
