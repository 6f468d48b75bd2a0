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
fn wrong_set_ups_are_refused_as_the_manuals_say() {
    let home = Home::new();
    for vendor in ["intel", "amd"] {
        let document =
            home.json(["lab", "wrong-*", "--on", "interpreter", "--vendor", vendor, "--format", "json"]);
        assert!(experiments(&document).len() >= 7);
        for row in experiments(&document) {
            assert_eq!(
                (&row["status"], &row["as_expected"]),
                (&Value::from("refused"), &Value::from(true)),
                "{row}"
            );
        }
        let fault = |name| {
            let fault = &named(&document, name)["fault"];
            ["vector", "error"].map(|field| fault[field].as_u64().expect("a number"))
        };
        assert_eq!(fault("wrong-gate-dpl"), [13, 0x82 * 8 + 2]);
        assert_eq!(fault("wrong-tss-limit"), [10, 0x40]);
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
fn a_crossing_is_explained_step_by_step() {
    let home = Home::new();
    let document = home.json(["lab", "--explain", "int", "--format", "json"]);
    let instructions = document[0]["instructions"].as_array().expect("a list");
    let texts: Vec<&str> = instructions.iter().map(|it| it["text"].as_str().expect("a text")).collect();
    assert_eq!(texts[..3], ["int 80h", "inc r15", "iretq"]);
    let rings: Vec<u64> = instructions.iter().map(|it| it["ring"].as_u64().expect("a ring")).collect();
    assert_eq!(rings[..4], [3, 0, 0, 3]);
    let steps = instructions[0]["steps"].as_array().expect("a list").iter();
    let steps: Vec<&str> = steps.map(|step| step.as_str().expect("a text")).collect();
    assert_eq!(steps[2], "DPL 3 >= CPL 3: an instruction may use the gate");
    // Addresses of the kernel follow after these.
    let begin: Vec<String> =
        steps[6..12].iter().map(|step| step.split(" 00").next().expect("words").to_owned()).collect();
    assert_eq!(begin, ["RSP0", "push SS", "push RSP", "push RFLAGS", "push CS", "push RIP"]);
    let flags = "RFLAGS 0000000000000046 (was 0000000000000246)";
    assert_eq!(steps[12], format!("TF, IF, NT, RF, VM cleared by the interrupt gate: {flags}"));
    let changes = instructions[0]["changes"].as_array().expect("a list").iter();
    assert_eq!(changes.map(|it| &it["register"]).collect::<Vec<_>>(), ["rsp", "rflags", "cs", "ss"]);
    let short = home.json(["lab", "--explain", "int", "--steps", "2", "--format", "json"]);
    assert_eq!(short[0]["instructions"].as_array().map(Vec::len), Some(2));
    for line in home.output(["lab", "--explain", "syscall-path"]).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn an_explanation_stops_at_the_fault() {
    let home = Home::new();
    let explain = |arguments: &[&str]| {
        let all: Vec<&str> =
            ["lab", "--format", "json", "--explain"].iter().chain(arguments).copied().collect();
        home.json(all)[0].clone()
    };
    let texts = |document: &Value| -> Vec<String> {
        let all = document["instructions"].as_array().expect("a list");
        all.iter().map(|it| it["text"].as_str().expect("a text").to_owned()).collect()
    };
    let swapped = explain(&["wrong-gdt-order"]);
    assert_eq!(texts(&swapped), ["syscall", "inc r15", "sysretq", "int 80h", "inc r15", "iretq"]);
    let before = "before any register was changed.";
    let ended = format!(
        "The operation ends here, on Intel as its manual says: #GP(0028), general protection, in ring 0, {before}"
    );
    assert_eq!(swapped["ended"], ended);
    let amd = explain(&["--vendor", "amd", "sysenter"]);
    assert_eq!(texts(&amd).last().map(String::as_str), Some("sysenter"));
    let ended = format!(
        "The operation ends here, on AMD as its manual says: #UD, invalid opcode, in ring 3, {before}"
    );
    assert_eq!(amd["ended"], ended);
    // A trap is the operation itself, and ends with it, not with the program.
    let trap = explain(&["page-fault"]);
    assert_eq!(trap["ended"], Value::Null);
    assert!(texts(&trap).last().expect("one").starts_with("jne"), "{:?}", texts(&trap));
    assert_eq!(texts(&trap).iter().filter(|text| *text == "iretq").count(), 1);
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
    let line = "boot is not an experiment; --explain boot shows what the kernel sets up";
    assert_eq!(home.refusal(["lab", "boot"]), line);
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
    let line = "invalid value 'eretu' for '--walk <ENTRY>': ERETU and ERETS return from what FRED delivers, which is not walked";
    assert_eq!(home.refusal(["decode", "--walk", "eretu", "tables.txt"]), line);
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
    for text in ["nothing of the guest\n", "SeaBIOS\ntg1 try 0 *00000000\n"] {
        let file = home.file("none.txt", text);
        let why = "it has no records of the guest (lines that begin with tg1)";
        assert_eq!(home.refusal(["lab", "--read", &file]), format!("--from: {file}: {why}"));
    }
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
fn wrong_usage_is_one_sentence() {
    let home = Home::new();
    for (mistyped, meant) in [
        ("sycall", "syscall"),
        ("Sysclal", "syscall"),
        ("page_fault", "page-fault"),
        ("int80", "int"),
        ("udd", "ud1"),
    ] {
        let line = format!("there is no experiment \"{mistyped}\"; did you mean {meant}?");
        assert_eq!(home.refusal(["lab", mistyped]), line);
    }
    for unlike in ["xyzzy", "foo"] {
        let line = format!("there is no experiment \"{unlike}\"; there are int, int-swapgs, ");
        assert!(home.refusal(["lab", unlike]).starts_with(&line));
    }
    home.output(["lab", "int", "--on", "Interpreter", "--vendor", "AMD"]);
    let on = "auto, kvm, qemu, qemu-kvm, interpreter, hardware";
    for (arguments, line) in [
        (
            ["--on", "qmeu"].as_slice(),
            &*format!("invalid value 'qmeu' for '--on <ON>' [possible values: {on}]; did you mean 'qemu'?"),
        ),
        (
            &["--on", "hardware"],
            "--on hardware: tollgate cannot start another machine; write an image with --image, boot it there, and show its output with --from",
        ),
        (&["--explain"], "the following required arguments were not provided: <EXPERIMENT>..."),
        (&["--read", "no-such-file"], "--from: no-such-file: No such file or directory"),
        (
            &["int", "--explain", "--until", "x"],
            "invalid value 'x' for '--until <ADDRESS>': it is not a hexadecimal address, such as 100540",
        ),
        (&["--image", "no/such/file"], "--image: no/such/file: No such file or directory"),
        (
            &["--image", "LAB.ISO"],
            "--image: LAB.ISO: the kernel is a file for GRUB, not a disk or CD image; write lab.bin, and make a CD from it with grub-mkrescue (docs/lab.md)",
        ),
    ] {
        assert_eq!(home.refusal([&["lab"], arguments].concat()), line);
    }
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
