//! `tollgate inspect kernel`: this machine's, and machines made up of a few files.

use crate::common;
use common::Home;
use common::text::{part, screen, words};
use serde_json::Value;

const CONFIG: &str =
    "CONFIG_RANDOMIZE_BASE=y\nCONFIG_PHYSICAL_START=0x1000000\nCONFIG_PHYSICAL_ALIGN=0x200000\n";

fn tree(home: &Home, text: &str) {
    home.file("tree/proc/sys/kernel/osrelease", "6.1.0\n");
    home.file("tree/boot/config-6.1.0", CONFIG);
    home.file("tree/proc/cmdline", "quiet\n");
    home.file("tree/proc/kallsyms", format!("{text} T _text\n"));
}

fn says(home: &Home) -> String {
    let text = screen(home, ["inspect", "kernel", "--from", "tree"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    words(part(&text, "", "\n\nevidence "))
}

fn conclusion(home: &Home) -> Value {
    home.json(["inspect", "kernel", "--from", "tree", "--format", "json"])
}

#[test]
fn a_kernel_at_its_link_address_is_not_moved_whatever_it_was_built_for() {
    let home = Home::new();
    tree(&home, "ffffffff81000000");
    let document = conclusion(&home);
    assert_eq!((&document["verdict"], &document["offset"]), (&"not_moved".into(), &"0x0".into()));
    let text = screen(&home, ["inspect", "kernel", "--from", "tree"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!("not-moved", text);
}

#[test]
fn a_moved_kernel_says_by_how_much() {
    let home = Home::new();
    tree(&home, "ffffffff9e000000");
    let document = conclusion(&home);
    assert_eq!((&document["verdict"], &document["offset"]), (&"moved".into(), &"0x1d000000".into()));
    assert_eq!(
        says(&home),
        "moved, by +0x1d000000 (464 MiB): it is not at its link address, 0xffffffff81000000 (/proc/kallsyms _text)"
    );
}

#[test]
fn zeros_are_no_answer_and_what_would_tell_is_said() {
    let home = Home::new();
    tree(&home, "0000000000000000");
    assert_eq!(conclusion(&home)["verdict"], "unknown");
    assert_eq!(
        says(&home),
        "inconclusive: whether the kernel was moved is unknown: nothing readable here shows where it is \
         - /proc/kallsyms shows zeros, which is \"not visible\" and not \"not moved\": it shows addresses to root if kernel.kptr_restrict is 0 or 1 \
         - it was built to move (CONFIG_RANDOMIZE_BASE=y); that alone does not show that it did"
    );
}

#[test]
fn every_piece_of_evidence_has_a_source_or_a_reason() {
    let home = Home::new();
    let here = home.json(["inspect", "kernel", "--format", "json"]);
    std::fs::create_dir_all(home.path().join("tree/proc")).expect("made");
    for document in [here, conclusion(&home)] {
        let evidence = document["evidence"].as_array().expect("a list");
        assert_eq!(evidence.len(), 10);
        for piece in evidence {
            let answered = match piece["status"].as_str() {
                Some("known") => piece["source"].as_str().is_some_and(|source| !source.is_empty()),
                Some("unknown") => piece["why"].as_str().is_some_and(|why| !why.is_empty()),
                _ => false,
            };
            assert!(answered, "{piece}");
        }
        assert!(
            ["moved", "not_moved", "unknown"].contains(&document["verdict"].as_str().expect("a verdict"))
        );
    }
}

#[test]
fn a_tree_that_is_none_is_refused() {
    let home = Home::new();
    home.file("a-file", "");
    let refused = |tree: &str| home.refusal(["inspect", "kernel", "--from", tree]);
    assert_eq!(refused("missing"), "--from: missing does not exist");
    assert_eq!(refused("a-file"), "--from: a-file is not a directory; a captured tree is one");
}

#[test]
fn what_a_tree_says_cannot_command_the_terminal() {
    let home = Home::new();
    tree(&home, "\u{1b}[2J");
    home.file("tree/proc/sys/kernel/osrelease", "6.1\u{1b}[31m\n");
    let text = home.output(["inspect", "kernel", "--from", "tree"]);
    assert!(!text.contains('\u{1b}'), "{text}");
}

/// The symbols of a running kernel, and the list of three lines that was made with its image.
fn tree_of_three_lines(home: &Home, release: Option<&str>, offset: u64) {
    const LINKED: [(u64, &str); 3] = [
        (0xffff_ffff_8123_4560, "T do_sys_open"),
        (0xffff_ffff_81a0_0280, "D sys_call_table"),
        (0xffff_ffff_8261_0900, "D init_task"),
    ];
    let lines = |offset: u64| -> String {
        LINKED.iter().map(|(address, name)| format!("{:016x} {name}\n", address + offset)).collect()
    };
    home.file("tree/proc/kallsyms", lines(offset));
    if let Some(release) = release {
        home.file("tree/proc/sys/kernel/osrelease", format!("{release}\n"));
    }
    home.file(&format!("tree/boot/System.map-{}", release.unwrap_or("of-the-day")), lines(0));
}

#[test]
fn one_symbol_at_run_time_and_at_link_time_proves_the_move() {
    for release in [Some("4.10.0-28-generic"), None] {
        let home = Home::new();
        tree_of_three_lines(&home, release, 0x3520_0000);
        let document = conclusion(&home);
        assert_eq!((&document["verdict"], &document["offset"]), (&"moved".into(), &"0x35200000".into()));
        let symbol = &document["evidence"][0];
        assert_eq!((&symbol["name"], &symbol["status"]), (&"symbol".into(), &"known".into()));
        let value = &symbol["value"];
        assert_eq!(value["name"], "do_sys_open");
        assert_eq!(
            (&value["now"], &value["linked"]),
            (&"0xffffffffb6434560".into(), &"0xffffffff81234560".into())
        );
        assert_eq!((&value["moved_by"], value["agree"].as_u64()), (&"+0x35200000".into(), Some(3)));
        // Nothing is at the usual address, which is reported if the actual one could not be read.
        let map = format!("/boot/System.map-{}", release.unwrap_or("of-the-day"));
        assert_eq!(
            says(&home),
            format!(
                "moved, by +0x35200000 (850 MiB): do_sys_open is not where it was linked to, 0xffffffff81234560 \
                 (/proc/kallsyms and {map})"
            )
        );
    }
    let home = Home::new();
    tree_of_three_lines(&home, Some("4.10.0-28-generic"), 0);
    assert_eq!(conclusion(&home)["verdict"], "not_moved");
}

#[test]
fn the_list_of_another_build_proves_nothing() {
    let home = Home::new();
    tree_of_three_lines(&home, None, 0x3520_0040);
    let document = conclusion(&home);
    assert_eq!(document["verdict"], "unknown");
    assert_eq!(
        document["evidence"][0]["why"],
        "unreadable: /boot/System.map-of-the-day: do_sys_open is not a multiple of 2 MiB from its address in /proc/kallsyms, as a moved kernel's is: the list is from another build"
    );
}

#[test]
fn symbols_have_their_addresses_now_and_as_linked_and_since_another_boot() {
    let home = Home::new();
    tree_of_three_lines(&home, Some("4.10.0"), 0x3520_0000);
    home.file("first/proc/kallsyms", "ffffffff9a034560 T do_sys_open\nffffffff9b000001 D init_task\n");
    let words =
        ["inspect", "kernel", "do_sys_open", "init_task", "sys_getpid", "--from", "tree", "--since", "first"];
    insta::assert_snapshot!("symbols", screen(&home, words));
    let [open, task, getpid] =
        [0, 1, 2].map(|at| home.json([&words[..], &["--json"]].concat())["symbols"][at].take());
    assert_eq!((&open["since"], &open["moved_by"]), (&"+0x1c400000".into(), &"+0x35200000".into()));
    // Not a multiple of 2 MiB.
    assert_eq!((&task["before"], &task["since"]), (&"0xffffffff9b000001".into(), &Value::Null));
    assert_eq!((&getpid["now"], &getpid["renamed"]), (&Value::Null, &Value::Null));
    home.file("tree/proc/kallsyms", "ffffffffb6000010 T __x64_sys_getpid\n");
    let renamed = home.json(words.into_iter().chain(["--json"]))["symbols"][2]["renamed"].take();
    assert_eq!((&renamed["name"], &renamed["since"]), (&"__x64_sys_getpid".into(), &"4.17".into()));
}

#[test]
fn zeros_of_a_symbol_have_the_setting_that_made_them() {
    let home = Home::new();
    tree(&home, "0000000000000000");
    home.file("tree/proc/sys/kernel/kptr_restrict", "1\n");
    let symbol = home.json(["inspect", "kernel", "_text", "--from", "tree", "--json"])["symbols"][0].take();
    assert_eq!(
        symbol["now_why"],
        "refused: /proc/kallsyms shows zeros: kernel.kptr_restrict is 1, which shows them only to readers with CAP_SYSLOG"
    );
    home.file("tree/proc/kallsyms", "ffffffff81000000 T \u{1b}[2J_text\n");
    let text = home.output(["inspect", "kernel", "_text", "\u{1b}[2J", "--from", "tree"]);
    assert!(!text.contains('\u{1b}'), "{text}");
    assert_eq!(
        home.refusal(["inspect", "kernel", "--since", "tree"]),
        "the following required arguments were not provided: <SYMBOL>..."
    );
}
