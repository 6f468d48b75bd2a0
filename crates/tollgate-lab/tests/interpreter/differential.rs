//! Executes the same instructions on the real processor and in the interpreter, with the same operands: registers, memory and
//! all flags that the manual defines must agree.

use std::arch::{asm, global_asm};

use tollgate_lab::Machine;
use tollgate_x86::Vendor;

use super::{BASE, machine, program, run};

/// The address of the cases in the machine: `CASES` of `differential.s`.
const CASES: u64 = 0x70_0000;
const STRIDE: usize = 32;

const CF: u64 = 1;
const PF: u64 = 1 << 2;
const AF: u64 = 1 << 4;
const ZF: u64 = 1 << 6;
const SF: u64 = 1 << 7;
const OF: u64 = 1 << 11;
const ALL: u64 = CF | PF | AF | ZF | SF | OF;
/// Undefined after shifts by any count: OF unless the count is 1, AF always, CF if the count is at least the operand's bits.
const SHIFT: u64 = OF | AF;
const SHIFT_SMALL: u64 = SHIFT | CF;
const PRODUCT: u64 = SF | ZF | AF | PF;
const BIT: u64 = OF | SF | AF | PF;
const SCAN: u64 = ALL & !ZF;

/// Consecutive pieces of code, and the flags that each leaves undefined.
macro_rules! pieces {
    ($($code:literal, $undefined:expr;)*) => {
        global_asm!(
            ".section .tg_interpreter_differential, \"ax\", @progbits",
            include_str!("kit.s"),
            "kit tgd",
            include_str!("differential.s"),
            ".balign 32, 0x90",
            "tgd_pieces:",
            $(concat!($code, "\n ret\n .balign 32, 0x90"),)*
            "tgd_end:",
            ".text",
            options(att_syntax, raw)
        );
        const PIECES: &[(&str, u64)] = &[$(($code, $undefined)),*];
    };
}

