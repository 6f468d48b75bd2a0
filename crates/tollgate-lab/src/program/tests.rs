use super::*;
use crate::{EngineChoice, Provenance};

/// mov $1, %eax; lea text(%rip), %rdi; mov $3, %esi; syscall; xor %eax, %eax; mov $7, %edi; syscall; text: "hi\n"
const HELLO: &[u8] = &[
    0xb8, 1, 0, 0, 0, 0x48, 0x8d, 0x3d, 16, 0, 0, 0, 0xbe, 3, 0, 0, 0, 0x0f, 0x05, 0x31, 0xc0, 0xbf, 7, 0, 0,
    0, 0x0f, 0x05, b'h', b'i', b'\n',
];
/// mov %ecx, 16: a write to the kernel's memory
const FAULTS: &[u8] = &[0x89, 0x0c, 0x25, 16, 0, 0, 0];
/// jmp .
const ENDLESS: &[u8] = &[0xeb, 0xfe];

fn programs(codes: &[&[u8]]) -> Vec<Program> {
    codes.iter().map(|code| Program::flat("test", code).unwrap()).collect()
}

fn ran(codes: &[&[u8]]) -> Ran {
    let options = Options { instructions: 1_000_000, timer: Timer::Counts(20), ..Options::default() };
    run(&programs(codes), EngineChoice::Interpreter, options).unwrap()
}

#[test]
fn a_program_says_something_and_ends() {
    let ran = ran(&[HELLO]);
    assert_eq!((ran.provenance, ran.cut_short, ran.complaints.len()), (Provenance::Interpreter, None, 0));
    assert_eq!(ran.written, [Written { program: 0, bytes: b"hi\n".to_vec() }]);
    let [Control { number: 0, end: End::Exit { status: 7, ticks, calls: 2, switches: 1 } }] =
        ran.programs[0][..]
    else {
        panic!("{:?}", ran.programs)
    };
    assert!((7..1000).contains(&ticks), "{ticks}");
}

#[test]
fn a_fault_ends_its_program_and_is_walked() {
    let ran = ran(&[FAULTS, HELLO]);
    assert_eq!((ran.status(0), ran.status(1), ran.output(1)), (None, Some(7), b"hi\n".to_vec()));
    let fault = ran.fault(0).unwrap();
    assert_eq!(fault.cause, Cause::Exception { vector: 14, error: 7, cr2: 16 });
    assert_eq!(
        (fault.rip, fault.bytes.as_slice(), fault.text.as_str()),
        (0x4000_0000, FAULTS, "mov [10h],ecx")
    );
    let walked = walk(&programs(&[FAULTS, HELLO]), Options::default(), fault).unwrap().unwrap();
    assert!(walked.steps.len() > 10 && walked.bytes == FAULTS, "{walked:?}");
}

/// nop; int3. nop; int 3. int1
const BREAKPOINTS: [&[u8]; 3] = [&[0x90, 0xcc], &[0x90, 0xcd, 3], &[0xf1]];
/// pushfq; or dword [rsp], 100h; popfq; jmp to the last byte: TF is set, so the single step comes after the jump
const STEPS: &[u8] = &[0x9c, 0x81, 0x0c, 0x24, 0, 1, 0, 0, 0x9d, 0xeb, 2, 0x90, 0x90, 0x90];

/// A trap saves the address after its instruction, or the target if that was a jump.
#[test]
fn a_trap_is_that_of_the_instruction_before() {
    let [one, two, icebp] = BREAKPOINTS;
    for (code, vector, rip, at, known, text) in [
        (one, 3, 2, 1, true, "int3"),
        (two, 3, 3, 1, true, "int 3"),
        (icebp, 1, 1, 0, false, "int1"),
        (STEPS, 1, 13, 9, false, "jmp short 000000004000000Dh"),
    ] {
        let ran = ran(&[code]);
        let fault = ran.fault(0).unwrap();
        assert!(matches!(fault.cause, Cause::Exception { vector: own, .. } if own == vector), "{fault:?}");
        assert_eq!((fault.rip, fault.at), (0x4000_0000 + rip, known.then_some(0x4000_0000 + at)), "{text}");
        assert_eq!(fault.text, if known { text } else { "" });
        let walked = walk(&programs(&[code]), Options::default(), fault).unwrap().expect(text);
        assert_eq!((walked.before.rip, walked.text.as_str()), (0x4000_0000 + at, text));
        assert!(walked.steps.len() > 10, "{walked:?}");
    }
}

#[test]
fn one_without_an_end_is_stopped_and_the_others_output_stays() {
    let ran = ran(&[ENDLESS, HELLO]);
    assert!(ran.cut_short.unwrap().starts_with("stopped after 1000000 instructions"));
    assert_eq!((ran.programs[0].len(), ran.written[0].bytes.as_slice()), (0, b"hi\n".as_slice()));
    assert_eq!(ran.programs[1].len(), 1);
}

/// Assembles a 32-bit program: write and exit by INT 80h, whose third argument would be in EBX.
#[test]
fn a_32_bit_program_runs_in_compatibility_mode() {
    const TEXT: &str = ".code32\n.globl _start\n_start: mov $1, %eax\nmov $text, %edi\nmov $3, %esi\nint $0x80\n\
        xor %eax, %eax\nmov $9, %edi\nint $0x80\n.data\ntext: .ascii \"32\\n\"\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.s"), TEXT).unwrap();
    for command in ["as --32 -o x.o x.s", "ld -m elf_i386 -Ttext-segment=0x40000000 -o x x.o"] {
        let output = std::process::Command::new("sh")
            .args(["-c", command])
            .current_dir(folder.path())
            .output()
            .unwrap();
        if !output.status.success() {
            return println!("skipped: {command}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    let program = Program::open(&folder.path().join("x")).unwrap();
    assert!(program.is_32_bit);
    let ran = run(&[program], EngineChoice::Interpreter, Options::default()).unwrap();
    assert_eq!((ran.output(0).as_slice(), ran.status(0)), (b"32\n".as_slice(), Some(9)), "{ran:?}");
}
