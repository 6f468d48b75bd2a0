//! Programs in ring 3 under the lab's kernel: how they are loaded, what they get, and how they end.

mod archives;
mod kit;
mod wild;

use tollgate_lab::guest::{BASE, Ending, Outcomes, Report, Serial};
use tollgate_lab::{Engine, EngineChoice, Qemu, system};
use tollgate_x86::Vendor;

use super::machine;
use kit::{Archive, Flat, flat, image, reports, run, serial};

/// The results of a system call that does not exist, and of one that is not permitted.
const ENOSYS: u64 = -38_i64 as u64;
const EPERM: u64 = -1_i64 as u64;

/// Returns the reports of a complete run.
fn whole(archive: &Archive) -> Vec<Report> {
    let output = run(archive, Vendor::Intel);
    assert_eq!(output.cut_short, None);
    let records = serial(&output).records;
    assert_eq!(Outcomes::of(&records).ending, Ending::Complete);
    reports(&records)
}

/// Returns the status of each thread that ended by itself, with its program.
fn statuses(archive: &Archive) -> Vec<(u8, u64)> {
    let exit = |report: &Report| match *report {
        Report::Exit { thread, status, .. } => Some((thread.program, status)),
        _ => None,
    };
    whole(archive).iter().filter_map(exit).collect()
}

#[test]
fn a_program_writes_and_ends() {
    let reports = whole(&Archive::new(&[flat!(hello)]));
    let [
        Report::Out { program: 0, text },
        Report::Exit { status: 42, calls: 2, switches: 1, .. },
        Report::Stop,
    ] = reports[..]
    else {
        panic!("{reports:?}")
    };
    assert_eq!(text.bytes(), b"hello\n");
}

#[test]
fn all_ways_in_lead_to_the_same_calls() {
    assert_eq!(statuses(&Archive::new(&[flat!(ways)])), [(0, ENOSYS.wrapping_mul(4))]);
    let narrow = Flat { flags: 2, ..flat!(narrow) };
    let sum = (ENOSYS as u32).wrapping_mul(3);
    assert_eq!(statuses(&Archive::new(&[narrow])), [(0, sum.into())]);
}

#[test]
fn threads_take_turns_and_wait() {
    assert_eq!(statuses(&Archive::new(&[flat!(threads)])), [(0, 105), (0, 210)]);
    let reports = whole(&Archive::new(&[flat!(stuck), flat!(hello)]));
    let stuck = reports.iter().filter(|report| matches!(report, Report::Stuck { .. })).count();
    assert_eq!((stuck, reports.last()), (2, Some(&Report::Stop)));
}

/// Checks vector, error code and CR2 of each fault, and the status of the program that did nothing wrong.
#[test]
fn a_fault_ends_one_program() {
    let faults = [
        (flat!(reads_nothing), (14, 5, 0x10)),
        (flat!(reads_the_kernel), (14, 5, 0x10_0000)),
        (flat!(writes_the_primitive), (14, 7, 0x3fff_f000)),
        (flat!(runs_its_stack), (14, 0x14, 0x7fff_f000)),
        (flat!(divides), (0, 0, 0)),
        (flat!(halts), (13, 0, 0)),
        (flat!(steps), (1, 0, 0)),
        (flat!(steps_into_sysenter), (1, 0, 0)),
        (flat!(steps_into_the_gate), (1, 0, 0)),
        (flat!(goes_nowhere), (13, 0, 0)),
        (flat!(uses_x87), (7, 0, 0)),
        (flat!(uses_sse), (6, 0, 0)),
        (flat!(calls_the_timer), (13, 0x102, 0)),
        (flat!(pushes_nowhere), (12, 0, 0)),
        (flat!(loads_a_local_segment), (13, 0xc, 0)),
    ];
    let mut programs: Vec<Flat> = faults.iter().map(|(program, _)| program.clone()).collect();
    programs.push(flat!(hello));
    let archive = Archive::new(&programs);
    let reports = whole(&archive);
    for (number, (_, expected)) in (0..).zip(&faults) {
        let dead = reports.iter().find_map(|report| match report {
            Report::Dead { thread, fault, cr2, .. } if thread.program == number => {
                Some((fault.vector, fault.error, *cr2))
            }
            _ => None,
        });
        assert_eq!(dead, Some(*expected), "{number}");
    }
    let registers = reports.iter().filter(|report| matches!(report, Report::Registers { .. })).count();
    assert_eq!(registers, faults.len());
    assert_eq!(statuses(&archive), [(15, 42)]);
}

