//! Machines made of a few files, and the conclusions about them.

use proptest::prelude::*;
use tollgate_model::Unknown;

use super::{Conclusion, Evidence, Ground, Verdict, conclude, kernel_base};
use crate::{kcore::tests::core, machine::Machine, testing::tree};

const CONFIG: &str = "CONFIG_RANDOMIZE_BASE=y\nCONFIG_RANDOMIZE_MEMORY=y\nCONFIG_RELOCATABLE=y\n\
                      CONFIG_PHYSICAL_START=0x1000000\nCONFIG_PHYSICAL_ALIGN=0x200000\n";
const RELEASE: (&str, &[u8]) = ("proc/sys/kernel/osrelease", b"6.1.0-13-amd64\n");
const BUILT: (&str, &[u8]) = ("boot/config-6.1.0-13-amd64", CONFIG.as_bytes());
const HIDDEN: (&str, &[u8]) = (
    "proc/kallsyms",
    b"0000000000000000 A fixed_percpu_data\n0000000000000000 T startup_64\n0000000000000000 T _text\n",
);
const LINE: (&str, &[u8]) = ("proc/cmdline", b"quiet\n");

fn evidence(files: &[(&str, &[u8])]) -> Evidence {
    kernel_base(&Machine::captured(tree(files).path()))
}

fn concluded(files: &[(&str, &[u8])]) -> Conclusion {
    conclude(&evidence(files))
}

fn symbols(text: u64) -> Vec<u8> {
    format!("0000000000000000 A fixed_percpu_data\n{text:016x} T startup_64\n{text:016x} T _text\n")
        .into_bytes()
}

/// Boot parameters with this in `loadflags`.
fn boot(flags: u8, header: bool) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    bytes[0x211] = flags;
    if header {
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
    }
    bytes
}

#[test]
fn built_to_move_and_at_its_link_address_is_not_moved() {
    let at_link = symbols(0xffff_ffff_8100_0000);
    let conclusion = concluded(&[RELEASE, BUILT, LINE, ("proc/kallsyms", &at_link)]);
    assert_eq!((conclusion.verdict, conclusion.offset), (Verdict::NotMoved, Some(0)));
    assert_eq!(conclusion.because, "it is at its link address, 0xffffffff81000000 (/proc/kallsyms _text)");
    let built = "it was built to move (CONFIG_RANDOMIZE_BASE=y), which does not show that it did";
    assert_eq!(conclusion.remarks, [built]);
    assert!(conclusion.link_address_is_read);
    // (1 GiB - 16 MiB) / 2 MiB + 1
    assert_eq!(conclusion.slots, 505);
}

#[test]
fn an_address_beats_the_boot_flag_and_chance_is_named() {
    let at_link = symbols(0xffff_ffff_8100_0000);
    let flag = boot(3, true);
    let conclusion = concluded(&[
        RELEASE,
        BUILT,
        LINE,
        ("proc/kallsyms", &at_link),
        ("sys/kernel/boot_params/data", &flag),
    ]);
    assert_eq!(conclusion.verdict, Verdict::NotMoved);
    let chance = "the boot stub chose at random, and chooses this address once in 505 times";
    assert_eq!(conclusion.remarks.get(1).map(String::as_str), Some(chance));
}

#[test]
fn moved_by_so_much() {
    let moved = symbols(0xffff_ffff_9e00_0000);
    let conclusion = concluded(&[RELEASE, BUILT, LINE, ("proc/kallsyms", &moved)]);
    assert_eq!((conclusion.verdict, conclusion.offset), (Verdict::Moved, Some(0x1d00_0000)));
    // Without a configuration, the usual link address is used, and a remark says so.
    let conclusion = concluded(&[RELEASE, ("proc/kallsyms", &moved)]);
    assert_eq!((conclusion.verdict, conclusion.offset), (Verdict::Moved, Some(0x1d00_0000)));
    let usual = "its link address could not be read; 0xffffffff81000000 is the usual one";
    assert_eq!(conclusion.remarks, [usual]);
    assert!(!conclusion.link_address_is_read);
    // A System.map that was made with the image shows it too.
    let map = ("boot/System.map-6.1.0-13-amd64", &moved[..]);
    let conclusion = concluded(&[RELEASE, ("proc/kallsyms", &moved), map]);
    assert_eq!((conclusion.verdict, conclusion.link_address), (Verdict::NotMoved, 0xffff_ffff_9e00_0000));
}

