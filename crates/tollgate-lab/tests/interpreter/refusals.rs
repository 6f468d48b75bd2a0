use tollgate_lab::{Engine, Interpreter, LabError, Machine};
use tollgate_x86::Vendor;

use super::{BASE, crossings, machine};

/// Runs bytes in 32-bit protected mode, and returns why that ended.
fn end_of(code: &[u8]) -> String {
    let machine = Machine { instructions: 100_000, ..machine(Vendor::Intel) };
    Interpreter.run(code, BASE, BASE, machine).unwrap().cut_short.unwrap_or_default()
}

#[test]
fn what_is_not_known_is_named_with_its_bytes() {
    // enter $8, $0
    assert_eq!(
        end_of(&[0x90, 0xc8, 8, 0, 0]),
        "an instruction unknown to the interpreter, at 100001 in protected mode, ring 0: \
         c8 08 00 00 (enter 8,0)"
    );
    // mov %eax, %dr7
    assert!(end_of(&[0x0f, 0x23, 0xf8]).ends_with("ring 0: 0f 23 f8 (mov dr7,eax)"));
}

/// Without an IDT each of these ends in a triple fault, whose message begins with the first exception.
#[test]
fn what_every_processor_refuses_is_an_invalid_opcode() {
    let refused: [(&str, &[u8]); 7] = [
        ("ud2", &[0x0f, 0x0b]),
        ("ud1", &[0x0f, 0xb9, 0xc8]),
        ("lock mov", &[0xf0, 0x89, 0xc8]),
        ("lock add to a register", &[0xf0, 0x01, 0xc8]),
        ("SSE, which CPUID does not offer", &[0x0f, 0x58, 0xc1]),
        ("SWAPGS outside 64-bit mode", &[0x0f, 0x01, 0xf8]),
        ("lea of a register", &[0x8d, 0xc0]),
    ];
    for (what, code) in refused {
        let end = end_of(code);
        assert!(
            end.starts_with("the processor shut down: #GP in the delivery of #DF, at 100000"),
            "{what}: {end}"
        );
    }
}

#[test]
fn a_run_that_cannot_go_on_says_why() {
    for (code, end) in [
        (&[0xfa, 0xf4][..], "HLT with interrupts off, at 100001"),
        (&[0xfb, 0xf4], "HLT with interrupts on, but none can come, at 100001"),
        (&[0xeb, 0xfe], "stopped after 100000 instructions, at 100000"),
        // rep stosb with a count of nearly 2^32 from address 0: the program overwrites itself.
        (&[0x49, 0xf3, 0xaa], "stopped after 100000 instructions"),
        // A jump to an address without memory.
        (&[0xb8, 0, 0, 0, 0xf0, 0xff, 0xe0], "code at f0000000, where there is no memory"),
        // Paging without long mode.
        (&[0x0f, 0x20, 0xc0, 0x0f, 0xba, 0xe8, 31, 0x0f, 0x22, 0xc0], "paging outside long mode"),
    ] {
        let found = end_of(code);
        assert!(found.starts_with(end), "{code:02x?}: {found}");
    }
}

#[test]
fn patience_ends_a_loop() {
    let patience = std::time::Duration::from_millis(50);
    let machine = Machine { patience, instructions: u64::MAX, ..machine(Vendor::Intel) };
    // mov %eax, %ecx; rep stosb; jmp back; and an endless jmp alone.
    for code in [&[0x89, 0xc1, 0xf3, 0xac, 0xeb, 0xfa][..], &[0xeb, 0xfe]] {
        let output = Interpreter.run(code, BASE, BASE, machine).unwrap();
        assert!(output.cut_short.unwrap().starts_with("stopped after 0.05 s"));
    }
}

#[test]
fn an_image_that_does_not_fit_is_refused() {
    let image = crossings::image();
    let small = Machine { memory: 0x10_0000 + image.len() - 1, ..machine(Vendor::Intel) };
    for (base, machine) in [(BASE, small), (u64::MAX, machine(Vendor::Intel))] {
        let refused = Interpreter.run(image, base, base, machine);
        assert!(matches!(refused, Err(LabError::TooLarge { .. })), "{refused:?}");
    }
}

/// A mov writes $0xf4 over an instruction that was executed as NOP, and then executes as HLT.
#[test]
fn code_that_changes_itself_is_run_as_it_is_then() {
    let code = [
        0xbb, 2, 0, 0, 0,    // mov $2, %ebx
        0x90, // nop, at 100005
        0xc6, 0x05, 0x05, 0, 0x10, 0, 0xf4, // movb $0xf4, 0x100005
        0x4b, // dec %ebx
        0x75, 0xf5, // jnz to the nop
    ];
    assert!(end_of(&code).starts_with("HLT with interrupts off, at 100005"), "{}", end_of(&code));
}
