//! Machines of arm64, made of the files that their kernels show: a Graviton 3, an Apple M1 under Asahi, and QEMU's board `virt`.

use std::ops::Range;

use proptest::prelude::*;
use tollgate_arch::architecture::Architecture::{Arm64, X86_64};
use tollgate_inspect::{environment, facts};
use tollgate_model::{Environment, Fact, FactValue, Facts, Unknown};

use crate::captured::{Tree, is_absent, is_unreadable, list, text};

/// The text of /proc/cpuinfo for some kinds of cores: part, variant, revision and processors of each.
fn cpuinfo(implementer: &str, features: &str, kinds: &[(&str, u8, u8, Range<usize>)]) -> String {
    let paragraph = |part: &str, variant, revision, cpu| {
        format!(
            "processor\t: {cpu}\nBogoMIPS\t: 48.00\nFeatures\t: {features}\nCPU implementer\t: {implementer}\nCPU architecture: 8\n\
             CPU variant\t: {variant:#x}\nCPU part\t: {part}\nCPU revision\t: {revision}\n\n"
        )
    };
    let of_kind = |(part, variant, revision, cpus): &(&str, u8, u8, Range<usize>)| -> String {
        cpus.clone().map(|cpu| paragraph(part, *variant, *revision, cpu)).collect()
    };
    kinds.iter().map(of_kind).collect()
}

