//! `tollgate decode`: bytes, pasted text, and this machine.

use std::process::Stdio;

use crate::common;
use common::Home;
use serde_json::{Value, json};

/// Published examples of kernels, debuggers and manuals, with their meaning: the file that the library's own test reads.
const PUBLISHED: &str = include_str!("../../tollgate-x86/tests/published.json");

const WINDOWS: &str = include_str!("../../tollgate-dump/tests/dumps/kd-three-systems.txt");

/// The same systems in an article without a name in its headings.
const ARTICLE: &str = include_str!("../../tollgate-dump/tests/dumps/article-ja.txt");

fn published(kinds: &[&str]) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(PUBLISHED).expect("a list");
    all.into_iter().filter(|vector| kinds.contains(&vector["kind"].as_str().expect("a kind"))).collect()
}

/// Checks that `found` has every field of `expected` with the same value; texts are compared up to a remark after the value.
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

fn reading(home: &Home, file: &str) -> Value {
    home.json(["decode", "--format", "json", file])["systems"][0]["readings"][0].clone()
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
    // The gate, its privilege level, the new stack and the source of each value, in this order.
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

/// The walks of a system in a document, as `entry from mode vendor: crosses`.
fn walks(system: &Value) -> Vec<String> {
    let walks = system["readings"][0]["walks"].as_array().expect("a list");
    let text = |walk: &Value, name: &str| walk[name].as_str().unwrap_or("both").to_owned();
    let line = |walk: &Value| {
        let [entry, from, vendor] = ["entry", "from", "vendor"].map(|name| text(walk, name));
        format!("{entry} from {from}, {vendor}: {}", walk["crosses"])
    };
    walks.iter().map(line).collect()
}

#[test]
fn no_walk_goes_from_one_machine_of_an_article_to_another() {
    let home = Home::new();
    let file = home.file("article.txt", ARTICLE);
    let document = home.json(["decode", "--format", "json", &file]);
    let systems = document["systems"].as_array().expect("a list");
    let made: Vec<Vec<String>> = systems.iter().map(walks).collect();
    assert_eq!(
        made,
        [
            vec!["int 2e from protected mode, both: true"],
            vec!["sysenter from protected mode, both: true"],
            vec![
                "syscall from 64-bit mode, both: true",
                "syscall from compatibility mode, intel: false",
                "syscall from compatibility mode, amd: true",
            ],
        ]
    );
    assert_eq!(systems[0]["apart"], Value::Null);
    let apart = "Kept apart from the text above: line 91 is a heading. It may be the same machine; no walk goes from one to \
                 the other. --one-machine joins them.";
    assert_eq!(systems[1]["apart"], apart);
    let text = home.output(["decode", &file]);
    for wrong in ["EIP 00000000", "STAR, is not known", "Bytes at"] {
        assert!(!text.contains(wrong), "{wrong} in {text}");
    }
    // If the caller says that all text is of one machine, only contradictions divide it.
    let whole = home.json(["decode", "--one-machine", "--format", "json", &file]);
    let whole = whole["systems"].as_array().expect("a list");
    assert_eq!(whole.iter().map(|system| system["mode"].clone()).collect::<Vec<_>>(), [32, 64]);
    assert_eq!(walks(&whole[0]).len(), 2, "{:?}", walks(&whole[0]));
}

/// STAR without an EIP in its low half does not enter anything outside long mode.
#[test]
fn a_system_call_without_an_entry_is_not_made_up() {
    let home = Home::new();
    let file = home.file("star.txt", "msr[c0000081] = 00230010:00000000\n");
    let document = home.json(["decode", "--mode", "32", "--format", "json", &file]);
    assert_eq!(walks(&document["systems"][0]), Vec::<String>::new());
    let file = home.file("k6.txt", "msr[c0000081] = 001b0008:80501234\n");
    let document = home.json(["decode", "--mode", "32", "--vendor", "amd", "--format", "json", &file]);
    assert_eq!(walks(&document["systems"][0]), ["syscall from protected mode, amd: true"]);
}

/// A small kernel's table, and its STAR: the order of its user segments is for SYSRET.
#[test]
fn a_swapped_gdt_is_told_with_its_fault() {
    let home = Home::new();
    let state = |user: &str| {
        format!(
            "gdtr=fffff80000b95000\ngdtl=27\n\
             fffff800`00b95000  00 00 00 00 00 00 00 00-ff ff 00 00 00 9b af 00\n\
             fffff800`00b95010  ff ff 00 00 00 93 cf 00-{user}\n\
             msr[c0000081] = 00130008`00000000\nmsr[c0000082] = fffff800`01024040\n\
             msr[c0000084] = 00000000`00000200\nrflags=0000000000000246\n"
        )
    };
    let swapped = state("ff ff 00 00 00 fb af 00\nfffff800`00b95020  ff ff 00 00 00 f3 cf 00");
    let right = state("ff ff 00 00 00 f3 cf 00\nfffff800`00b95020  ff ff 00 00 00 fb af 00");
    let of = |text: &str| reading(&home, &home.file("gdt.txt", text));
    let (right, wrong) = (of(&right), &of(&swapped)["star"]);
    assert_eq!((&right["star"]["fits"], &wrong["fits"]), (&true.into(), &false.into()));
    let sentences = [
        "SYSRET's SS is 001b, whose descriptor is 64-bit code, readable, accessed, ring 3: it has to be writable data of \
         ring 3.",
        "SYSRET's CS is 0023, whose descriptor is data, writable, accessed, ring 3: it has to be 64-bit code of ring 3.",
        "The two are swapped in the GDT: SYSRET takes data at bits 63 to 48 of STAR plus 8, and 64-bit code at plus 16, in \
         this order.",
        "SYSRET reads no descriptor, and the program runs on. The first interrupt that returns to it does: its IRETQ to \
         0023, with SS 001b, ends in #GP(0020), general protection, in ring 0, before any register was changed.",
    ];
    assert_eq!(wrong["sentences"], json!(sentences));
    // Only the flags in FMASK are cleared by it.
    let step = "IF cleared by MSR c0000084, FMASK, and RF by SYSCALL itself: RFLAGS 0000000000000046 (was 0000000000000246)";
    assert_eq!(right["walks"][0]["steps"][5], step);
}

#[test]
fn a_descriptor_as_one_number_is_offered() {
    let home = Home::new();
    let document = home.json(["decode", "--format", "json", "00cf9b000000ffff"]);
    let readings = document["readings"].as_array().expect("a list");
    let number = readings.iter().find(|it| it["order"] == "number").expect("a reading as a number");
    assert_eq!(number["items"][0]["bytes"], "ffff0000009bcf00");
    assert_eq!(number["items"][0]["dg_flags"], "00000c9b");
    let shown = |arguments: &[&str]| {
        let text = home.output([&["decode"], arguments].concat());
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let screen = [
        "sel      base  last offset  dpl",
        "     ff00009b     fcf00fff    0  reserved type, not present",
        "As numbers of eight bytes, the highest byte first",
        "sel      base  last offset  dpl",
        "     00000000     ffffffff    0  32-bit code, readable, accessed",
        "In memory order no entry would be present. With 0x before it a number is read as",
        "one.",
    ];
    assert_eq!(shown(&["00cf9b000000ffff"]), screen);
    assert_eq!(shown(&["--as", "gdt8", "00cf9b000000ffff"]), screen);
    assert_eq!(shown(&["--as", "gdt8", "ffff0000009bcf00"]), screen[3..5]);
    let plain = home.json(["decode", "--format", "json", "ffff0000009bcf00"]);
    assert!(
        plain["readings"].as_array().expect("a list").iter().all(|it| it["order"] == "memory"),
        "{plain}"
    );
}

#[test]
fn a_table_of_256_gates_has_vectors_whatever_its_limit() {
    let home = Home::new();
    let bytes: String = (0..256_u64)
        .map(|vector| {
            let dpl = if vector == 0x2e { "ee" } else { "8e" };
            format!(
                "ffff8000`0001{:04x}  {vector:02x} 00 08 00 00 {dpl} 10 00-00 80 ff ff 00 00 00 00\n",
                vector * 16
            )
        })
        .collect();
    let file = home.file("idt.txt", format!("idtr:base=0xffff800000010000, limit=0xffff\n{bytes}"));
    let table = reading(&home, &file);
    let items = table["items"].as_array().expect("a list");
    assert_eq!(items.iter().filter(|item| !item["vector"].is_null()).count(), 256);
    assert_eq!(table["loose"], json!([]));
    let text = home.output(["decode", &file]);
    let shown = |text: &str| -> Vec<String> {
        let begins =
            |line: &&str| line.starts_with("idtr  ") || line.starts_with("int ") && line.contains(':');
        text.lines().filter(begins).map(str::to_owned).collect()
    };
    let idtr = "idtr      ffff800000010000 limit ffff  256 gates";
    let gate = "int 2e  0008:ffff80000010002e    3    0  64-bit interrupt gate";
    assert_eq!(shown(&text), [idtr, gate]);
    // Bochs' own listing, of version 2.7 and of earlier ones, which count 8 bytes per entry.
    for rows in [
        "IDT[0x80]=64-Bit Interrupt Gate target=0x0008:0xffff800000100010, DPL=3\n",
        "IDT[0x100]=32-Bit Interrupt Gate target=0x0008:0x00100010, DPL=3\n\
         IDT[0x101]=??? descriptor hi=0x00000000, lo=0xffff8000\n",
    ] {
        let text = format!("Interrupt Descriptor Table (base=0xffff800000010000, limit=65535):\n{rows}");
        let text = home.output(["decode", &home.file("list.txt", &text)]);
        let gate = "int 80  0008:ffff800000100010    3    0  64-bit interrupt gate";
        assert_eq!(shown(&text), [idtr, gate]);
    }
}

/// A program's code beside the tables is not decoded as if it were one.
#[test]
fn bytes_that_are_no_table_are_not_read_as_one() {
    let home = Home::new();
    let rows = "80042000  57 ff 75 08 00 3c 87 80-10 00 8b 45 10 89 85 78  W.u..<.....E...x\n\
                80042010  ff ff ff e8 a6 f7 ff ff-8b c8 33 f6 00 90 03 00  ..........3.....\n";
    let alone = reading(&home, &home.file("code.txt", rows));
    let loose = json!([{"address": "0x80042000", "order": "memory", "items": [], "bytes_left": 32}]);
    assert_eq!((&alone["loose"], &alone["items"]), (&loose, &json!([])));
    // Its descriptor makes these bytes a TSS.
    let named = format!("{rows}0028 80042000 000020ab TSS32 Busy 0 Nb By P  Nl 0000008b\n");
    let named = reading(&home, &home.file("tss.txt", &named));
    assert_eq!(named["loose"], json!([]));
    let tss = &named["items"][1];
    assert_eq!((&tss["kind"], &tss["decoded"]["esp0"]), (&"tss32".into(), &"0x80873c00".into()));
    let list = reading(&home, &home.file("idt.txt", "Dumping IDT:\n2e:\t808655cd nt!KiSystemService\n"));
    let symbol = "nt!KiSystemService";
    let handler = json!({
        "vector": "0x2e", "offset": "0x808655cd", "selector": null, "symbol": symbol, "stack": null, "what": ""
    });
    assert_eq!(list["handlers"], json!([handler]));
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

/// The vendors' manuals differ on SYSRET: Intel's processors fault before they leave ring 0, AMD's after.
#[test]
fn a_return_to_no_address_faults_where_the_maker_says() {
    let home = Home::new();
    let file = home.file("sysret.txt", "msr[c0000080] = 00000000:00000d01\nmsr[c0000081] = 00230010:00000000\nrcx=8000000000000000\nr11=0000000000000202\n");
    let document = home.json(["decode", "--mode", "64", "--walk", "sysret", "--format", "json", &file]);
    let walks = document["systems"][0]["readings"][0]["walks"].as_array().expect("a list");
    let outcome = |vendor: &str| {
        let walk = walks.iter().find(|walk| walk["vendor"] == vendor).expect(vendor);
        walk["outcome"].clone()
    };
    let fault = "#GP(0000), general protection, in ring";
    assert_eq!(outcome("intel"), format!("{fault} 0, before any register was changed"));
    assert_eq!(outcome("amd"), format!("{fault} 3, after the crossing"));
}

#[test]
fn what_the_article_has_wrong_is_put_right() {
    let home = Home::new();
    let file = home.file("session.txt", WINDOWS);
    let document = home.json(["decode", "--format", "json", &file]);
    let systems = document["systems"].as_array().expect("a list").iter();
    let remarks = systems.flat_map(|system| system["readings"][0]["remarks"].as_array().expect("a list"));
    let remarks: Vec<&str> = remarks.map(|remark| remark.as_str().expect("a text")).collect();
    insta::assert_snapshot!(remarks.join("\n"));
    // The screen has all of them, but shorter lines.
    let text = home.output(["decode", &file]).split_whitespace().collect::<Vec<_>>().join(" ");
    for remark in remarks {
        assert!(text.contains(&format!("- {remark}")), "{remark}\n{text}");
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
    let screen = "As a table of 32-bit entries
sel      base  last offset  dpl
     01d52080     00000067    0  32-bit TSS, busy
     0000ffff     0000f800    0  reserved type, not present

As a table of 64-bit entries
sel              base  last offset  dpl
     fffff80001d52080     00000067    0  64-bit TSS, busy

The bytes do not show which of the two applies; choose with --mode 32 or 64.
";
    assert_eq!(home.output(["decode", tss]), screen);
}

#[test]
fn bytes_of_unknown_meaning_are_read_as_entries() {
    let home = Home::new();
    let file = home.file("db.txt", "kd> db 8003f570 L18\n8003f570  cd 55 08 00 00 ee 86 80-8f 8c 08 00 00 8e 86 80  .U..............\n8003f580  10 4c 08 00 00 8e 86 80                          .L......\n");
    let loose = &reading(&home, &file)["loose"];
    assert_eq!(loose.as_array().map(Vec::len), Some(1), "{loose}");
    assert_eq!(loose[0]["address"], "0x8003f570");
    let kinds: Vec<_> =
        loose[0]["items"].as_array().expect("a list").iter().map(|it| it["kind"].clone()).collect();
    assert_eq!(kinds, ["gate32", "gate32", "gate32"]);
    assert_eq!(loose[0]["items"][0]["decoded"]["off"], "0x808655cd");
    let text = home.output(["decode", &file]);
    let lines: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("Bytes at")).collect();
    assert_eq!(lines[0], "Bytes at 8003f570, read as the entries of a table");
    assert_eq!(lines[2], "    0008:808655cd    3       32-bit interrupt gate");
}

#[test]
fn a_row_that_went_wrong_is_named_beside_what_was_read() {
    let home = Home::new();
    let odd = home.file("odd.txt", "kd> db 8003f570\n8003f570  cd 55 08 00 00 ee 86 8\n");
    let text = home.output(["decode", &odd]);
    let end = "Bytes at 8003f570, read as the entries of a table\n7 bytes at the end are too few for one more.\n\n\
               ! Line 2, read as db: the row ends with \"8\"; its words have 2 digits.\n";
    assert!(text.ends_with(end), "{text}");
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
    for (arguments, said) in [
        (
            ["--as", "gdt8", "ffff0000009bcf"].as_slice(),
            "gdt8: 7 bytes are not a whole number of them; one takes 8",
        ),
        (&["--as", "gdt8", "ffff0000009bcf0"], "line 1: ffff0000009bcf0 has 15 digits; a byte takes two"),
        (
            &["--as", "gate64", "cd55080000ee8680"],
            "gate64: 8 bytes are not a whole number of them; one takes 16",
        ),
        (
            &["--as", "msr", "c0000081"],
            "msr: a register's number and its value belong together, such as c0000081 0023001000000000",
        ),
        (&["--mode", "16", "00"], "invalid value '16' for '--mode <32|64>': it is neither 32 nor 64"),
        (
            &["no-such-file.txt"],
            "no-such-file.txt: neither bytes in hexadecimal, such as ffff0000009bcf00, nor a file that exists",
        ),
        (
            &[nothing.as_str()],
            "nothing to decode in 1 line: no bytes, tables, registers or MSRs in a known form (`--help` lists the forms under --as)",
        ),
        (&["--live", "00"], "the argument '--live' cannot be used with '[INPUT]...'"),
    ] {
        assert_eq!(home.refusal([&["decode"], arguments].concat()), said);
    }
    // Everything follows after these.
    for (arguments, begin) in [
        (["--as", "msr", "10 0"], "msr: 10 is not used in kernel entry; these are: 174, "),
        (["--as", "nonsense", "00"], "invalid value 'nonsense' for '--as <KIND>': it is not one of gdt8, "),
        (["--walk", "int:100", "00"], "invalid value 'int:100' for '--walk <ENTRY>': it is none of int:VECTOR "),
    ] {
        let refusal = home.refusal([&["decode"], arguments.as_slice()].concat());
        assert!(refusal.starts_with(begin), "{refusal}");
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
    let file = home.file("session.txt", format!("{WINDOWS}{ARTICLE}"));
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
