//! The guest under QEMU's translator, as processors of both vendors. Without QEMU these tests say so and check nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tollgate_lab::guest::{
    Chosen, Command as Order, EXPERIMENTS, Ending, Expected, Experiment, Feature, Image, Outcome, Outcomes,
    Parameters, Serial,
};
use tollgate_x86::{
    Descriptor, DescriptorKind, Selector, Star, SysenterCs, Tss64, Vendor, WideDescriptor, WideGate,
};

const MODELS: [(Vendor, &str); 2] = [(Vendor::Intel, "Skylake-Client"), (Vendor::Amd, "EPYC")];

/// Returns the image's serial output on this processor model; `None` if QEMU is not installed.
fn run(parameters: &Parameters, model: &str) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("guest.bin");
    std::fs::write(&file, Image::new(parameters).bytes()).unwrap();
    let child = Command::new("qemu-system-x86_64")
        .args(["-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio", "-m", "16"])
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-accel", "tcg", "-icount", "shift=0"])
        .args(["-cpu", model, "-kernel"])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            eprintln!("skipped: qemu-system-x86_64 cannot be started: {error}");
            return None;
        }
    };
    let mut pipe = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        pipe.read_to_end(&mut said).unwrap();
        said
    });
    let deadline = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("QEMU did not end: {}", String::from_utf8_lossy(&reader.join().unwrap()));
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let said = reader.join().unwrap();
    // isa-debug-exit: (value << 1) | 1, and the guest's value is 0.
    assert_eq!(status.code(), Some(1), "{}", String::from_utf8_lossy(&said));
    Some(said)
}

fn outcomes(parameters: &Parameters, model: &str) -> Option<Outcomes> {
    let serial = Serial::read(&run(parameters, model)?);
    assert_eq!(serial.complaints, []);
    let outcomes = Outcomes::of(&serial.records);
    assert_eq!(outcomes.ending, Ending::Complete);
    Some(outcomes)
}

/// The known deviations of QEMU 7.2 from the manuals. A later version may be correct.
#[derive(Debug, PartialEq)]
enum Defect {
    /// `f0 89 c8` is executed as if it had no LOCK prefix.
    LockMovExecutes,
    /// SYSCALL works from compatibility mode on Intel processors too.
    CompatSyscallOnIntel,
    /// SYSENTER works from compatibility mode on AMD processors too; SYSEXIT does not.
    CompatSysenterOnAmd,
}

fn defect(experiment: &Experiment, vendor: Vendor) -> Option<Defect> {
    match (experiment.name, vendor) {
        ("ud-lock-mov" | "ud-lock-mov-ring0", _) => Some(Defect::LockMovExecutes),
        ("compat-syscall", Vendor::Intel) => Some(Defect::CompatSyscallOnIntel),
        ("compat-sysenter", Vendor::Amd) => Some(Defect::CompatSysenterOnAmd),
        _ => None,
    }
}

/// The instructions of one operation, counted by hand: in the program, and in the handler. QEMU does not count a load that
/// faults.
const INSTRUCTIONS: &[(&str, u64)] = &[
    ("int", 1 + 2),
    ("int-swapgs", 1 + 4),
    ("call-gate", 1 + 2),
    ("syscall", 1 + 2),
    ("syscall-swapgs", 1 + 4),
    ("syscall-path", 2 + 8 + 13 + 5 + 3 + 1 + 14 + 3),
    ("sysenter", 3 + 3),
    ("compat-int", 1 + 2),
    ("compat-syscall", 1 + 2),
    ("compat-sysenter", 3 + 3),
    ("ud1", 3 + 27),
    ("ud1-ring0", 3 + 27),
    ("imul", 3),
    ("page-fault", 5),
    ("general-protection", 1 + 4),
    ("breakpoint", 1 + 2),
    ("swapgs", 1),
    ("cr3", 2),
    ("verw", 1),
    ("lfence", 1),
    ("iretq", 8),
    ("cli-sti", 2),
    ("frame", 30),
    ("tlb-flush", 2),
    ("invlpg", 1),
    ("tas-cli", 7),
    ("iopl-halt", 2 + 64 * 3 + 8),
];