pieces! {
    "add %rcx, %rax", 0;
    "add %ecx, %eax", 0;
    "add %cx, %ax", 0;
    "add %cl, %ah", 0;
    "add %rcx, (%rsi)", 0;
    "addl $-7, 4(%rsi)", 0;
    "adc %rcx, %rax", 0;
    "adc %ecx, %eax", 0;
    "adc %cl, %al", 0;
    "adcw $0x7fff, (%rsi)", 0;
    "sub %rcx, %rax", 0;
    "sub %cx, %ax", 0;
    "sub (%rsi), %rax", 0;
    "sbb %rcx, %rax", 0;
    "sbb %ecx, %eax", 0;
    "sbb %ah, %dl", 0;
    "sbb $-1, %rax", 0;
    "cmp %rcx, %rax", 0;
    "cmp %ecx, %eax", 0;
    "cmp %cl, (%rsi)", 0;
    "and %rcx, %rax", AF;
    "or %ecx, %eax", AF;
    "xor %cx, %ax", AF;
    "test %cl, %al", AF;
    "testq $-256, (%rsi)", AF;
    "inc %rax", 0;
    "inc %ah", 0;
    "dec %eax", 0;
    "decw (%rsi)", 0;
    "neg %rax", 0;
    "neg %cl", 0;
    "not %eax", 0;
    "shl %cl, %rax", SHIFT;
    "shl %cl, %eax", SHIFT;
    "shl %cl, %ax", SHIFT_SMALL;
    "shl %cl, %al", SHIFT_SMALL;
    "shl $1, %rax", AF;
    "shl $1, %al", AF;
    "shr %cl, %rax", SHIFT;
    "shr %cl, %eax", SHIFT;
    "shr %cl, %al", SHIFT_SMALL;
    "shr $1, %eax", AF;
    "sar %cl, %rax", SHIFT;
    "sar %cl, %eax", SHIFT;
    "sar %cl, %al", SHIFT;
    "sar $1, %ax", AF;
    "rol %cl, %rax", OF;
    "rol %cl, %eax", OF;
    "rol %cl, %al", OF;
    "rol $1, %rax", 0;
    "ror %cl, %rax", OF;
    "ror %cl, %ax", OF;
    "ror $1, %eax", 0;
    "rcl %cl, %rax", OF;
    "rcl %cl, %eax", OF;
    "rcl %cl, %al", OF;
    "rcl $1, %ax", 0;
    "rcr %cl, %rax", OF;
    "rcr %cl, %ax", OF;
    "rcr $1, %rax", 0;
    "shld %cl, %rdx, %rax", SHIFT;
    "shrd %cl, %edx, %eax", SHIFT;
    "shld $1, %edx, %eax", AF;
    "shrd $1, %rdx, (%rsi)", AF;
    "mul %rcx", PRODUCT;
    "mul %ecx", PRODUCT;
    "mul %cx", PRODUCT;
    "mul %cl", PRODUCT;
    "imul %rcx", PRODUCT;
    "imul %ecx", PRODUCT;
    "imul %cl", PRODUCT;
    "imul %rcx, %rax", PRODUCT;
    "imul (%rsi), %ax", PRODUCT;
    "imul $-77, %ecx, %eax", PRODUCT;
    "imul $1000, %rcx, %rax", PRODUCT;
    "shr $1, %rdx\n bts $63, %rcx\n div %rcx", ALL;
    "xor %edx, %edx\n or $1, %ecx\n div %ecx", ALL;
    "movzx %al, %eax\n or $1, %cl\n div %cl", ALL;
    "cltq\n cqto\n or $1, %rcx\n idiv %rcx", ALL;
    "cwtl\n cltd\n or $1, %ecx\n idiv %ecx", ALL;
    "cbtw\n or $3, %cl\n and $0x7f, %cl\n idiv %cl", ALL;
    "cwtd", 0;
    "bt %rcx, %rax", BIT;
    "bts %ecx, %eax", BIT;
    "btr $13, %rax", BIT;
    "btc %cx, %ax", BIT;
    "and $127, %ecx\n bts %rcx, (%rsi)", BIT;
    "and $127, %ecx\n lock btr %ecx, (%rsi)", BIT;
    "btcq $40, 8(%rsi)", BIT;
    "bsf %rcx, %rax", SCAN;
    "bsr %rcx, %rax", SCAN;
    "bsr %cx, %ax", SCAN;
    "cmpxchg %rcx, %rax", 0;
    "cmpxchg %rcx, %rdx", 0;
    "lock cmpxchg %rcx, (%rsi)", 0;
    "mov (%rsi), %rax\n lock cmpxchg %rcx, (%rsi)", 0;
    "cmpxchg %ecx, (%rsi)", 0;
    "cmpxchg %cl, %dl", 0;
    "lock cmpxchg8b (%rsi)", 0;
    "xadd %rcx, %rax", 0;
    "lock xadd %ecx, (%rsi)", 0;
    "xadd %al, %ah", 0;
    "xchg %ax, %cx", 0;
    "xchg %rdx, (%rsi)", 0;
    "bswap %rax", 0;
    "push %rbx\n movzx %al, %ebx\n neg %rbx\n lea 1(%rsi, %rbx), %rbx\n xlat\n pop %rbx", ALL;
    "bts $40, %rcx\n rep bsf %rcx, %rax", ALL;
    "bswap %ecx", 0;
    "movzx %ah, %edx", 0;
    "movsbq %cl, %rax", 0;
    "movslq (%rsi), %rdx", 0;
    "movswl %cx, %eax", 0;
    "mov %cl, %ah", 0;
    "mov %cx, 3(%rsi)", 0;
    "lea 5(%rax, %rcx, 4), %edx", 0;
    "lea -9(%rbx, %rdx, 8), %rax", 0;
    "lea (%eax, %ecx), %rdx", 0;
    "seto %al\n setno %ah\n setb %cl\n setae %ch", 0;
    "sete %al\n setne %ah\n setbe %cl\n seta %ch", 0;
    "sets %al\n setns %ah\n setp %cl\n setnp %ch", 0;
    "setl %al\n setge %ah\n setle %cl\n setg %ch", 0;
    "cmovo %rcx, %rax\n cmovs %edx, %ebx", 0;
    "cmovbe %ecx, %eax\n cmovg %dx, %bx", 0;
    "cmovl (%rsi), %eax\n cmovnp %rdx, %rbx", 0;
    "jle 1f\n mov $5, %eax\n 1: jc 2f\n inc %dl\n 2:", 0;
    "mov $5, %ecx\n 1: add %ecx, %eax\n loop 1b", 0;
    "movzx %cl, %ecx\n or $1, %ecx\n 1: dec %eax\n cmp $3, %al\n loopne 1b", 0;
    "xor %ecx, %ecx\n jrcxz 1f\n inc %eax\n 1:", AF;
    "cmc\n adc %eax, %edx", 0;
    "stc\n sbb %rbx, %rbx", 0;
    "lahf\n inc %cl\n sahf", 0;
    "pushq %rcx\n pop %rax", 0;
    "push $-3\n popw %ax\n lea 6(%rsp), %rsp", 0;
    "xor %eax, %eax\n push %rbp\n mov %rsp, %rbp\n push %rcx\n leave", AF;
    "push %rdi\n mov %rsi, %rdi\n mov $13, %ecx\n rep stosb\n pop %rdi", 0;
    "push %rdi\n lea 8(%rsi), %rdi\n movsq\n pop %rdi", 0;
    "push %rdi\n lea 8(%rsi), %rdi\n mov $8, %ecx\n repe cmpsb\n pop %rdi", 0;
    "push %rdi\n mov %rsi, %rdi\n mov $16, %ecx\n repne scasb\n pop %rdi", 0;
    "std\n lea 8(%rsi), %rsi\n lodsl\n lodsw\n cld", 0;
}