fn linux(cpuinfo: &str, vulnerabilities: &[(&str, &str)], page: u64) -> Tree {
    let auxv: Vec<u8> = [6, page, 33, 0xffff_8000, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    let tree = Tree::new()
        .with("/proc/sys/kernel/arch", "aarch64\n")
        .with("/proc/sys/kernel/osrelease", "6.12.9\n")
        .with("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Thu Jan 9 2025\n")
        .with("/proc/cmdline", "root=/dev/vda1 quiet\n")
        .with("/proc/cpuinfo", cpuinfo)
        .with("/proc/self/auxv", auxv)
        .with("/sys/devices/system/clocksource/clocksource0/current_clocksource", "arch_sys_counter\n");
    vulnerabilities.iter().fold(tree, |tree, (name, says)| {
        tree.with(&format!("/sys/devices/system/cpu/vulnerabilities/{name}"), format!("{says}\n"))
    })
}

fn graviton() -> Facts {
    let features = "fp asimd evtstrm aes atomics uscat lrcpc ssbs paca pacg dit flagm sve rng";
    let cpuinfo = cpuinfo("0x41", features, &[("0xd40", 1, 1, 0..4)]);
    let vulnerabilities = [
        ("meltdown", "Not affected"),
        ("spectre_v2", "Mitigation: CSV2, BHB"),
        ("spec_store_bypass", "Mitigation: Speculative Store Bypass disabled via prctl"),
    ];
    let tree = linux(&cpuinfo, &vulnerabilities, 4096)
        .with("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n")
        .with("/sys/class/dmi/id/product_name", "c7g.xlarge\n");
    tree.facts()
}

fn apple() -> Facts {
    let features = "fp asimd evtstrm atomics lrcpc uscat ilrcpc flagm ssbs sb paca pacg";
    let cpuinfo = cpuinfo("0x61", features, &[("0x022", 1, 1, 0..4), ("0x023", 1, 1, 4..8)]);
    linux(&cpuinfo, &[("meltdown", "Not affected"), ("spectre_v2", "Not affected")], 16_384)
        .with("/sys/firmware/devicetree/base/compatible", "apple,j274\0apple,t8103\0apple,arm-platform\0")
        .facts()
}

fn virt(part: &str, features: &str, meltdown: &str) -> Tree {
    linux(&cpuinfo("0x41", features, &[(part, 0, 3, 0..1)]), &[("meltdown", meltdown)], 65_536)
        .with("/sys/firmware/devicetree/base/compatible", "linux,dummy-virt\0")
}

fn value(facts: &Facts, name: &str) -> Option<FactValue> {
    facts[name].value().cloned()
}

fn flag(facts: &Facts, name: &str) -> Option<bool> {
    facts[name].value().and_then(FactValue::as_flag)
}

fn why(fact: &Fact) -> &str {
    match fact {
        Fact::Unknown { why: Unknown::Absent(why) | Unknown::Unreadable(why) | Unknown::Refused(why) } => why,
        Fact::Known { .. } => "",
    }
}

#[test]
fn processors_are_named_by_maker_and_part() {
    let graviton = graviton();
    assert_eq!(graviton["cpu.model"], Fact::known("Arm Neoverse-V1", "/proc/cpuinfo"));
    assert_eq!(value(&graviton, "cpu.vendor"), Some(text("Arm")));
    assert_eq!(value(&graviton, "cpu.midr"), Some(list(&["0x411fd401 Arm Neoverse-V1 r1p1: 0-3"])));
    let apple = apple();
    let kinds = "4 × Apple M1 Icestorm + 4 × Apple M1 Firestorm";
    assert_eq!(
        (value(&apple, "cpu.model"), value(&apple, "cpu.vendor")),
        (Some(text(kinds)), Some(text("Apple")))
    );
    let each = ["0x611f0221 Apple M1 Icestorm r1p1: 0-3", "0x611f0231 Apple M1 Firestorm r1p1: 4-7"];
    assert_eq!(value(&apple, "cpu.midr"), Some(list(&each)));
    let unknown = virt("0xfff", "fp", "Vulnerable").facts();
    assert_eq!(value(&unknown, "cpu.model"), Some(text("Arm part 0xfff")));
}

#[test]
fn a_file_of_each_processor_stands_in_for_cpuinfo() {
    let identification = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";
    let tree = |midr: &str| {
        virt("0xd0c", "fp", "Vulnerable")
            .with("/proc/cpuinfo", "processor\t: 0\n")
            .with("/sys/devices/system/cpu/online", "0\n")
            .with(identification, midr)
            .facts()["cpu.midr"]
            .clone()
    };
    let found = tree("0x00000000413fd0c1\n");
    assert_eq!(found.value(), Some(&list(&["0x413fd0c1 Arm Neoverse-N1 r3p1: 0"])));
    assert!(
        matches!(found, Fact::Known { source, .. } if source.ends_with("cpu*/regs/identification/midr_el1"))
    );
    assert!(is_absent(&tree("0x1413fd0c1\n")), "cpuinfo says why");
}

#[test]
fn features_are_those_that_the_kernel_lists() {
    let (graviton, apple) = (graviton(), apple());
    let [sve, sb] = ["cpu.feature.sve", "cpu.feature.sb"];
    assert_eq!([flag(&graviton, sve), flag(&apple, sve)], [Some(true), Some(false)]);
    assert_eq!([flag(&graviton, sb), flag(&apple, sb)], [Some(false), Some(true)]);
    let source = "/proc/cpuinfo Features, ID_AA64ISAR0_EL1.Atomic";
    assert_eq!(graviton["cpu.feature.atomics"], Fact::known(true, source));
    let used = ["atomics", "uscat", "lrcpc", "ssbs", "paca", "pacg", "dit", "flagm", "sve"];
    assert_eq!(value(&graviton, "kernel.entry_features"), Some(list(&used)));
    let hidden = &graviton["cpu.feature.pan"];
    assert!(is_absent(hidden));
    assert_eq!(why(hidden), "the kernel does not show this field of an ID register to programs");
}

#[test]
fn kpti_is_known_where_its_file_decides() {
    let pti = |facts: &Facts| facts["mitigation.pti"].clone();
    let of = |meltdown: &str| pti(&virt("0xd08", "fp", meltdown).facts());
    let file = "/sys/devices/system/cpu/vulnerabilities/meltdown";
    assert_eq!(of("Mitigation: PTI"), Fact::known(true, file));
    assert_eq!(of("Vulnerable"), Fact::known(false, file));
    assert!(is_absent(&pti(&graviton())), "{:?}", pti(&graviton()));
    let given = virt("0xd08", "fp", "Not affected").with("/proc/cmdline", "quiet kpti=0\n").facts();
    assert_eq!(pti(&given), Fact::known(false, "/proc/cmdline kpti="));
    let nonsense = virt("0xd08", "fp", "Not affected").with("/proc/cmdline", "kpti=perhaps\n").facts();
    assert!(is_unreadable(&pti(&nonsense)));
}

#[test]
fn a_hypervisor_is_known_by_its_firmware_alone() {
    let graviton = graviton();
    assert_eq!(value(&graviton, "hypervisor.layers"), Some(list(&["Nitro"])));
    assert_eq!(
        (flag(&graviton, "hypervisor.present"), environment(&graviton)),
        (Some(true), Environment::Vm)
    );
    let virt = virt("0xd0c", "fp", "Vulnerable").facts();
    assert_eq!(value(&virt, "hypervisor.layers"), Some(list(&["unnamed"])));
    assert!(is_absent(&apple()["hypervisor.present"]), "no file says that there is none");
}

#[test]
fn pages_and_the_clock_are_those_of_the_machine() {
    let sizes = [graviton(), apple(), virt("0xd0c", "fp", "Vulnerable").facts()];
    let sizes = sizes.map(|facts| facts["memory.page_size"].value().and_then(FactValue::as_f64));
    assert_eq!(sizes, [Some(4096.0), Some(16_384.0), Some(65_536.0)]);
    assert_eq!(flag(&apple(), "clocksource.in_user_mode"), Some(true));
}

#[test]
fn a_fact_that_an_architecture_lacks_is_not_there() {
    let x86 = Tree::new().with("/proc/sys/kernel/arch", "x86_64\n").facts();
    for (architecture, machine) in [(Arm64, graviton()), (Arm64, apple()), (X86_64, x86)] {
        for spec in facts().filter(|spec| !spec.name.ends_with(".*")) {
            let is_its = spec.only().is_none_or(|only| only == architecture);
            assert_eq!(machine.contains_key(spec.name), is_its, "{}", spec.name);
            let is_read = machine.get(spec.name).is_none_or(|fact| !is_unreadable(fact));
            assert!(is_read, "{}: {:?}", spec.name, machine.get(spec.name));
        }
        // None speaks of what only the other has.
        let other = if architecture == Arm64 { "CPUID" } else { "ID register" };
        for (name, fact) in &machine {
            assert!(!why(fact).contains(other), "{name}: {fact:?}");
        }
    }
}

#[test]
fn a_machine_without_a_field_or_a_file_has_its_other_facts() {
    let usual = cpuinfo("0x41", "atomics", &[("0xd0c", 3, 1, 0..2)]);
    let complete = virt("0xd0c", "fp", "Vulnerable").with("/proc/cpuinfo", usual.as_str()).facts();
    let of = |tree: Tree, lacking: &[&str]| {
        let facts = tree.facts();
        for (name, fact) in &complete {
            let is_lacking = lacking.contains(&name.as_str());
            assert_eq!(facts[name] != *fact, is_lacking, "{name}: {:?} and {fact:?}", facts[name]);
            assert!(!is_lacking || !why(&facts[name]).is_empty(), "{name}: {:?}", facts[name]);
        }
    };
    let kind = ["cpu.midr", "cpu.model", "cpu.vendor"];
    let is_shown = |name: &&str| name.starts_with("cpu.feature.") && complete[*name].value().is_some();
    let features: Vec<&str> = complete.keys().map(String::as_str).filter(is_shown).collect();
    let features = [features.as_slice(), &["kernel.entry_features"]].concat();
    for (field, lacking) in [
        ("CPU implementer", kind.as_slice()),
        ("CPU variant", &kind),
        ("CPU part", &kind),
        ("CPU revision", &kind),
        ("BogoMIPS", &[]),
        ("Features", &features),
        ("", &[kind.as_slice(), &features].concat()),
    ] {
        let left: String = usual.split_inclusive('\n').filter(|line| !line.starts_with(field)).collect();
        of(virt("0xd0c", "fp", "Vulnerable").with("/proc/cpuinfo", left), lacking);
    }
    let no_auxv =
        virt("0xd0c", "fp", "Vulnerable").with("/proc/cpuinfo", usual.as_str()).with("/proc/self/auxv", "");
    of(no_auxv, &["clocksource.in_user_mode", "memory.page_size", "vdso.present"]);
}

#[test]
fn hostile_files_have_an_answer() {
    let usual = cpuinfo("0x41", "atomics", &[("0xd0c", 3, 1, 0..2)]);
    let of = |cpuinfo: &[u8]| virt("0xd0c", "fp", "Vulnerable").with("/proc/cpuinfo", cpuinfo).facts();
    let cut = of(&usual.as_bytes()[..usual.len() - 20]);
    assert!(is_unreadable(&cut["cpu.model"]), "{:?}", cut["cpu.model"]);
    assert!(why(&cut["cpu.model"]).contains("has no \"CPU"), "{:?}", cut["cpu.model"]);
    let wrong = of(usual.replace("0xd0c", "0xd0cd0c").as_bytes());
    assert!(is_unreadable(&wrong["cpu.model"]));
    assert!(
        why(&wrong["cpu.model"])
            .ends_with("\"CPU part\" \"0xd0cd0c\" is not a hexadecimal number of 12 bits")
    );
    let large = of(&usual.as_bytes().repeat(20_000));
    assert!(is_unreadable(&large["cpu.midr"]), "{:?}", large["cpu.midr"]);
    assert_eq!(flag(&large, "cpu.feature.atomics"), Some(true), "its beginning is enough");
    let binary = of(&[0xff; 4096]);
    assert!(is_absent(&binary["cpu.model"]) && is_absent(&binary["cpu.feature.atomics"]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_processors_have_an_answer(
        text in "((processor|CPU (implementer|part|variant|revision)|Features)\t: (0x)?[0-9a-z]{0,9}\n{1,2}){0,12}",
        page in any::<u64>(),
    ) {
        let machine = linux(&text, &[("meltdown", &text)], page).facts();
        for spec in facts().filter(|spec| !spec.name.ends_with(".*") && spec.only() != Some(X86_64)) {
            prop_assert!(machine.contains_key(spec.name), "{} has no answer", spec.name);
        }
    }
}
