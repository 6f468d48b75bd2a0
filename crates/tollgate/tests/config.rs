//! `tollgate inspect config`: counts, differences, and files that are not configurations.

use crate::common;
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

const PTI: &str = "MITIGATION_PAGE_TABLE_ISOLATION";
const BHI: &str = "MITIGATION_SPECTRE_BHI";

fn two(home: &Home) -> (String, String) {
    (home.file("old", OLD), home.file("new", NEW))
}

/// Without line ends, which depend on the width.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn affecting(document: &Value) -> &Vec<Value> {
    document["configurations"][0]["affecting"].as_array().expect("a list")
}

fn difference<'a>(document: &'a Value, name: &str) -> Option<&'a Value> {
    document["differences"].as_array().expect("a list").iter().find(|it| it["option"] == name)
}

#[test]
fn one_is_counted_and_explained() {
    let home = Home::new();
    let (old, _) = two(&home);
    let text = home.output(["inspect", "config", "old", "--explain"]);
    let lines: Vec<&str> = text.lines().collect();
    let head = ["Linux 6.1.99, x86, 64 bits, built by gcc 12.2.0", "old"];
    assert_eq!(lines[..3], [head[0], head[1], "5 built in, 1 module, 3 off; 2 numbers and texts"]);
    assert!(lines.contains(&"off: PREEMPT, KASAN"), "{text}");
    let end = "A configuration shows how a kernel was built, not its state, which the command\n\
               line and settings change. `tollgate inspect` shows the state.\n";
    assert!(text.ends_with(end), "{text}");
    let document = home.json(["inspect", "config", &old, "--format", "json"]);
    let record = &document["configurations"][0];
    assert_eq!((&record["source"], &record["version"]), (&"plain".into(), &"6.1.99".into()));
    assert_eq!((&record["built_in"], &record["modules"], &record["off"]), (&5.into(), &1.into(), &3.into()));
    assert_eq!(record["valued"], 2);
    let areas = record["areas"].as_array().expect("areas");
    let sum: u64 = areas.iter().map(|area| area["built_in"].as_u64().expect("a count")).sum();
    assert_eq!(sum, 5);
    assert!(record.get("options").is_none());
    let isolated = affecting(&document).iter().find(|it| it["option"] == PTI).expect("known");
    let [boundaries, why] =
        ["boundaries", "why"].map(|name| isolated["affects"][name].as_str().expect("a text"));
    assert!(flat(&text).contains(&format!("{PTI} y {boundaries}: {why}")), "{text}");
    assert_eq!(document["differences"], Value::Array(Vec::new()));
}

/// A kernel with many options on still has a short page.
#[test]
fn the_page_is_short_and_its_reasons_are_asked_for() {
    let home = Home::new();
    let (old, _) = two(&home);
    let document = home.json(["inspect", "config", &old, "--format", "json"]);
    let affecting = affecting(&document);
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
    let names = |text: &str, option| flat(text).split([' ', ',']).any(|word| word == option);
    let explains = |text: &str, option| {
        let known = affecting.iter().find(|it| it["option"] == option).expect("known");
        flat(text).contains(known["affects"]["why"].as_str().expect("a reason"))
    };
    assert!(names(&page, PTI) && !explains(&page, PTI), "{page}");
    let explained = home.output(["inspect", "config", &full, "--explain"]);
    assert!(explains(&explained, PTI) && names(&explained, "KASAN"), "{explained}");
    // Configurations that differ much have no reasons either; those that differ little have.
    let many = home.output(["inspect", "config", &full, &old]);
    assert!(names(&many, BHI) && !explains(&many, BHI), "{many}");
    let many = home.output(["inspect", "config", &full, &old, "--explain"]);
    assert!(explains(&many, BHI), "{many}");
    let few = home.file("few", format!("{OLD}CONFIG_{BHI}=y\n"));
    let few = home.output(["inspect", "config", &few, &old]);
    assert!(explains(&few, BHI), "{few}");
}

#[test]
fn values_and_parameters_stand_beside_the_names() {
    let home = Home::new();
    let text = "CONFIG_HZ=250\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_LSM=\"landlock,lockdown,yama,apparmor\"\n";
    home.file("machine/proc/sys/kernel/osrelease", "6.1.99\n");
    home.file("machine/proc/cmdline", "preempt=full quiet\n");
    home.file("machine/boot/config-6.1.99", text);
    let page = home.output(["inspect", "config", "machine"]);
    let rows: Vec<&str> = page.lines().skip_while(|line| *line != "area").collect();
    assert_eq!(rows[1..3], ["scheduling  PREEMPT_DYNAMIC (preempt=full), HZ=250", "security    LSM=…"]);
    assert_eq!(rows[4], "LSM is \"landlock, lockdown, yama, apparmor\"");
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
    assert_eq!(mds["without"], "older kernels have it, if at all, without an option");
    assert_eq!(difference(&document, "KASAN").expect("a difference")["kind"], "offered");
    insta::assert_snapshot!(home.output(["inspect", "config", "old", "new"]));
    let odd = home.file("odd", OLD.replace("HZ=250", "HZ=100"));
    let both = home.json(["inspect", "config", &old, &odd, "--format", "json"]);
    let both: Vec<&Value> = both["differences"].as_array().expect("a list").iter().collect();
    assert_eq!((both.len(), &both[0]["option"]), (1, &"HZ".into()));
    let both = home.output(["inspect", "config", &old, &odd]);
    assert!(!both.contains("older name"), "{both}");
    let same = home.output(["inspect", "config", &old, &old]);
    assert_eq!(same.lines().last(), Some("No option differs."));
}

