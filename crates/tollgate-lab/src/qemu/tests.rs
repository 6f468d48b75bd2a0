use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::sample::{
    BASE, CHATTER, END, FAULT, HALT, HELLO, LONG, LOOP, SAID, bootable, is_alone, machine, run,
};

/// The time limit of an endless guest, including QEMU's own start.
const SHORT: Duration = Duration::from_secs(2);

/// Finds QEMU, or prints why it cannot be tested.
fn qemu() -> Option<Qemu> {
    Qemu::find().inspect_err(|error| eprintln!("skipped: {error}")).ok()
}

#[test]
fn a_guest_writes_and_ends() {
    let Some(qemu) = qemu() else { return };
    for icount in [true, false] {
        for vendor in [None, Some(Vendor::Amd), Some(Vendor::Intel)] {
            let qemu = qemu.clone().with(Accelerator::Tcg { icount });
            let (image, entry) = bootable(HELLO);
            let output = qemu.run(&image, BASE, entry, Machine { vendor, ..machine(LONG) }).unwrap();
            assert_eq!((output.cut_short, output.serial.as_slice()), (None, SAID));
            assert_eq!((output.provenance, output.memory), (Provenance::QemuTcg { icount }, None));
        }
    }
    assert_eq!(run(&qemu, END, LONG).cut_short, None, "a status of 1 that is the guest's");
}

/// Writes the first five letters of CPUID's vendor: those in EBX, and one of EDX.
#[rustfmt::skip]
const VENDOR: &[u8] = &[
    0x31, 0xc0,                   // xor eax, eax
    0x0f, 0xa2,                   // cpuid
    0x89, 0xd6,                   // mov esi, edx
    0x66, 0xba, 0xf8, 0x03,       // mov dx, 0x3f8
    0x88, 0xd8,                   // mov al, bl
    0xee,                         // out dx, al
    0xc1, 0xeb, 0x08,             // shr ebx, 8
    0x75, 0xf8,                   // jnz to the mov
    0x89, 0xf0,                   // mov eax, esi
    0xee,                         // out dx, al
    0xe6, 0xf4,                   // out 0xf4, al
];

#[test]
fn the_processor_is_of_the_vendor_that_is_asked_for() {
    let Some(qemu) = qemu() else { return };
    for (vendor, name) in [(Vendor::Intel, "Genui"), (Vendor::Amd, "Authe")] {
        let (image, entry) = bootable(VENDOR);
        let output =
            qemu.run(&image, BASE, entry, Machine { vendor: Some(vendor), ..machine(LONG) }).unwrap();
        assert_eq!(String::from_utf8_lossy(&output.serial), name);
    }
}

/// Reads the time-stamp counter before and after a thousand iterations of a loop, and writes the difference as four bytes.
#[rustfmt::skip]
const TICKS: &[u8] = &[
    0xb9, 0xe8, 0x03, 0x00, 0x00, // mov ecx, 1000
    0x0f, 0x31,                   // rdtsc
    0x89, 0xc3,                   // mov ebx, eax
    0xff, 0xc9,                   // dec ecx
    0x75, 0xfc,                   // jnz to the dec
    0x0f, 0x31,                   // rdtsc
    0x29, 0xd8,                   // sub eax, ebx
    0x66, 0xba, 0xf8, 0x03,       // mov dx, 0x3f8
    0xb1, 0x04,                   // mov cl, 4
    0xee,                         // out dx, al
    0xc1, 0xe8, 0x08,             // shr eax, 8
    0xfe, 0xc9,                   // dec cl
    0x75, 0xf8,                   // jnz to the out
    0xe6, 0xf4,                   // out 0xf4, al
];

#[test]
fn with_icount_a_tick_is_an_instruction() {
    let Some(qemu) = qemu() else { return };
    let first = run(&qemu, TICKS, LONG);
    let ticks = u32::from_le_bytes(first.serial.as_slice().try_into().unwrap());
    // The loop, the mov before it and the second rdtsc.
    assert!((2000..2010).contains(&ticks), "{ticks}");
    assert_eq!(run(&qemu, TICKS, LONG), first);
}

