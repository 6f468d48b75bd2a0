use std::time::{Duration, Instant};

use tollgate_os::signals::Disposition;

use super::*;
use crate::Provenance;
use crate::sample::{
    BASE, CHATTER, END, FAULT, HALT, HELLO, LONG, LOOP, LOOP_OF_EXITS, SAID, bootable, is_alone, machine, run,
};

const SHORT: Duration = Duration::from_millis(100);

/// Opens KVM, or prints why it cannot be tested.
fn kvm() -> Option<Kvm> {
    Kvm::open().inspect_err(|error| eprintln!("skipped: {error}")).ok()
}

#[test]
fn a_guest_writes_and_ends() {
    let Some(kvm) = kvm() else { return };
    let output = run(&kvm, HELLO, LONG);
    assert_eq!((output.cut_short, output.serial.as_slice()), (None, SAID));
    let memory = output.memory.unwrap();
    assert_eq!(memory.len(), 16 << 20);
    let code = &memory[usize::try_from(BASE).unwrap() + 32..][..HELLO.len()];
    assert_eq!(code, HELLO);
    assert_eq!(output.provenance, provenance(kvm.calibrate()));
    assert_eq!(run(&kvm, END, LONG).cut_short, None);
}

#[test]
fn the_loop_is_timed_or_the_reason_is_given() {
    let Some(kvm) = kvm() else { return };
    let calibration = kvm.calibrate();
    eprintln!("{calibration}");
    match (calibration, provenance(calibration)) {
        (Calibration::Ran { ticks, iterations, counted }, provenance) => {
            assert!(*ticks > u64::from(*iterations) / 8, "no processor makes eight iterations a tick");
            let counted_emulated = counted.is_some_and(|counted| counted.emulated * 2 > counted.instructions);
            let timed_emulated = *ticks > 100 * u64::from(*iterations);
            assert_eq!(provenance != Provenance::Kvm, counted_emulated || timed_emulated);
        }
        (Calibration::Failed { why }, provenance) => {
            assert!(!why.is_empty() && matches!(provenance, Provenance::KvmEmulated { .. }));
        }
    }
}

#[test]
fn who_does_not_end_is_stopped() {
    let Some(kvm) = kvm() else { return };
    kvm.calibrate();
    for code in [LOOP, LOOP_OF_EXITS] {
        let before = Instant::now();
        let output = run(&kvm, code, SHORT);
        assert_eq!(output.cut_short.as_deref(), Some("it was stopped after 100ms"));
        assert!((SHORT..LONG).contains(&before.elapsed()), "{:?}", before.elapsed());
    }
    let output = run(&kvm, LOOP, Duration::ZERO);
    assert!(output.cut_short.is_some_and(|why| why.starts_with("it was stopped after ")));
    // Such a long patience must not overflow anything.
    assert_eq!(run(&kvm, END, Duration::MAX).cut_short, None);
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn who_writes_without_end_is_stopped() {
    let Some(kvm) = kvm() else { return };
    // Each byte is an exit, which takes long in an emulator on a loaded machine.
    let output = run(&kvm, CHATTER, 5 * LONG);
    let why = "it wrote more than 1048576 bytes to its serial port";
    assert_eq!((output.serial.len(), output.cut_short.as_deref()), (1 << 20, Some(why)));
}

#[test]
fn a_fault_without_tables_has_a_clause() {
    let Some(kvm) = kvm() else { return };
    let why = run(&kvm, FAULT, LONG).cut_short.unwrap();
    assert!(why.contains("triple fault"), "{why}");
    let why = run(&kvm, HALT, LONG).cut_short.unwrap();
    assert_eq!(why, "it halted and nothing can wake it");
}

#[test]
fn an_image_of_nothing_has_a_clause() {
    let Some(kvm) = kvm() else { return };
    // Zeroes are instructions: each adds AL to the byte that EAX points to, which is beyond memory.
    for image in [&[][..], &[0; 4096]] {
        let output = Engine::run(&kvm, image, BASE, BASE, machine(LONG)).unwrap();
        let why = output.cut_short.unwrap();
        assert!(why.contains("2badb002") || why.contains("emulate"), "{why}");
    }
    // There is no memory at these addresses, and 32-bit mode cannot express the second.
    for entry in [0xd000_0000, u64::MAX] {
        let output = Engine::run(&kvm, &[], BASE, entry, machine(SHORT)).unwrap();
        assert!(output.cut_short.is_some_and(|why| !why.is_empty()), "{entry:x}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(kvm) = kvm() else { return };
    let (image, entry) = bootable(HELLO);
    let small = Machine { memory: (1 << 20) + image.len() - 1, ..machine(LONG) };
    assert!(matches!(Engine::run(&kvm, &image, BASE, entry, small), Err(LabError::TooLarge { .. })));
    let exact = Machine { memory: (1 << 20) + image.len(), ..machine(LONG) };
    let output = Engine::run(&kvm, &image, BASE, entry, exact).unwrap();
    assert_eq!((output.cut_short, output.memory.map(|memory| memory.len())), (None, Some(exact.memory)));
    let huge = Machine { memory: 4 << 30, ..machine(LONG) };
    let refused = Engine::run(&kvm, &image, BASE, entry, huge).unwrap_err().to_string();
    assert!(refused.starts_with("KVM cannot be used: more than 3 GiB of memory"), "{refused}");
}

/// Counts the descriptors and threads of this process.
fn held() -> (usize, usize) {
    let count = |what| std::fs::read_dir(what).unwrap().count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}

#[test]
fn nothing_is_left() {
    if !is_alone("kvm::tests::nothing_is_left") {
        return;
    }
    let Some(kvm) = kvm() else { return };
    kvm.calibrate();
    let before = held();
    for code in [HELLO, LOOP, FAULT, HALT] {
        for _ in 0..5 {
            run(&kvm, code, SHORT / 10);
        }
    }
    assert_eq!(held(), before);
}

/// The signal that ends a run keeps its handler, and the handler is not called.
#[test]
fn no_handler_is_touched() {
    let Some(kvm) = kvm() else { return };
    kvm.calibrate();
    let signal = libc::SIGRTMAX();
    let is_default = || Disposition::of(signal).is_default();
    assert!(is_default(), "the signal's default disposition ends a process");
    assert!(run(&kvm, LOOP, SHORT).cut_short.is_some());
    assert!(is_default());
}