#[test]
fn an_area_is_shown_option_by_option() {
    let home = Home::new();
    let (old, new) = two(&home);
    let text = home.output(["inspect", "config", &old, "--area", "host"]);
    let table = "option  is\nhost\n  KVM   m   virtual machines by the processor's help";
    assert_eq!(text.split("\n\n").nth(2), Some(table));
    let text = home.output(["inspect", "config", &old, &new, "--all"]);
    assert!(text.contains("\n  SND              n             -\n") && !text.contains("Not shown"), "{text}");
    let document = home.json(["inspect", "config", &old, "--area", "scheduling", "--format", "json"]);
    let options = &document["configurations"][0]["options"];
    assert_eq!(options, &serde_json::json!({"HZ": "250", "PREEMPT": "n"}));
    let shown = home.refusal(["inspect", "config", &old, "--area", "nowhere"]);
    assert!(shown.starts_with("there is no area \"nowhere\"; the areas are entry, mitigations,"), "{shown}");
}

#[test]
fn oddities_are_named_with_their_lines() {
    let home = Home::new();
    home.file("odd", "CONFIG_A=y\r\nCONFIG_B=y\r\nCONFIG_A=m\r\n\u{1b}[2Jnoise\r\nCONFIG_C=y");
    let text = home.output(["inspect", "config", "odd"]);
    let head = r#"a kernel of unknown version
odd
2 built in, 1 module, 0 off; 0 numbers and texts
! 1 line is not an option and was left out; it is line 4: "\u{1b}[2Jnoise"
! 1 line sets an option again, as A in line 3 does; the last one counts, as in
  Kconfig
! the last line has no end: the file may be cut short
"#;
    assert_eq!(text.split_inclusive("\n").take(7).collect::<String>(), head);
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
        (
            prose.as_str(),
            "is not a kernel configuration: line 2 is \"Nothing but prose\"; options in it: 0, lines that are neither options \
             nor comments: 2",
        ),
        (&empty, "is empty; a configuration has lines such as CONFIG_SMP=y"),
        (&zip, "is compressed by bzip2, not text: `bzip2 -dc` of it writes a configuration that can be read"),
        (&cut, "is damaged or cut short: its gzip data cannot be unpacked (it ends early)"),
        (
            &elf,
            "is a kernel image or another program, not text: `scripts/extract-ikconfig` of it writes a configuration that can be read",
        ),
        (&missing, "does not exist"),
        (
            "/dev/zero",
            "is a device; a configuration is a file, a directory with a captured machine, or a pipe",
        ),
    ] {
        assert_eq!(home.refusal(["inspect", "config", path]), format!("{path} {shown}"));
    }
    let line = home.refusal(["inspect", "config", "-", "-"]);
    assert_eq!(line, "standard input was named twice; it can be read once");
    let many = vec![prose.as_str(); 9];
    let line = home.refusal([&["inspect", "config"], many.as_slice()].concat());
    assert_eq!(line, "9 configurations were named; at most 8 can be compared");
}

#[test]
fn a_directory_is_a_captured_machine() {
    let home = Home::new();
    home.file("machine/proc/sys/kernel/osrelease", "6.1.99\n");
    home.file("machine/proc/cmdline", "preempt=full quiet\n");
    home.file("machine/boot/config-6.1.99", OLD);
    let text = home.output(["inspect", "config", "machine"]);
    let lines: Vec<&str> = text.lines().collect();
    let overridden = "Its command line overrides some: preempt=full.";
    assert_eq!([lines[1], lines[3]], ["machine/boot/config-6.1.99", overridden]);
    home.file("bare/proc/sys/kernel/osrelease", "5.0\n");
    let shown = home.refusal(["inspect", "config", "bare"]);
    let (said, absent) = shown.split_once("; absent: ").expect("what was looked for");
    assert_eq!(said, "no configuration of the machine in bare was found; name a file instead");
    let absent: Vec<&str> = absent.split(", ").filter(|path| !path.starts_with("/lib/modules/")).collect();
    let others = ["/proc/config.gz", "/boot/config-5.0", "/usr/lib/modules/5.0/config"];
    assert_eq!(absent, others);
}

#[test]
fn standard_input_is_read() {
    let home = Home::new();
    let mut command = home.tollgate(["inspect", "config", "-"]);
    let output = command.write_stdin(OLD).assert().success().get_output().stdout.clone();
    assert_eq!(String::from_utf8(output).expect("text").lines().nth(1), Some("standard input"));
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
