//! `tollgate inspect config`: counts, differences, and files that are no configuration.

mod common;

use common::{Home, one_line};
use serde_json::Value;

const OLD: &str = "# Linux/x86 6.1.99 Kernel Configuration\n\
    CONFIG_CC_VERSION_TEXT=\"gcc 12.2.0\"\nCONFIG_64BIT=y\nCONFIG_HZ=250\n# CONFIG_PREEMPT is not set\n\
    CONFIG_PAGE_TABLE_ISOLATION=y\nCONFIG_RETPOLINE=y\nCONFIG_SECCOMP=y\nCONFIG_KVM=m\nCONFIG_EXT4_FS=y\n\
    # CONFIG_KASAN is not set\n# CONFIG_SND is not set\n";
const NEW: &str = "# Linux/x86 6.18.1 Kernel Configuration\n\
    CONFIG_CC_VERSION_TEXT=\"gcc 15.1.0\"\nCONFIG_64BIT=y\nCONFIG_HZ=1000\nCONFIG_PREEMPT=y\n\
    CONFIG_MITIGATION_PAGE_TABLE_ISOLATION=y\n# CONFIG_MITIGATION_RETPOLINE is not set\n\
    CONFIG_MITIGATION_MDS=y\nCONFIG_SECCOMP=y\nCONFIG_EXT4_FS=m\n";

fn two(home: &Home) -> (String, String) {
    (home.file("old", OLD), home.file("new", NEW))
}

/// Without the ends of lines, which depend on the width.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn difference<'a>(document: &'a Value, name: &str) -> Option<&'a Value> {
    document["differences"].as_array().expect("a list").iter().find(|it| it["option"] == name)
}

#[test]
fn one_is_counted_and_explained() {
    let home = Home::new();
    let (old, _) = two(&home);
    let text = home.output(["inspect", "config", &old, "--explain"]);
    assert!(text.starts_with("Linux 6.1.99, x86, 64 bits, built by gcc 12.2.0\n"), "{text}");
    assert!(text.contains("5 built in, 1 module, 3 off; 2 numbers and texts"), "{text}");
    assert!(text.contains("MITIGATION_PAGE_TABLE_ISOLATION") && text.contains("CR3"), "{text}");
    assert!(text.contains("\noff: PREEMPT, KASAN\n"), "{text}");
    assert!(text.contains("not its state"), "{text}");
    let document = home.json(["inspect", "config", &old, "--format", "json"]);
    let record = &document["configurations"][0];
    assert_eq!((&record["source"], &record["version"]), (&"plain".into(), &"6.1.99".into()));
    assert_eq!((&record["built_in"], &record["modules"], &record["off"]), (&5.into(), &1.into(), &3.into()));
    assert_eq!(record["valued"], 2);
    let areas = record["areas"].as_array().expect("areas");
    let sum: u64 = areas.iter().map(|area| area["built_in"].as_u64().expect("a count")).sum();
    assert_eq!(sum, 5);
    assert!(record.get("options").is_none());
    assert_eq!(document["differences"], Value::Array(Vec::new()));
}

/// A kernel with many options on still has a short page.
#[test]
fn the_page_is_short_and_its_reasons_are_asked_for() {
    let home = Home::new();
    let (old, _) = two(&home);
    let document = home.json(["inspect", "config", &old, "--format", "json"]);
    let affecting = document["configurations"][0]["affecting"].as_array().expect("a list");
    let (off, on): (Vec<&Value>, Vec<&Value>) = affecting.iter().partition(|it| it["area"] == "debugging");
    assert!(on.len() > 150 && off.len() > 30, "{} {}", on.len(), off.len());
    let name = |it: &Value| it["option"].as_str().expect("a name").to_owned();
    let on: String = on.iter().map(|it| format!("CONFIG_{}=y\n", name(it))).collect();
    let checks: String = off.iter().map(|it| format!("# CONFIG_{} is not set\n", name(it))).collect();
    let full = home.file("full", on + &checks);
    let page = home.tollgate(["inspect", "config", &full]).env("COLUMNS", "80").assert().success();
    let page = String::from_utf8(page.get_output().stdout.clone()).expect("text");
    assert!(page.lines().count() <= 110, "{}: {page}", page.lines().count());
    assert!(flat(&page).contains(&format!("off: {} of debugging", off.len())), "{page}");
    assert!(flat(&page).contains("MITIGATION_PAGE_TABLE_ISOLATION") && !page.contains("CR3"), "{page}");
    let explained = home.output(["inspect", "config", &full, "--explain"]);
    assert!(explained.contains("CR3") && explained.contains("KASAN"), "{explained}");
    // Configurations that differ much have no reasons either; those that differ little have.
    let many = flat(&home.output(["inspect", "config", &full, &old]));
    assert!(many.contains("MITIGATION_SPECTRE_BHI") && !many.contains("history of branches"), "{many}");
    let many = flat(&home.output(["inspect", "config", &full, &old, "--explain"]));
    assert!(many.contains("history of branches"), "{many}");
    let few = home.file("few", format!("{OLD}CONFIG_MITIGATION_SPECTRE_BHI=y\n"));
    let few = flat(&home.output(["inspect", "config", &few, &old]));
    assert!(few.contains("history of branches"), "{few}");
}

