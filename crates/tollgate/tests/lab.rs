//! `tollgate lab`: the guest on every engine, its explanations, and its leftovers.

#[path = "lab/boots.rs"]
mod boots;
#[path = "lab/locks.rs"]
mod locks;
#[path = "lab/programs.rs"]
mod programs;

use crate::common;
use common::Home;
use serde_json::Value;
use tollgate_lab::Qemu;
use tollgate_lab::guest::{EXPERIMENTS, Experiment};

fn experiments(document: &Value) -> &Vec<Value> {
    document["experiments"].as_array().expect("a list")
}

fn named<'a>(document: &'a Value, name: &str) -> &'a Value {
    experiments(document).iter().find(|experiment| experiment["name"] == name).expect(name)
}

fn has_qemu() -> bool {
    match Qemu::find() {
        Ok(_) => true,
        Err(why) => {
            println!("skipped: {why}");
            false
        }
    }
}

#[test]
fn every_experiment_has_a_row() {
    let home = Home::new();
    let document = home.json(["lab", "--on", "interpreter", "--format", "json"]);
    let measured: Vec<&Experiment> = EXPERIMENTS.iter().filter(|it| it.is_measured()).collect();
    assert_eq!(experiments(&document).len(), measured.len());
    for (row, experiment) in experiments(&document).iter().zip(measured) {
        assert_eq!(row["name"], experiment.name);
        match row["status"].as_str().expect("a status") {
            "done" => assert!(row["per_operation"].as_f64().is_some_and(|it| it >= 1.0), "{row}"),
            "refused" => assert_eq!(row["as_expected"], true, "{row}"),
            other => assert_eq!(other, "lacking", "{row}"),
        }
    }
    assert_eq!(document["unit"], "instructions");
    assert_eq!(named(&document, "int")["per_operation"], 3.0);
    assert_eq!(home.files().len(), 1, "the run is kept");
}