type Case = [u64; 8];

/// An endless sequence of numbers, most of them at the edge of a width.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn operand(&mut self) -> u64 {
        let edges = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
        let number = self.next();
        let edge = edges[(number >> 8) as usize % edges.len()];
        match number % 5 {
            0 => self.next(),
            1 => self.next() >> (number >> 16 & 63),
            2 => edge,
            3 => !edge,
            _ => edge << 32 | self.next() & 0xffff,
        }
    }
}

fn code() -> &'static [u8] {
    program!(tgd_start, tgd_end)
}

fn cases() -> Vec<(usize, Case)> {
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    let mut cases = Vec::new();
    for piece in 0..PIECES.len() {
        for _ in 0..100 {
            let mut case = [0; 8];
            case[1..].fill_with(|| numbers.operand());
            case[5] = case[5] & ALL | 0x202;
            cases.push((piece, case));
        }
    }
    cases
}

fn natively(mut case: Case) -> Case {
    // SAFETY: `tgd_case` preserves the registers that the calling convention requires and declares the others as clobbered.
    // The pieces of code write only registers that the case names, the two words of the case, and the stack below.
    unsafe {
        asm!(
            "call tgd_case",
            in("rdi") case.as_mut_ptr(),
            out("rax") _, out("rcx") _, out("rdx") _, out("rsi") _,
            options(att_syntax)
        );
    }
    case
}

#[test]
fn arithmetic_is_the_processors() {
    let cases = cases();
    let code = code();
    let pieces = code.len() - PIECES.len() * STRIDE;
    let mut image = code.to_vec();
    image.resize((CASES - BASE) as usize, 0);
    image.extend((cases.len() as u64).to_le_bytes());
    for (piece, case) in &cases {
        let mut case = *case;
        case[0] = BASE + (pieces + piece * STRIDE) as u64;
        image.extend(case.iter().flat_map(|word| word.to_le_bytes()));
    }
    let output = run(&image, Machine { memory: 14 << 20, ..machine(Vendor::Intel) });
    assert_eq!(output.cut_short, None);
    let memory = output.memory.unwrap();
    let results = memory[CASES as usize + 8..].as_chunks::<64>().0;
    for ((piece, case), result) in cases.iter().zip(results) {
        let mut given = *case;
        given[0] = code.as_ptr() as u64 + (pieces + piece * STRIDE) as u64;
        let (text, undefined) = PIECES[*piece];
        let mut expected = natively(given);
        let mut found: Case = [0; 8];
        for (word, bytes) in found.iter_mut().zip(result.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        for case in [&mut expected, &mut found] {
            case[0] = 0;
            case[5] &= ALL & !undefined;
        }
        assert_eq!(found, expected, "{text} of {case:x?}: found, expected");
    }
}