#[test]
fn every_operation_of_every_experiment_arrives() {
    let parameters = Parameters { operations: 100, rounds: 3, ..Parameters::default() };
    for (vendor, model) in MODELS {
        let Some(outcomes) = outcomes(&parameters, model) else { return };
        let name = if vendor == Vendor::Intel { "GenuineIntel" } else { "AuthenticAMD" };
        assert_eq!(outcomes.maker.unwrap().name(), name);
        assert_eq!((outcomes.operations, outcomes.rounds), (100, 3));
        let measured = EXPERIMENTS.iter().filter(|experiment| experiment.is_measured());
        assert_eq!(outcomes.experiments.len(), measured.clone().count());
        for experiment in measured {
            let outcome = outcomes.of_number(experiment.number).unwrap();
            check(experiment, vendor, outcome);
        }
    }
}

fn check(experiment: &Experiment, vendor: Vendor, outcome: &Outcome) {
    let name = experiment.name;
    let defect = defect(experiment, vendor);
    match (outcome, experiment.expected(vendor)) {
        (Outcome::Lacks(features), _) => {
            // The translator has neither of the two.
            let feature = experiment.needs.unwrap();
            assert!(matches!(feature, Feature::Pcid | Feature::SpecCtrl), "{name}");
            assert_eq!(*features, feature.bit());
        }
        (Outcome::Done(rounds), expected) => {
            assert!(expected == Expected::Done || defect == Some(Defect::CompatSyscallOnIntel), "{name}");
            assert_eq!(rounds.len(), 3, "{name}");
            for round in rounds {
                assert_eq!(round.iterations, 100);
                let is_executed = defect == Some(Defect::LockMovExecutes) && round.value == 3;
                assert_eq!(round.is_counted(), experiment.counted && !is_executed, "{name}: {round:?}");
                if !round.is_counted() {
                    assert_eq!((round.count_one, round.count_two), (0, 0), "{name}");
                }
                assert!(
                    experiment.value.is_none_or(|value| round.value == if is_executed { 3 } else { value }),
                    "{name}"
                );
                // Ticks are instructions: each operation has the same number, and the loop cancels out.
                assert!(round.ticks().unwrap() >= 100, "{name}");
                assert_eq!(round.ticks().unwrap() % 100, 0, "{name}");
                assert_eq!(round.ticks(), rounds[0].ticks(), "{name}");
                let instructions = INSTRUCTIONS.iter().find(|(of, _)| *of == name);
                assert!(
                    instructions.is_none_or(|(_, count)| round.ticks() == Some(100 * count)),
                    "{name}: {round:?}"
                );
            }
        }
        (Outcome::Fault { rounds, fault, .. }, expected) => {
            assert_eq!(rounds, &[], "{name}");
            let said = Expected::Fault { vector: fault.vector, error: fault.error, ring: fault.ring() };
            let is_entered = Expected::Fault { vector: 6, error: 0, ring: 0 };
            let is_defect = defect == Some(Defect::CompatSysenterOnAmd) && said == is_entered;
            assert!(said == expected || is_defect, "{name}: {said:?}");
        }
        (Outcome::Stopped(_), _) => panic!("{name} was stopped"),
    }
}

#[test]
fn wrong_set_ups_are_refused() {
    let chosen: Chosen = EXPERIMENTS.iter().filter(|experiment| !experiment.is_measured()).collect();
    for (vendor, model) in MODELS {
        let Some(outcomes) = outcomes(&Parameters { chosen, ..Parameters::default() }, model) else { return };
        for experiment in EXPERIMENTS.iter().filter(|experiment| !experiment.is_measured()) {
            let outcome = outcomes.of_number(experiment.number).unwrap();
            let Outcome::Fault { fault, .. } = outcome else { panic!("{}: {outcome:?}", experiment.name) };
            let mut said = (fault.vector, fault.error, fault.ring());
            let Expected::Fault { vector, error, ring } = experiment.expected(vendor) else {
                panic!("{experiment:?}")
            };
            match experiment.name {
                // QEMU 7.2 also scales the error code by 16 bytes per entry: it should be the vector times 8 (SDM 3A, "Error
                // code").
                "wrong-gate-dpl" | "wrong-gate-absent" | "wrong-idt-limit"
                    if fault.error == 0x82 * 16 + 2 =>
                {
                    said.1 = 0x82 * 8 + 2
                }
                // It does not check the address before it returns: the fetch from it faults.
                "wrong-return" | "wrong-iret" if fault.rip == 0x8000_0000_0000 => said.2 = ring,
                _ => {}
            }
            assert_eq!(said, (vector, error, ring), "{}", experiment.name);
        }
    }
}

#[test]
fn two_runs_are_the_same_to_the_byte() {
    let mut chosen = Chosen::MEASURED;
    chosen.insert(0x40);
    let parameters = Parameters { chosen, ..Parameters::default() };
    for (_, model) in MODELS {
        let Some(first) = run(&parameters, model) else { return };
        assert_eq!(Some(first), run(&parameters, model));
    }
}