#[test]
fn an_unknown_instruction_ends_its_program_and_is_named() {
    let archive = Archive::new(&[flat!(enters), flat!(hello)]);
    let output = run(&archive, Vendor::Intel);
    let [unknown] = &output.unknown[..] else { panic!("{:?}", output.unknown) };
    assert_eq!((unknown.rip, unknown.text.as_str()), (0x4000_0000, "enter 8,0"));
    assert_eq!(unknown.bytes, [0xc8, 8, 0, 0]);
    let reports = whole(&archive);
    assert!(matches!(reports[0], Report::Unknown { rip: 0x4000_0000, cs: 0x2b, .. }), "{reports:?}");
    assert_eq!(statuses(&archive), [(1, 42)]);
}

#[test]
fn what_most_processors_have_is_unknown_and_no_trap() {
    let programs: [(&[u8], &str); 3] = [
        (&[0xf3, 0x0f, 0xb8, 0xc1], "popcnt eax,ecx"),
        (&[0x0f, 0x38, 0xf0, 0x07], "movbe eax,[rdi]"),
        (&[0x48, 0x0f, 0xc7, 0x0f], "cmpxchg16b [rdi]"),
    ];
    for (code, text) in programs {
        let program = system::Program::flat("unknown", code).unwrap();
        let ran = system::run(&[program], EngineChoice::Interpreter, system::Options::default()).unwrap();
        let fault = ran.fault(0).expect(text);
        assert_eq!(
            (fault.cause, fault.text.as_str(), fault.bytes.as_slice()),
            (system::Cause::Unknown, text, code)
        );
    }
}

#[test]
fn interrupts_are_turned_off_by_leave_only() {
    let allowed = Flat { flags: 1, ..flat!(keeps) };
    let mut archive = Archive::new(&[flat!(keeps), allowed, flat!(count)]);
    archive.set_period(10);
    let statuses = statuses(&archive);
    assert_eq!(statuses, [(0, EPERM), (1, 0x200 << 16), (2, 40000)]);
}

/// A program that runs alone is never interrupted; several take turns.
#[test]
fn the_timer_ends_turns() {
    let switches = |archive: &Archive| -> Vec<u64> {
        let exit = |report: &Report| match *report {
            Report::Exit { switches, .. } => Some(switches),
            _ => None,
        };
        whole(archive).iter().filter_map(exit).collect()
    };
    let mut alone = Archive::new(&[flat!(count)]);
    alone.set_period(10);
    assert_eq!(switches(&alone), [1]);
    let mut three = Archive::new(&[flat!(count), flat!(count), flat!(count)]);
    three.set_period(10);
    // 120,000 instructions each, and 8381 per turn.
    let counts = switches(&three);
    assert!(counts.len() == 3 && counts.iter().all(|count| (13..=16).contains(count)), "{counts:?}");
    three.set_options(1);
    assert_eq!(switches(&three), [1, 1, 1], "without the timer");
}

/// Everything that programs do takes the same number of instructions under QEMU's translator, and the timer gives them the
/// same turns.
#[test]
fn qemu_counts_the_same() {
    let qemu = match Qemu::find() {
        Ok(qemu) => qemu,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let alone = [flat!(hello), flat!(ways), flat!(threads), flat!(strings)];
    let mut archives: Vec<Archive> =
        alone.iter().map(|program| Archive::new(std::slice::from_ref(program))).collect();
    for period in [2, 50] {
        let mut together = Archive::new(&[
            flat!(count),
            flat!(sleeper),
            flat!(threads),
            flat!(hello),
            flat!(strings),
            flat!(reads_the_kernel),
            flat!(steps_into_sysenter),
            flat!(goes_nowhere),
            flat!(uses_x87),
            Flat { flags: 1, ..flat!(keeps) },
            flat!(stuck),
            flat!(loads_a_local_segment),
        ]);
        together.set_period(period);
        archives.push(together);
    }
    for archive in &archives {
        let image = image(archive);
        let theirs = qemu.run(image.bytes(), BASE, image.entry(), machine(Vendor::Intel)).unwrap();
        let ours = run(archive, Vendor::Intel);
        let [theirs, ours] = [theirs, ours].map(|output| Serial::read(&output.serial).records);
        // The first record names the processor.
        assert_eq!(ours.get(1..), theirs.get(1..));
        assert!(ours.len() > 3);
    }
}