#[test]
fn who_does_not_end_is_stopped() {
    let Some(qemu) = qemu() else { return };
    for code in [LOOP, HALT] {
        let before = Instant::now();
        let output = run(&qemu, code, SHORT);
        assert_eq!(output.cut_short.as_deref(), Some("it was stopped after 2s"));
        assert!((SHORT..LONG).contains(&before.elapsed()));
    }
    assert!(run(&qemu, HELLO, Duration::ZERO).cut_short.is_some());
    // Such a long patience must not overflow anything.
    assert_eq!(run(&qemu, END, Duration::MAX).cut_short, None);
}

#[test]
fn who_writes_without_end_is_stopped() {
    let Some(qemu) = qemu() else { return };
    let output = run(&qemu.with(Accelerator::Tcg { icount: false }), CHATTER, LONG);
    let why = "it wrote more than 1048576 bytes to its serial port";
    assert_eq!((output.serial.len(), output.cut_short.as_deref()), (1 << 20, Some(why)));
}

#[test]
fn a_triple_fault_has_a_clause() {
    let Some(qemu) = qemu() else { return };
    let why = run(&qemu, FAULT, LONG).cut_short;
    assert_eq!(why.as_deref(), Some("its processor was reset, usually by a triple fault"));
    // Zeroes add AL to the byte that EAX points to, which does not exist, until execution leaves memory.
    let why = run(&qemu, &[0; 64], SHORT).cut_short;
    assert!(why.is_some());
}

#[test]
fn what_qemu_would_not_load_is_refused() {
    let Some(qemu) = qemu() else { return };
    let why = |image: &[u8]| qemu.run(image, BASE, BASE, machine(LONG)).unwrap_err().to_string();
    let none = "QEMU cannot be used: the image has no multiboot header in its first 8192 bytes";
    assert_eq!((why(&[]).as_str(), why(&[0; 4096]).as_str()), (none, none));
    let (image, entry) = bootable(HELLO);
    let small = Machine { memory: 1 << 20, ..machine(LONG) };
    assert!(matches!(qemu.run(&image, BASE, entry, small), Err(LabError::TooLarge { .. })));
}

#[test]
fn a_qemu_that_fails_says_why() {
    let Some(qemu) = qemu() else { return };
    let (image, entry) = bootable(HELLO);
    let greedy = Machine { memory: 1 << 62, ..machine(LONG) };
    let why = qemu.run(&image, BASE, entry, greedy).unwrap_err().to_string();
    assert!(why.starts_with("QEMU cannot be used: ") && why.len() > 25, "{why}");
}

#[test]
fn with_kvm_it_runs_or_says_why() {
    let Some(qemu) = qemu() else { return };
    let (image, entry) = bootable(HELLO);
    match qemu.with(Accelerator::Kvm).run(&image, BASE, entry, machine(LONG)) {
        Ok(output) => {
            assert_eq!(output.provenance, Provenance::QemuKvm);
            assert!(output.serial == SAID || output.cut_short.is_some());
        }
        Err(error) => eprintln!("skipped: {error}"),
    }
}

#[test]
fn where_it_is_not_the_package_is_named() {
    assert_eq!(
        find_in(PROGRAM, "relative:".as_ref()),
        find_in(PROGRAM, "".as_ref()),
        "only absolute directories count"
    );
    let empty = tempfile::tempdir().unwrap();
    if find_in(PROGRAM, "".as_ref()).is_none() {
        let why = Qemu::find_in(empty.path().as_os_str()).unwrap_err().to_string();
        assert!(why.contains("qemu-system-x86)"), "{why}");
        return;
    }
    // A program that is not QEMU, found before the real one.
    let false_one = empty.path().join(PROGRAM);
    std::fs::write(&false_one, "#!/bin/sh\necho nothing\n").unwrap();
    std::fs::set_permissions(&false_one, std::fs::Permissions::from_mode(0o755)).unwrap();
    let why = Qemu::find_in(empty.path().as_os_str()).unwrap_err().to_string();
    assert!(why.ends_with("does not print its version: \"nothing\""), "{why}");
}

/// After a run, neither a QEMU of this process nor any of its files is left.
#[test]
fn nothing_is_left() {
    if !is_alone("qemu::tests::nothing_is_left") {
        return;
    }
    let Some(qemu) = qemu() else { return };
    let held = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = held();
    for code in [LOOP, HELLO, FAULT] {
        run(&qemu, code, SHORT / 4);
    }
    assert_eq!(held(), before);
    let children = rustix::process::waitpid(None, rustix::process::WaitOptions::NOHANG);
    assert_eq!(children.unwrap_err(), rustix::io::Errno::CHILD, "there is no child at all");
}
