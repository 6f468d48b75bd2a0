//! `tollgate decode`: bytes, pasted text, and this machine.

mod common;

use std::process::Stdio;

use common::Home;
use serde_json::Value;

/// Published examples of kernels, debuggers and manuals, with their meaning: the same file that the library's own test reads.
const PUBLISHED: &str = include_str!("../../tollgate-x86/tests/published.json");

/// The session of the article on Windows' system calls, all three systems of it.
const WINDOWS: &str = include_str!("../../tollgate-dump/tests/dumps/kd-three-systems.txt");

fn published(kinds: &[&str]) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(PUBLISHED).expect("a list");
    all.into_iter().filter(|vector| kinds.contains(&vector["kind"].as_str().expect("a kind"))).collect()
}

/// Every field of `expected` is in `found` with the same value; texts are compared up to a remark behind the value.
fn holds(found: &Value, expected: &Value, id: &Value) {
    for (name, value) in expected.as_object().expect("fields") {
        if name == "article_error" {
            continue;
        }
        let of_vector = value
            .as_str()
            .map_or(value.clone(), |text| Value::from(text.split(" (").next().expect("a first part")));
        assert_eq!(found[name], of_vector, "{id}: {name} of {found}");
    }
}

#[test]
fn everything_published_decodes_field_by_field() {
    let home = Home::new();
    let vectors = published(&["gdt8", "gdt16", "gate32", "gate64", "tss64"]);
    assert!(vectors.len() >= 50, "{}", vectors.len());
    for vector in vectors {
        let kind = vector["kind"].as_str().expect("a kind");
        let bytes = vector["bytes"].as_str().expect("bytes");
        let document = home.json(["decode", "--as", kind, "--format", "json", bytes]);
        assert_eq!(document["kind"], kind);
        assert_eq!(document["bytes"], bytes);
        holds(&document["decoded"], &vector["decoded"], &vector["id"]);
        if let Some(flags) = vector["dg_flags"].as_str() {
            assert_eq!(document["dg_flags"], flags, "{}", vector["id"]);
        }
    }
    for vector in published(&["msr"]) {
        let words = ["msr", "value"].map(|name| vector[name].as_str().expect("a number"));
        let document = home.json(["decode", "--as", "msr", "--format", "json", words[0], words[1]]);
        holds(&document["decoded"], &vector["decoded"], &vector["id"]);
    }
    for vector in published(&["lar_lsl"]) {
        let lar = vector["lar"].as_str().expect("a number");
        let document = home.json(["decode", "--as", "lar_lsl", "--format", "json", lar]);
        holds(&document["decoded"], &vector["decoded"], &vector["id"]);
    }
}

#[test]
fn the_published_session_gives_the_walk_of_int_2e() {
    let home = Home::new();
    let file = home.file("session.txt", WINDOWS);
    let document = home.json(["decode", "--format", "json", &file]);
    assert_eq!(document["kind"], "session");
    let systems = document["systems"].as_array().expect("a list");
    assert_eq!(systems.len(), 3);
    let modes: Vec<_> = systems.iter().map(|system| &system["mode"]).collect();
    assert_eq!(modes, [32, 32, 64]);
    let walk = |system: &Value, entry: &str, vendor: &str| -> Value {
        let walks = system["readings"][0]["walks"].as_array().expect("a list").clone();
        let is_it =
            |walk: &Value| walk["entry"] == entry && (walk["vendor"].is_null() || walk["vendor"] == vendor);
        walks.into_iter().find(is_it).expect(entry)
    };
    let int = walk(&systems[0], "int 2e", "intel");
    assert_eq!(int["crosses"], true, "{int}");
    // The gate, its privilege level, the new stack and where each value is from; in this order.
    in_order(
        &int,
        &[
            "8003f570",
            "808655cd",
            "DPL 3 >= CPL 3",
            "80042008",
            "80873c00",
            "80042004",
            "push SS",
            "EIP 808655cd",
        ],
    );
    let sysenter = walk(&systems[1], "sysenter", "intel");
    assert_eq!(sysenter["crosses"], true, "{sysenter}");
    in_order(&sysenter, &["0008", "f7a34000"]);
    in_order(&sysenter, &["80865710"]);
    let syscall = walk(&systems[2], "syscall", "amd");
    assert_eq!(syscall["crosses"], true, "{syscall}");
    in_order(&syscall, &["fffff80001024040"]);
}

/// The steps of a walk contain the texts one after the other.
fn in_order(walk: &Value, texts: &[&str]) {
    let steps: Vec<&str> =
        walk["steps"].as_array().expect("a list").iter().map(|step| step.as_str().expect("a text")).collect();
    let mut rest = steps.join("\n");
    for text in texts {
        let at = rest.find(text);
        assert!(at.is_some(), "{text} in {}", steps.join("\n"));
        rest = rest.split_off(at.map_or(0, |at| at + text.len()));
    }
}