#[test]
fn only_what_was_chosen_is_done() {
    let chosen: Chosen = ["cr3", "int"].iter().filter_map(|name| Experiment::by_name(name)).collect();
    let parameters = Parameters { operations: 0, rounds: 0, chosen, ..Parameters::default() };
    let Some(outcomes) = outcomes(&parameters, "max") else { return };
    let numbers: Vec<u8> = outcomes.experiments.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0x00, 0x13]);
    // Zero would mean 2^32 iterations: the minimum is one.
    assert!(
        matches!(&outcomes.experiments[0].1, Outcome::Done(rounds) if rounds.len() == 1 && rounds[0].iterations == 1)
    );
}

#[test]
fn the_tables_it_prints_are_the_tables_that_it_needs() {
    let Some(said) = run(&Parameters { command: Order::Dump, ..Parameters::default() }, "max") else {
        return;
    };
    let text = String::from_utf8(said).unwrap();
    let mut memory = BTreeMap::new();
    let mut printed = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, value)) = line.split_once("] = ") {
            printed.insert(name.to_owned(), u64::from_str_radix(&value.replace('`', ""), 16).unwrap());
        } else if let Some((name, value)) = line.split_once('=') {
            printed.insert(name.to_owned(), u64::from_str_radix(value, 16).unwrap());
        } else {
            let (address, row) = line.split_once("  ").unwrap();
            let address = u64::from_str_radix(address, 16).unwrap();
            for (at, byte) in (0..).zip(row.split(' ')) {
                memory.insert(address + at, u8::from_str_radix(byte, 16).unwrap());
            }
        }
    }
    let bytes = |from: u64, count: u64| -> Vec<u8> { (from..from + count).map(|at| memory[&at]).collect() };
    let descriptor = |selector: Selector| {
        let at = printed["gdtr"] + u64::from(selector.0 & !7);
        Descriptor::decode(bytes(at, 8).try_into().unwrap())
    };
    let kind = |selector: Selector| {
        let descriptor = descriptor(selector);
        (matches!(descriptor.kind(), DescriptorKind::Code { .. }), descriptor.l, descriptor.dpl, descriptor.p)
    };
    let [kernel_code, kernel_data] = [(true, true, 0, true), (false, false, 0, true)];
    let [code64, code32, data] = [(true, true, 3, true), (true, false, 3, true), (false, false, 3, true)];

    // The selectors that the four instructions compute must be those in the table.
    let star = Star(printed["msr[c0000081"]);
    let sysenter = SysenterCs(printed["msr[00000174"]);
    for (selector, wanted) in [
        (star.syscall_cs(), kernel_code),
        (star.syscall_ss(), kernel_data),
        (star.sysret64_cs(), code64),
        (star.sysret32_cs(), code32),
        (star.sysret_ss(), data),
        (sysenter.sysenter_cs(), kernel_code),
        (sysenter.sysenter_ss(), kernel_data),
        (sysenter.sysexit64_cs(), code64),
        (sysenter.sysexit64_ss(), data),
        (sysenter.sysexit32_cs(), code32),
        (sysenter.sysexit32_ss(), data),
    ] {
        assert_eq!(kind(selector), wanted, "{selector:?}");
    }

    // The task register names a TSS, which has a stack for ring 0 and one for faults.
    let task = WideDescriptor::decode(bytes(printed["gdtr"] + printed["tr"], 16).try_into().unwrap());
    assert!(task.is_well_formed());
    let tss = Tss64::decode(bytes(task.base(), 0x68).try_into().unwrap());
    assert_eq!((tss.rsp(0), tss.ist(1)), (Some(0x21_4000), Some(0x21_8000)));
    // Ring 3 may call the gates for programs, but not raise exceptions.
    for (vector, dpl, ist) in [(0x80, 3, 0), (0x81, 3, 0), (6, 0, 1), (13, 0, 1), (14, 0, 1)] {
        let gate = WideGate::decode(bytes(printed["idtr"] + vector * 16, 16).try_into().unwrap());
        assert_eq!((gate.low.selector, gate.low.dpl, gate.ist()), (Selector(8), dpl, ist), "{vector:x}");
        assert!(gate.is_well_formed() && gate.low.p);
        assert!((0x10_0000..0x20_0000).contains(&gate.offset()));
    }
    assert_eq!(printed["idtl"] + 1, 0x85 * 16);
}