#[test]
fn values_and_parameters_stand_beside_the_names() {
    let home = Home::new();
    let text = "CONFIG_HZ=250\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_LSM=\"landlock,lockdown,yama,apparmor\"\n";
    home.file("machine/proc/sys/kernel/osrelease", "6.1.99\n");
    home.file("machine/proc/cmdline", "preempt=full quiet\n");
    home.file("machine/boot/config-6.1.99", text);
    let page = flat(&home.output(["inspect", "config", "machine"]));
    assert!(page.contains("PREEMPT_DYNAMIC (preempt=full), HZ=250"), "{page}");
    assert!(page.contains("LSM is \"landlock, lockdown, yama, apparmor\""), "{page}");
}

#[test]
fn two_are_compared_under_the_names_of_today() {
    let home = Home::new();
    let (old, new) = two(&home);
    let document = home.json(["inspect", "config", &old, &new, "--format", "json"]);
    assert_eq!(difference(&document, "MITIGATION_PAGE_TABLE_ISOLATION"), None);
    assert_eq!(difference(&document, "PAGE_TABLE_ISOLATION"), None);
    let retpoline = difference(&document, "MITIGATION_RETPOLINE").expect("a difference");
    assert_eq!(retpoline["values"], serde_json::json!(["y", "n"]));
    assert_eq!(retpoline["formerly"], serde_json::json!(["RETPOLINE", null]));
    assert!(retpoline["affects"]["why"].as_str().is_some_and(|why| !why.is_empty()));
    let mds = difference(&document, "MITIGATION_MDS").expect("a difference");
    assert_eq!(mds["values"], serde_json::json!([null, "y"]));
    assert!(mds["without"].as_str().is_some_and(|without| without.contains("older kernels")));
    assert_eq!(difference(&document, "KASAN").expect("a difference")["kind"], "offered");
    let text = home.output(["inspect", "config", &old, &new]);
    assert!(text.contains("A has 2 options under an older name"), "{text}");
    assert!(text.contains("off or not offered: KASAN"), "{text}");
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(
        at("Options that affect latencies") < at("MITIGATION_RETPOLINE")
            && at("  HZ ") < at("What else differs")
    );
    assert!(at("What else differs") < at("EXT4_FS"));
    let odd = home.file("odd", OLD.replace("HZ=250", "HZ=100"));
    let both = home.output(["inspect", "config", &old, &odd]);
    assert!(both.contains("HZ") && !both.contains("older name"), "{both}");
    let same = home.output(["inspect", "config", &old, &old]);
    assert!(same.contains("No option differs."), "{same}");
}

#[test]
fn an_area_is_shown_option_by_option() {
    let home = Home::new();
    let (old, new) = two(&home);
    let text = home.output(["inspect", "config", &old, "--area", "host"]);
    assert!(text.contains("KVM") && !text.contains("EXT4_FS"), "{text}");
    let text = home.output(["inspect", "config", &old, &new, "--all"]);
    assert!(text.contains("SND") && !text.contains("Not shown"), "{text}");
    let document = home.json(["inspect", "config", &old, "--area", "scheduling", "--format", "json"]);
    let options = &document["configurations"][0]["options"];
    assert_eq!(options, &serde_json::json!({"HZ": "250", "PREEMPT": "n"}));
    let shown = home.refusal(["inspect", "config", &old, "--area", "nowhere"]);
    assert!(shown.starts_with("no area is called \"nowhere\"; they are entry, mitigations,"), "{shown}");
}