#[test]
fn zeros_are_not_an_answer() {
    let iomem = ("proc/iomem", &b"00000000-00000000 : System RAM\n  00000000-00000000 : Kernel code\n"[..]);
    let conclusion = concluded(&[RELEASE, BUILT, LINE, HIDDEN, iomem]);
    assert_eq!((conclusion.verdict, conclusion.offset), (Verdict::Unknown, None));
    assert_eq!(
        conclusion.remarks,
        [
            "/proc/kallsyms shows zeros, which is \"not visible\" and not \"not moved\": it shows addresses to root if kernel.kptr_restrict is 0 or 1",
            "/proc/iomem shows zeros: it shows addresses to root",
            "it was built to move (CONFIG_RANDOMIZE_BASE=y); that alone does not show that it did",
        ]
    );
    // Debian's System.map is a stub.
    let stub =
        ("boot/System.map-6.1.0-13-amd64", &b"ffffffffffffffff B The real System.map is elsewhere\n"[..]);
    let linked = evidence(&[RELEASE, HIDDEN, stub]).linked.unwrap_err();
    assert_eq!(linked, Unknown::Absent("/boot/System.map-6.1.0-13-amd64 is only a stub".to_owned()));
}

#[test]
fn behind_zeros_the_boot_flag_tells() {
    let with = |flags, header| {
        let boot = boot(flags, header);
        concluded(&[RELEASE, BUILT, LINE, HIDDEN, ("sys/kernel/boot_params/data", &boot)])
    };
    assert_eq!(with(3, true).verdict, Verdict::Moved);
    assert_eq!(with(1, true).verdict, Verdict::NotMoved);
    let direct = with(0, false);
    assert_eq!(direct.verdict, Verdict::Unknown, "no stub ran that could have left a flag");
    assert!(direct.remarks[0].starts_with("its boot parameters have no header: it was entered directly, "));
    // The flag came with Linux 4.1.
    let clear = boot(1, true);
    let old = ("proc/sys/kernel/osrelease", &b"4.0.0\n"[..]);
    assert_eq!(concluded(&[old, HIDDEN, ("sys/kernel/boot_params/data", &clear)]).verdict, Verdict::Unknown);
}

#[test]
fn physical_memory_tells_that_it_stayed_but_not_that_it_moved() {
    let at = |start: &str| {
        let text = format!(
            "00100000-bfffffff : System RAM\n  {start}-3effffff : Kernel code\n  3f000000-3f1fffff : Kernel bss\n"
        );
        concluded(&[RELEASE, BUILT, LINE, HIDDEN, ("proc/iomem", text.as_bytes())])
    };
    let stayed = at("01000000");
    assert_eq!((stayed.verdict, stayed.offset), (Verdict::NotMoved, None));
    assert_eq!(
        stayed.because,
        "it is at physical 0x1000000, where it is loaded without a move (/proc/iomem Kernel code)"
    );
    let elsewhere = at("2d000000");
    assert_eq!(elsewhere.verdict, Verdict::Unknown);
    assert_eq!(
        elsewhere.remarks[1],
        "it is at physical 0x2d000000, not where it is loaded without a move (/proc/iomem Kernel code); \
         boot loaders also move it"
    );
}

#[test]
fn the_core_file_tells_the_offset_and_the_direct_map() {
    let moved = core("1e000000", 0xffff_8880_0000_0000);
    let conclusion = concluded(&[RELEASE, HIDDEN, ("proc/kcore", &moved)]);
    assert_eq!((conclusion.verdict, conclusion.offset), (Verdict::Moved, Some(0x1e00_0000)));
    let stayed = core("0", 0xffff_8880_0000_0000);
    assert_eq!(concluded(&[RELEASE, HIDDEN, ("proc/kcore", &stayed)]).verdict, Verdict::NotMoved);
    let map_alone = core("?", 0xffff_9e40_0000_0000);
    let conclusion = concluded(&[RELEASE, HIDDEN, ("proc/kcore", &map_alone)]);
    assert_eq!((conclusion.verdict, conclusion.offset), (Verdict::Moved, None));
    // The address is not shown.
    assert_eq!(conclusion.because, "its map of all memory begins at a random address (/proc/kcore)");
}

#[test]
fn old_kernels_that_hibernate_stay_without_the_kaslr_parameter() {
    let config = format!("{CONFIG}CONFIG_HIBERNATION=y\n");
    let old = |release: &'static str, line: &'static str| {
        let path = format!("boot/config-{release}");
        let files = [
            ("proc/sys/kernel/osrelease", release.as_bytes()),
            (path.as_str(), config.as_bytes()),
            ("proc/cmdline", line.as_bytes()),
            HIDDEN,
        ];
        concluded(&files)
    };
    let rule = old("4.4.0-21-generic", "quiet");
    assert_eq!(rule.verdict, Verdict::NotMoved);
    assert_eq!(
        rule.because,
        "4.4.0-21-generic can hibernate (CONFIG_HIBERNATION=y), and before 4.8 such a kernel moves only if the command line has `kaslr`, which it lacks (/boot/config-4.4.0-21-generic, /proc/cmdline)"
    );
    assert_eq!(old("4.4.0-21-generic", "quiet kaslr").verdict, Verdict::Unknown);
    assert_eq!(old("4.8.0-1", "quiet").verdict, Verdict::Unknown);
    assert_eq!(
        old("3.13.0", "quiet").because,
        "/proc/sys/kernel/osrelease: 3.13.0 is older than 3.14, the first that could move itself"
    );
}