#[test]
fn makers_differ_where_their_manuals_do() {
    let home = Home::new();
    let msrs = "msr[c0000080] = 00000000:00000d01\nmsr[c0000081] = 00230010:00000000\nmsr[c0000082] = ffffffff:81000080\n\
                msr[c0000083] = ffffffff:81000100\nmsr[174] = 00000000:00000010\nmsr[175] = ffffffff:82000000\n\
                msr[176] = ffffffff:81000200\n";
    let file = home.file("msrs.txt", msrs);
    let of = |vendor: &str| {
        let document = home.json(["decode", "--mode", "64", "--vendor", vendor, "--format", "json", &file]);
        let walks = document["systems"][0]["readings"][0]["walks"].as_array().expect("a list").clone();
        let find = |entry: &str, from: &str| {
            let is_it = |walk: &&Value| walk["entry"] == entry && walk["from"] == from;
            walks.iter().find(is_it).expect(entry)["crosses"].clone()
        };
        [
            find("syscall", "64-bit mode"),
            find("syscall", "compatibility mode"),
            find("sysenter", "compatibility mode"),
        ]
    };
    assert_eq!(of("intel"), [true, false, true]);
    assert_eq!(of("amd"), [true, true, false]);
}

/// The two makers' manuals, SYSRET: Intel's faults before it leaves ring 0, AMD's after.
#[test]
fn a_return_to_no_address_faults_where_the_maker_says() {
    let home = Home::new();
    let file = home.file("sysret.txt", "msr[c0000080] = 00000000:00000d01\nmsr[c0000081] = 00230010:00000000\nrcx=8000000000000000\nr11=0000000000000202\n");
    let document = home.json(["decode", "--mode", "64", "--walk", "sysret", "--format", "json", &file]);
    let walks = document["systems"][0]["readings"][0]["walks"].as_array().expect("a list");
    let outcome = |vendor: &str| {
        let walk = walks.iter().find(|walk| walk["vendor"] == vendor).expect(vendor);
        walk["outcome"].as_str().expect("a text").to_owned()
    };
    assert!(outcome("intel").contains("#GP") && outcome("intel").contains("ring 0"), "{}", outcome("intel"));
    assert!(outcome("amd").contains("#GP") && outcome("amd").contains("ring 3"), "{}", outcome("amd"));
}

#[test]
fn what_the_article_has_wrong_is_put_right() {
    let home = Home::new();
    let file = home.file("session.txt", WINDOWS);
    let text = home.output(["decode", &file]).replace('\n', " ");
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    for shown in [
        "Selector 0028 is entry 5 of the GDT and not the 28th",
        "INT copies no parameters",
        "go to the new ring's stack",
        "SYSCALL clears the flags that are set in FMASK, TF, IF, DF, NT, RF",
        "L=1 is 64-bit mode. Compatibility mode is long mode with L=0",
        "SYSENTER loads the stack pointer from an MSR and saves nothing",
    ] {
        assert!(text.contains(shown), "{shown}\n{text}");
    }
}

#[test]
fn both_readings_are_shown_where_the_width_is_unknown() {
    let home = Home::new();
    let tss = "67008020d58b000100f8ffff00000000";
    let document = home.json(["decode", "--format", "json", tss]);
    let modes: Vec<_> =
        document["readings"].as_array().expect("a list").iter().map(|it| it["mode"].clone()).collect();
    assert_eq!(modes, [32, 64]);
    assert_eq!(document["readings"][0]["items"][0]["decoded"]["base"], "0x1d52080");
    assert_eq!(document["readings"][1]["items"][0]["decoded"]["base"], "0xfffff80001d52080");
    // Outside long mode L is reserved.
    let long = format!("ffff0000009baf00{tss}");
    let document = home.json(["decode", "--format", "json", &long]);
    assert_eq!(document["readings"].as_array().map(Vec::len), Some(1), "{document}");
    assert_eq!(document["readings"][0]["items"][1]["decoded"]["base"], "0xfffff80001d52080");
    let chosen = home.json(["decode", "--mode", "64", "--format", "json", tss]);
    assert_eq!(chosen["readings"].as_array().map(Vec::len), Some(1));
    let text = home.output(["decode", tss]);
    assert!(text.contains("32-bit TSS, busy") && text.contains("64-bit TSS, busy"), "{text}");
    assert!(text.contains("--mode 32 or 64"), "{text}");
}

#[test]
fn bytes_of_unknown_meaning_are_read_as_entries() {
    let home = Home::new();
    let file = home.file("db.txt", "kd> db 8003f570 L18\n8003f570  cd 55 08 00 00 ee 86 80-8f 8c 08 00 00 8e 86 80  .U..............\n8003f580  10 4c 08 00 00 8e 86 80                          .L......\n");
    let document = home.json(["decode", "--format", "json", &file]);
    let loose = &document["systems"][0]["readings"][0]["loose"];
    assert_eq!(loose.as_array().map(Vec::len), Some(1), "{loose}");
    assert_eq!(loose[0]["address"], "0x8003f570");
    let kinds: Vec<_> =
        loose[0]["items"].as_array().expect("a list").iter().map(|it| it["kind"].clone()).collect();
    assert_eq!(kinds, ["gate32", "gate32", "gate32"]);
    assert_eq!(loose[0]["items"][0]["decoded"]["off"], "0x808655cd");
    let text = home.output(["decode", &file]);
    assert!(text.contains("Bytes at 8003f570") && text.contains("0008:808655cd"), "{text}");
}