#[test]
fn a_group_stands_for_its_experiments() {
    let home = Home::new();
    let groups = |names: &[&str]| {
        let all = ["lab", "--on", "interpreter", "--json"].into_iter().chain(names.iter().copied());
        let document = home.json(all);
        let groups = experiments(&document).iter().map(|one| one["group"].as_str().expect("text").to_owned());
        groups.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(groups(&["traps"]).len(), 1);
    assert_eq!(groups(&["traps", "pieces"]).len(), 2);
    home.output(["lab", "traps", "--image", "traps.bin"]);
}

#[test]
fn two_runs_of_the_interpreter_are_identical() {
    let home = Home::new();
    let run = |vendor| home.output(["lab", "--on", "interpreter", "--vendor", vendor, "--format", "json"]);
    assert_eq!(run("amd"), run("amd"));
    assert_ne!(run("amd"), run("intel"));
}

#[test]
fn qemu_and_the_interpreter_count_the_same() {
    if !has_qemu() {
        return;
    }
    let home = Home::new();
    for vendor in ["intel", "amd"] {
        let run = |on| home.json(["lab", "--on", on, "--vendor", vendor, "--format", "json"]);
        let (qemu, own) = (run("qemu"), run("interpreter"));
        let mut agreed = 0;
        for (theirs, ours) in experiments(&qemu).iter().zip(experiments(&own)) {
            let status = theirs["status"].as_str().expect("a status");
            // Features that QEMU's processor lacks, and its known defects, are named.
            if ["lacking", "defect"].contains(&status) {
                assert!(theirs["why"].as_str().is_some_and(|why| !why.is_empty()), "{theirs}");
                continue;
            }
            for field in ["name", "status", "per_operation", "rounds", "as_expected"] {
                assert_eq!(theirs[field], ours[field], "{vendor} {}", ours["name"]);
            }
            agreed += 1;
        }
        assert!(agreed >= 25, "{agreed}");
        assert_eq!(run("qemu"), qemu, "two runs are the same");
    }
}

#[test]
fn kvm_gives_a_estimate_or_says_why_not() {
    let home = Home::new();
    let output = home.tollgate(["lab", "--on", "kvm", "--format", "json"]).output().expect("started");
    if output.status.code() == Some(2) {
        return println!("skipped: {}", common::one_line(&output.stderr));
    }
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    if document["provenance"] == "kvm-emulated" {
        for row in experiments(&document) {
            assert!(row["per_operation"].is_null(), "an emulator's time: {row}");
            for round in row["rounds"].as_array().expect("a list") {
                assert!(round["ticks"].is_null(), "{row}");
            }
        }
        let text = home.output(["lab", "syscall", "--on", "kvm"]);
        let said = "Executed by KVM's emulator: its times are not latencies; ";
        assert!(text.lines().any(|line| line.starts_with(said)), "{text}");
    } else {
        assert!(named(&document, "syscall")["per_operation"].as_f64().is_some_and(|it| it > 1.0));
    }
}

#[test]
fn runs_are_kept_and_compared() {
    let home = Home::new();
    for label in ["one", "two"] {
        home.output(["lab", "int", "syscall", "--on", "interpreter", "--label", label]);
    }
    let document = home.json(["compare", "one", "two", "--format", "json"]);
    let rows = document["rows"].as_array().expect("a list").iter();
    let verdicts: Vec<_> = rows.map(|row| [&row["benchmark"], &row["verdict"]]).collect();
    assert_eq!(verdicts, [["lab/int", "same"], ["lab/syscall", "same"]]);
}

#[test]

fn what_the_kernel_sets_up_is_told_in_its_order() {
    let home = Home::new();
    let document = home.json(["lab", "int", "--explain", "boot", "--format", "json"]);
    assert_eq!(document[1]["experiment"], "int", "experiments follow");
    let writes = document[0]["writes"].as_array().expect("a list");
    let places: Vec<&str> = writes.iter().map(|it| it["place"].as_str().expect("a place")).collect();
    let at = |place: &str| places.iter().position(|it| it.contains(place)).expect(place);
    let order = ["CR4", "CR3", "EFER", "CR0", "GDTR", "GDT 28", "rsp0", "IDT 00", "IDTR", "LSTAR", "FMASK"];
    assert!(order.map(at).is_sorted(), "{places:?}");
    let star = &writes[at("STAR")]["otherwise"][0];
    assert_eq!(
        (&star["experiment"], &star["outcome"]),
        (&Value::from("wrong-gdt-order"), &Value::from("#GP(28) in ring 0, as the manual says"),)
    );

    let page = home.output(["lab", "--explain", "boot"]);
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    // The sample of docs/lab.md, except for line numbers.
    let bare = |line: &str| line.trim_start_matches(|it: char| it == ' ' || it.is_ascii_digit()).to_owned();
    let printed: Vec<String> = page.lines().map(bare).collect();
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab.md");
    let docs = std::fs::read_to_string(docs).expect("the page");
    let sample = docs.split_once("$ tollgate lab --explain boot\n").expect("the sample").1;
    let sample = sample.split_once("```").expect("its end").0;
    for line in sample.lines().filter(|line| *line != "…") {
        assert!(printed.contains(&bare(line)), "{line} is not in\n{page}");
    }
}

#[test]
fn what_is_not_walked_of_fred_and_of_shadow_stacks_is_said() {
    let home = Home::new();
    let tables = home.output(["lab", "--dump", "--on", "interpreter", "--out", "-"]);
    let walk = |cr4: u64, way: &str| {
        let file = home.file("tables.txt", format!("{tables}cr4={cr4:016x}\n"));
        let document = home.json(["decode", "--walk", way, "--format", "json", &file]);
        document["systems"][0]["readings"][0]["walks"][0].clone()
    };
    for way in ["int:80", "syscall"] {
        let shadow = walk(0x80_0020, way);
        let step = "CR4.CET is set: left out of the following are what is saved, pushed and checked of the shadow-stack pointer \
                    (SDM 1, \"Shadow stacks\") and the wait for ENDBRANCH (SDM 1, \"Indirect branch tracking\")";
        assert_eq!((&shadow["steps"][1], &shadow["crosses"]), (&step.into(), &true.into()));
        let fred = walk(0x1_0000_0020, way);
        let outcome = "not modelled: delivery by FRED, which does not use the interrupt descriptor table: it goes to the address \
                       in IA32_FRED_CONFIG, or 100h after it from ring 0, and ERETU or ERETS comes back";
        assert_eq!((&fred["outcome"], &fred["crosses"]), (&outcome.into(), &false.into()));
    }
}

#[test]
fn every_wrong_set_up_is_followed_to_its_fault() {
    let home = Home::new();
    for document in home.json(["lab", "wrong-*", "--explain", "--format", "json"]).as_array().expect("a list")
    {
        assert!(document["instructions"].as_array().is_some_and(|it| !it.is_empty()), "{document}");
        let ended = document["ended"].as_str().expect("a sentence");
        let said = "The operation ends here, on Intel as its manual says: #";
        assert!(ended.starts_with(said), "{}: {ended}", document["experiment"]);
    }
}

#[test]
fn the_guest_s_tables_are_read_back() {
    let home = Home::new();
    let text = home.output(["lab", "--dump", "--on", "interpreter", "--out", "-"]);
    let file = home.file("tables.txt", &text);
    let document = home.json(["decode", "--walk", "int:80", "--format", "json", &file]);
    let system = &document["systems"][0];
    assert_eq!(system["mode"], 64);
    let walk = &system["readings"][0]["walks"][0];
    assert_eq!((&walk["entry"], &walk["crosses"]), (&Value::from("int 80"), &Value::from(true)), "{walk}");
    let shown = home.json(["lab", "--dump", "--on", "interpreter", "--format", "json"]);
    assert_eq!(shown["systems"][0]["readings"][0]["items"], system["readings"][0]["items"]);
}

#[test]
fn an_image_is_written_and_its_records_are_read() {
    let home = Home::new();
    home.output(["lab", "int", "--image", "lab.bin"]);
    let image = std::fs::read(home.path().join("lab.bin")).expect("an image");
    let has_header = image[..8192].windows(4).any(|word| word == 0x1bad_b002_u32.to_le_bytes());
    assert!(has_header, "no header of multiboot");
    if !has_qemu() {
        return;
    }
    let output = std::process::Command::new("qemu-system-x86_64")
        .args([
            "-kernel",
            "lab.bin",
            "-nodefaults",
            "-display",
            "none",
            "-no-reboot",
            "-serial",
            "stdio",
            "-m",
            "16",
        ])
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-cpu", "max"])
        .current_dir(home.path())
        .output()
        .expect("started");
    std::fs::write(home.path().join("serial.txt"), output.stdout).expect("written");
    let document = home.json(["lab", "--read", "serial.txt", "--format", "json"]);
    assert_eq!(experiments(&document).len(), 1);
    assert_eq!(named(&document, "int")["status"], "done");
    assert!(document["provenance"].is_null());
    // Its engine must be named before it can become a run.
    let line = home.refusal(["lab", "--read", "serial.txt", "--label", "there"]);
    assert_eq!(line, "--from: the guest's ticks have no meaning without its engine; name it with --on");
    home.output(["lab", "--read", "serial.txt", "--on", "hardware", "--label", "there"]);
    let kept = home.json(["show", "there", "--format", "json"]);
    assert_eq!(kept["measurements"][0]["unit"], "cycles");
    assert_eq!(kept["measurements"][0]["provenance"], "hardware");
    assert!(kept["facts"].get("cpu.model").is_none(), "nothing is known of that machine");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let home = Home::new();
    for columns in ["60", "80", "120"] {
        let mut command = home.tollgate(["lab", "*", "--on", "interpreter"]);
        let output = command.env("COLUMNS", columns).assert().success().get_output().stdout.clone();
        let wide: usize = columns.parse().expect("a number");
        for line in String::from_utf8(output).expect("text").lines() {
            assert!(line.chars().count() <= wide, "{line}");
        }
    }
}
