//! `tollgate inspect`: facts as text and JSON, captures, and trees from elsewhere.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::common;
use common::text::{part, screen, words};
use common::{Home, one_line};
use serde_json::Value;

fn names(document: &Value) -> Vec<String> {
    let facts = document["facts"].as_object().expect("facts");
    facts.keys().chain(document["moments"].as_object().expect("moments").keys()).cloned().collect()
}

#[test]
fn every_fact_is_on_the_page_with_its_source_or_its_reason() {
    let home = Home::new();
    let text = home.output(["inspect", "--all"]);
    let document = home.json(["inspect", "--format", "json"]);
    let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // A word that is too long is broken.
    let joined: String = text.split_whitespace().collect();
    for name in names(&document) {
        let last = ["cpu.feature.", "mitigation."].into_iter().find_map(|start| name.strip_prefix(start));
        assert!(words.contains(&name) || last.is_some_and(|last| words.contains(last)), "{name}");
    }
    for (name, fact) in document["facts"].as_object().expect("facts") {
        match fact["status"].as_str() {
            Some("known") => {
                let source: String = fact["source"].as_str().expect("a source").split_whitespace().collect();
                let is_alike = fact["value"] == "Not affected";
                assert!(is_alike || joined.contains(&source), "{name}: {source}");
            }
            Some("unknown") => {
                let why = fact["why"].as_str().expect("a reason");
                let kind = why.split(':').next().expect("a kind");
                assert!(["absent", "refused", "unreadable"].contains(&kind), "{why}");
                assert!(words.contains(&format!("{kind}: ")), "{why}");
            }
            other => panic!("{name}: {other:?}"),
        }
        assert!(fact["about"].as_str().is_some_and(|about| about.ends_with('.')), "{name}");
        assert!(fact["subject"].is_string() && (fact["affects"].is_null() || fact["affects"].is_string()));
    }
    assert!(
        text.starts_with("Linux ") || text.starts_with("gVisor") || text.starts_with("A kernel"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}') && home.files().is_empty());
}

#[test]
fn no_line_is_wider_than_the_page() {
    let home = Home::new();
    for width in ["60", "80", "120"] {
        for arguments in
            [vec!["inspect"], vec!["inspect", "--all"], vec!["inspect", "--affects", "page-faults"]]
        {
            let output = home.tollgate(arguments).env("COLUMNS", width).assert().success();
            let text = String::from_utf8(output.get_output().stdout.clone()).expect("text");
            let width: usize = width.parse().expect("a number");
            let widest = text.lines().max_by_key(|line| line.chars().count()).expect("memory");
            assert!(widest.chars().count() <= width, "{width}: {widest}");
        }
    }
}

fn captured() -> impl Iterator<Item = (&'static str, String)> {
    let trees = concat!(env!("CARGO_MANIFEST_DIR"), "/../tollgate-inspect/tests/machines");
    ["debian-zen3", "firecracker-nested", "gvisor", "ubuntu-hyperv-docker"]
        .into_iter()
        .map(move |name| (name, format!("{trees}/{name}")))
}

#[test]
fn every_machine_is_on_one_screen() {
    let home = Home::new();
    let here = home.output(["inspect"]);
    let machines = captured().map(|(name, tree)| (name, home.output(["inspect", "--from", &tree])));
    for (name, text) in machines.chain([("this machine", here)]) {
        assert!((15..=43).contains(&text.lines().count()), "{name}: {} lines:\n{text}", text.lines().count());
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
        let more = "More          --all shows every fact, --affects BOUNDARY those of one boundary";
        assert_eq!(text.lines().last(), Some(more), "{name}: {text}");
        // The rows depend on the known facts.
        if name == "this machine" {
            continue;
        }
        for label in
            ["Processor ", "Caches ", "Memory ", "Kernel ", "Entry ", "Hypervisor ", "Clocks ", "Unknown "]
        {
            assert_eq!(
                text.lines().filter(|line| line.starts_with(label)).count(),
                1,
                "{name}: {label}\n{text}"
            );
        }
    }
}

#[test]
fn one_boundary_has_its_facts_alone() {
    let home = Home::new();
    let (_, tree) = captured().last().expect("a tree");
    let affects = |boundary: &str| {
        home.json(["inspect", "--from", &tree, "--format", "json", "--affects", boundary])["facts"].clone()
    };
    let all = home.json(["inspect", "--from", &tree, "--format", "json"])["facts"].clone();
    let of_entry = affects("kernel-entry");
    assert_eq!(affects("Kernel entry"), of_entry);
    let (all, of_entry) = (all.as_object().expect("facts"), of_entry.as_object().expect("facts").clone());
    assert!(of_entry.contains_key("mitigation.meltdown") && !of_entry.contains_key("memory.thp"));
    for (name, fact) in all {
        let boundaries =
            fact["affects"].as_str().and_then(|effect| Some(effect.split_once(": ")?.0)).unwrap_or("");
        let words = boundaries.replace(" and ", ", ");
        let is_meant = words.split(", ").any(|boundary| boundary == "kernel entry");
        assert_eq!(of_entry.contains_key(name), is_meant, "{name}: {boundaries}");
    }
    let mut offered = home.tollgate(["--", "tollgate", "inspect", "--affects", "kernel-e"]);
    offered.env("TOLLGATE_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "3").env("_CLAP_IFS", "\n");
    let offered = offered.assert().success().get_output().stdout.clone();
    assert_eq!(String::from_utf8_lossy(&offered).trim(), "kernel-entry");
}

#[test]
fn only_what_is_asked_for() {
    let home = Home::new();
    let of = |patterns: &[&str]| {
        let only = patterns.iter().flat_map(|pattern| ["--only", pattern]);
        names(&home.json(["inspect", "--format", "json"].into_iter().chain(only)))
    };
    assert_eq!(of(&["kernel.release"]), ["kernel.release"]);
    assert!(of(&["cpu"]).iter().all(|name| name.starts_with("cpu.")));
    assert!(of(&["cpu", "caches"]).iter().any(|name| name.starts_with("cache")));
    assert!(of(&["*.meltdown"]).iter().eq(["mitigation.meltdown"]));
    assert_eq!(of(&["load"]), ["load"]);
    let text = home.output(["inspect", "--only", "kernel.release"]);
    assert!(text.starts_with("kernel\n  kernel.release"), "{text}");
}

#[test]
fn a_capture_says_the_same_elsewhere() {
    let home = Home::new();
    let tree = home.path().join("tree");
    let named = tree.to_str().expect("text");
    let shown = screen(&home, ["inspect", "--capture", "tree"]);
    // The number of files depends on the machine.
    insta::assert_snapshot!("a-capture", words(part(&shown, "`tollgate", "\0")));
    let there = home.json(["inspect", "--format", "json", "--from", named]);
    assert_eq!(there["from"], named);
    let here = home.json(["inspect", "--format", "json"]);
    assert_eq!(here["environment"], there["environment"]);
    let mut unequal = differing(&here, &there);
    // Programs that others load and files that they open are facts of a moment: each fact is equal in one capture at least.
    for tree in ["tree2", "tree3", "tree4", "tree5", "tree6"] {
        if unequal.is_empty() {
            break;
        }
        home.output(["inspect", "--capture", tree]);
        let there = home.json(["inspect", "--format", "json", "--from", tree]);
        let still = differing(&home.json(["inspect", "--format", "json"]), &there);
        unequal.retain(|name| still.contains(name));
        fs::remove_dir_all(home.path().join(tree)).expect("removed");
    }
    assert_eq!(unequal, Vec::<String>::new());
    assert_eq!(
        home.refusal(["inspect", "--capture", named]),
        format!("--capture: {named} already exists and is not empty; name a new directory")
    );
    let left = fs::read_dir(home.path()).expect("a directory").count();
    assert_eq!(left, 1, "only the tree");
}

/// Returns the names of facts that are not the same, but for those that always change.
fn differing(here: &Value, there: &Value) -> Vec<String> {
    let facts = here["facts"].as_object().expect("facts").iter();
    let differ = facts.filter(|(name, fact)| **fact != there["facts"][name.as_str()]);
    let names = differ.map(|(name, _)| name.clone());
    names.filter(|name| !["uptime", "files.free"].contains(&name.as_str())).collect()
}

#[test]
fn no_variable_of_the_environment_is_captured() {
    const SECRET: &str = "the-secret-of-this-test";
    let home = Home::new();
    let tree = home.path().join("tree");
    home.tollgate(["inspect", "--capture", tree.to_str().expect("text")])
        .env("TOKEN", SECRET)
        .env("container", "made-up")
        .assert()
        .success();
    let output = Command::new("grep").args(["-r", "-a", SECRET]).arg(&tree).output().expect("grep");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    if let Ok(environ) = fs::read(tree.join("proc/self/environ")) {
        assert_eq!(String::from_utf8_lossy(&environ), "container=made-up\0");
    }
}

#[test]
fn a_capture_that_cannot_be_written_leaves_nothing() {
    let home = Home::new();
    let script = format!("ulimit -f 0; exec '{}' inspect --capture tree", common::program().display());
    let output = Command::new("sh").args(["-c", &script]).current_dir(home.path()).output().expect("sh");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(one_line(&output.stderr), "--capture: tree cannot be written: File too large");
    assert_eq!(fs::read_dir(home.path()).expect("a directory").count(), 0);
}

#[test]
fn a_tree_from_elsewhere_leads_nowhere() {
    let home = Home::new();
    let tree = home.path().join("tree");
    fs::create_dir_all(tree.join("proc/sys/kernel")).expect("made");
    fs::create_dir_all(tree.join("proc/self")).expect("made");
    fs::write(home.path().join("secret"), "outside").expect("written");
    symlink(home.path().join("secret"), tree.join("proc/sys/kernel/osrelease")).expect("linked");
    symlink("../../secret", tree.join("proc/cmdline")).expect("linked");
    symlink("/proc/self/environ", tree.join("proc/self/environ")).expect("linked");
    symlink("/", tree.join("sys")).expect("linked");
    fs::write(tree.join("proc/version"), vec![b'x'; 3 << 20]).expect("written");
    fs::write(tree.join("proc/loadavg"), "\u{1b}]0;title\u{7} \u{202e}").expect("written");
    let named = tree.to_str().expect("text");
    let text =
        home.output(["inspect", "--from", named]) + &home.output(["inspect", "--all", "--from", named]);
    assert!(!text.contains("outside") && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
    let document = home.json(["inspect", "--format", "json", "--from", named]);
    let why = |name: &str| document["facts"][name]["why"].as_str().expect("a reason").to_owned();
    assert!(why("kernel.release").starts_with("unreadable: /proc/version: larger than"));
    assert!(why("kernel.command_line").starts_with("absent"), "{}", why("kernel.command_line"));
    assert!(why("container.environment").starts_with("unreadable"), "a link to itself, inside");
}