#[test]
fn a_row_that_went_wrong_is_named_beside_what_was_read() {
    let home = Home::new();
    let odd = home.file("odd.txt", "kd> db 8003f570\n8003f570  cd 55 08 00 00 ee 86 8\n");
    let text = home.output(["decode", &odd]);
    assert!(text.contains("! Line 2, read as db: "), "{text}");
    assert!(text.contains("7 bytes at the end are too few for one more"), "{text}");
}

#[test]
fn standard_input_is_read_where_nothing_is_named() {
    let home = Home::new();
    let mut command = home.tollgate(["decode", "--as", "gdt8", "--format", "json"]);
    let output =
        command.write_stdin("ff ff 00 00 00 9b cf 00\r\n").assert().success().get_output().stdout.clone();
    let document: Value = serde_json::from_slice(&output).expect("JSON");
    assert_eq!(document["decoded"]["eff"], "0xffffffff");
}

#[test]
fn wrong_input_is_one_sentence_with_its_position() {
    let home = Home::new();
    let nothing = home.file("nothing.txt", "これは何でもない\n");
    for (arguments, shown) in [
        (vec!["decode", "--as", "gdt8", "ffff0000009bcf"], "7 bytes"),
        (vec!["decode", "--as", "gdt8", "ffff0000009bcf0"], "digits"),
        (vec!["decode", "--as", "gate64", "cd55080000ee8680"], "one takes 16"),
        (vec!["decode", "--as", "msr", "c0000081"], "belong together"),
        (vec!["decode", "--as", "msr", "10 0"], "no part in kernel entry"),
        (vec!["decode", "--as", "nonsense", "00"], "none of gdt8"),
        (vec!["decode", "--walk", "int:100", "00"], "int:VECTOR"),
        (vec!["decode", "--mode", "16", "00"], "neither 32 nor 64"),
        (vec!["decode", "no-such-file.txt"], "nor a file"),
        (vec!["decode", &nothing], "nothing to decode"),
        (vec!["decode", "--live", "00"], "cannot be used with"),
    ] {
        let refusal = home.refusal(arguments.iter().copied());
        assert!(refusal.contains(shown), "{arguments:?}: {refusal}");
    }
}

#[test]
fn this_machine_shows_what_ring_3_runs_in() {
    let home = Home::new();
    let document = home.json(["decode", "--live", "--format", "json"]);
    if !document["ring3"]["unknown"].is_null() {
        return println!("skipped: {}", document["ring3"]["unknown"]);
    }
    let selectors = document["ring3"]["selectors"].as_array().expect("a list");
    let code = selectors.iter().find(|it| it["selector"] == document["ring3"]["loaded"]["cs"]).expect("CS");
    assert_eq!([&code["decoded"]["l"], &code["decoded"]["dpl"], &code["decoded"]["p"]], [1, 3, 1]);
    assert_eq!(document["mechanisms"][0]["offered"]["value"], true, "{}", document["mechanisms"][0]);
    let page_fault = &document["ring3"]["int"][14];
    assert_eq!((&page_fault["closed"], &page_fault["exception"]), (&Value::from(true), &Value::from(13)));
    let text = home.output(["decode", "--live"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(home.files().is_empty());
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let home = Home::new();
    let file = home.file("session.txt", WINDOWS);
    for columns in ["60", "80", "120"] {
        for arguments in [vec!["decode", &file], vec!["decode", "--explain", &file], vec!["decode", "--live"]]
        {
            let mut command = home.tollgate(arguments.iter().copied());
            let output = command.env("COLUMNS", columns).assert().success().get_output().stdout.clone();
            let text = String::from_utf8(output).expect("text");
            let wide = columns.parse::<usize>().expect("a number");
            let line = text.lines().find(|line| line.chars().count() > wide);
            assert_eq!(line, None, "{columns} {arguments:?}");
        }
    }
}

/// A debugger's output is not trusted: no part of it reaches the terminal as a command.
#[test]
fn what_a_text_says_cannot_command_the_terminal() {
    let home = Home::new();
    let file =
        home.file("evil.txt", "Windows \u{1b}[2J XP\nidtr=8003f400\nr idtl\nidtl=7ff \u{1b}]0;x\u{7}\n");
    let text = home.output(["decode", &file]);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
}

#[test]
fn a_large_text_is_read_in_one_go() {
    let home = Home::new();
    let mut text = "何かの説明。 Some prose that says nothing at all.\n".repeat(200_000);
    text.push_str(WINDOWS);
    let path = home.file("large.txt", &text);
    let document = home.json(["decode", "--format", "json", &path]);
    assert_eq!(document["systems"].as_array().map(Vec::len), Some(3));
}

/// Ends early where the reader does.
#[test]
fn a_closed_pipe_is_no_error() {
    let home = Home::new();
    let mut command = std::process::Command::new(home.tollgate(["decode"]).get_program());
    command.args(["decode", "--live"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("started");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ended");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