#[test]
fn what_decides_is_no_word_of_the_reason() {
    // Vendors choose the name of a release; this one contains the name of a file that shows addresses.
    let conclusion = concluded(&[("proc/sys/kernel/osrelease", b"3.13.0-iomem\n")]);
    assert_eq!((conclusion.verdict, conclusion.ground), (Verdict::NotMoved, Ground::Release));
    assert_eq!(conclusion.remarks, Vec::<String>::new(), "no address was compared");
    let memory = b"01000000-01a00000 : Kernel code\n01a00001-02000000 : Kernel data\n";
    let conclusion = concluded(&[RELEASE, HIDDEN, ("proc/iomem", memory)]);
    assert_eq!((conclusion.verdict, conclusion.ground), (Verdict::NotMoved, Ground::Physical));
    assert!(conclusion.remarks.iter().any(|remark| remark.contains("is the usual one")));
}

#[test]
fn nokaslr_is_obeyed_but_an_address_is_better() {
    let line = ("proc/cmdline", &b"quiet nokaslr\n"[..]);
    let conclusion = concluded(&[RELEASE, BUILT, HIDDEN, line]);
    assert_eq!(conclusion.verdict, Verdict::NotMoved);
    assert_eq!(conclusion.because, "the command line has `nokaslr` (/proc/cmdline)");
    let moved = symbols(0xffff_ffff_9e00_0000);
    let contradicted = concluded(&[RELEASE, BUILT, line, ("proc/kallsyms", &moved)]);
    assert_eq!(contradicted.verdict, Verdict::Moved);
    let although = "although the command line has `nokaslr`: its loader may have moved it";
    assert_eq!(contradicted.remarks, [although]);
}

#[test]
fn nothing_at_all_is_no_answer() {
    let conclusion = concluded(&[]);
    assert_eq!((conclusion.verdict, conclusion.offset), (Verdict::Unknown, None));
    // A configuration alone is not a ground either, in both directions.
    assert_eq!(concluded(&[RELEASE, BUILT]).verdict, Verdict::Unknown);
    let without = ("boot/config-6.1.0-13-amd64", &b"# CONFIG_RANDOMIZE_BASE is not set\n"[..]);
    assert_eq!(concluded(&[RELEASE, without]).verdict, Verdict::Unknown);
}

#[test]
fn a_kernel_that_is_not_linux_has_no_such_question() {
    let conclusion = concluded(&[("proc/sys/kernel/osrelease", b"4.19.0-gvisor\n")]);
    assert_eq!(conclusion.verdict, Verdict::Unknown);
    assert_eq!(
        conclusion.because,
        "the kernel here is gVisor, which is not a Linux kernel; the host's kernel is not visible"
    );
    assert!(conclusion.remarks.is_empty());
}

#[test]
fn the_release_leads_to_no_other_file() {
    let files = [("proc/sys/kernel/osrelease", &b"../../etc/x\n"[..]), ("etc/x", CONFIG.as_bytes())];
    assert!(evidence(&files).options.is_err());
}

#[test]
fn as_a_fact() {
    let moved = symbols(0xffff_ffff_9e00_0000);
    let fact_of = |files: &[(&str, &[u8])]| super::moved(&Machine::captured(tree(files).path()));
    let fact = fact_of(&[RELEASE, BUILT, ("proc/kallsyms", &moved)]);
    assert_eq!(fact.map(|found| found.value), Ok(true));
    assert!(fact_of(&[]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nonsense_is_taken(
        files in prop::collection::vec(prop_oneof![any::<Vec<u8>>(), "[0-9a-fx =:_tTdknoaslr.\n-]{0,200}".prop_map(String::into_bytes)], 8),
    ) {
        let paths = ["proc/kallsyms", "proc/iomem", "proc/kcore", "sys/kernel/boot_params/data", "proc/cmdline",
            "proc/config.gz", "proc/sys/kernel/osrelease", "boot/System.map-6.1.0"];
        let files: Vec<(&str, &[u8])> = paths.into_iter().zip(files.iter().map(Vec::as_slice)).collect();
        let conclusion = concluded(&files);
        prop_assert!(!conclusion.because.is_empty());
    }
}