#[test]
fn oddities_are_named_with_their_lines() {
    let home = Home::new();
    let odd = home.file("odd", "CONFIG_A=y\r\nCONFIG_B=y\r\nCONFIG_A=m\r\n\u{1b}[2Jnoise\r\nCONFIG_C=y");
    let text = flat(&home.output(["inspect", "config", &odd]));
    assert!(text.contains("2 built in, 1 module, 0 off"), "{text}");
    assert!(text.contains("1 line is no option and was left out; it is line 4"), "{text}");
    assert!(text.contains("A in line 3 does; the last one counts, as in Kconfig"), "{text}");
    assert!(text.contains("the last line does not end"), "{text}");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn what_is_no_configuration_is_refused_in_one_line() {
    let home = Home::new();
    let prose = home.file("prose", "# a title\nNothing but prose\nin two lines\n");
    let empty = home.file("empty", "");
    let zip = home.file("x.bz2", b"BZh91AY");
    let cut = home.file("cut.gz", b"\x1f\x8b\x08\0");
    let elf = home.file("program", b"\x7fELF and so on");
    let missing = format!("{prose}-missing");
    for (path, shown) in [
        (prose.as_str(), "line 2 is \"Nothing but prose\""),
        (&empty, "is empty"),
        (&zip, "compressed with bzip2"),
        (&cut, "damaged or cut short"),
        (&elf, "no kernel, or one that was built without CONFIG_IKCONFIG"),
        (&missing, "does not exist"),
        ("/dev/zero", "is a device"),
    ] {
        let line = home.refusal(["inspect", "config", path]);
        assert!(line.starts_with(path) && line.contains(shown), "{line}");
    }
    let line = home.refusal(["inspect", "config", "-", "-"]);
    assert!(line.contains("read once"), "{line}");
    let many = vec![prose.as_str(); 9];
    let line = home.refusal([&["inspect", "config"], many.as_slice()].concat());
    assert!(line.contains("at most 8"), "{line}");
}

#[test]
fn a_directory_is_a_captured_machine() {
    let home = Home::new();
    home.file("machine/proc/sys/kernel/osrelease", "6.1.99\n");
    home.file("machine/proc/cmdline", "preempt=full quiet\n");
    home.file("machine/boot/config-6.1.99", OLD);
    let text = home.output(["inspect", "config", "machine"]);
    assert!(text.contains("machine/boot/config-6.1.99"), "{text}");
    assert!(text.contains("Its command line overrides some: preempt=full."), "{text}");
    home.file("bare/proc/sys/kernel/osrelease", "5.0\n");
    let shown = home.refusal(["inspect", "config", "bare"]);
    for part in ["/proc/config.gz", "/boot/config-5.0", "/boot/vmlinuz-5.0", "absent"] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn standard_input_is_read() {
    let home = Home::new();
    let mut command = home.tollgate(["inspect", "config", "-"]);
    let output = command.write_stdin(OLD).assert().success().get_output().stdout.clone();
    assert!(String::from_utf8(output).expect("text").contains("\nstandard input\n"));
    let mut command = home.tollgate(["inspect", "config", "-"]);
    let shown = one_line(&command.write_stdin("").assert().code(2).stdout("").get_output().stderr.clone());
    assert_eq!(shown, "standard input is empty; a configuration has lines such as CONFIG_SMP=y");
}

#[test]
fn every_width_is_kept() {
    let home = Home::new();
    let (old, new) = two(&home);
    for columns in ["40", "60", "80", "120"] {
        for arguments in
            [vec![old.as_str()], vec![&old, "--explain"], vec![&old, &new], vec![&old, &new, &old, "--all"]]
        {
            let mut command = home.tollgate([&["inspect", "config"], arguments.as_slice()].concat());
            let output = command.env("COLUMNS", columns).assert().success().get_output().stdout.clone();
            let text = String::from_utf8(output).expect("text");
            let width = columns.parse().expect("a number");
            assert!(text.lines().all(|line| line.chars().count() <= width), "{columns}: {text}");
        }
    }
}
