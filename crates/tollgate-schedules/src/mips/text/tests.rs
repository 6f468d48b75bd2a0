use proptest::prelude::*;

use super::*;
use crate::mips::instruction::Instruction;
use crate::subject::{Rival, Verdict, Wish};
use crate::{Checked, Limits};

fn checked(text: &str) -> Checked {
    let subject = from_text("own", text).unwrap_or_else(|error| panic!("{error}"));
    subject.check(subject.setting(Wish::default()).unwrap(), Limits { states: 20_000, ..Limits::default() })
}

#[test]

fn directives_change_the_machine_and_the_question() {
    let figure_11 = crate::mips::programs::FIGURE_11;
    let verdict = |directives: &str| checked(&format!("{directives}\n{figure_11}")).verdict;
    assert_eq!(verdict(""), Verdict::Holds);
    assert_eq!(verdict(".processors 2"), Verdict::Violated(Harm::Exclusion));
    assert_eq!(verdict(".kernel k1=unset"), Verdict::Violated(Harm::Exclusion));
    assert_eq!(verdict(".kernel k1=unset-on-refill"), Verdict::Violated(Harm::Exclusion));
    assert_eq!(verdict(".handler none"), Verdict::Violated(Harm::Crash));
    assert_eq!(verdict(".handler resume"), Verdict::Violated(Harm::Stuck));
    assert_eq!(verdict(".handler resume\n.check exclusion lost-lock crash"), Verdict::Holds);
    assert_eq!(verdict(".locks 2"), Verdict::Holds);
    assert_eq!(checked(&format!("{figure_11}.processes 1\n.rounds 3")).setting.rounds, 3);
}

#[test]
fn what_the_model_sees_only_as_it_runs() {
    for (text, killed) in [
        (
            "lui t0,%hi(tst)\naddiu t0,%lo(tst)\nsw t0,(t0)\njr ra\nnop",
            "tst+0x8 (sw t0,(t0)): it stores to 0x01000000, in the page of tst, which can only be executed.",
        ),
        ("li t0,6\njr t0\nnop", "tst+0x4 (jr t0): it jumps to 6, which is not a multiple of 4."),
        ("jr zero\nnop", "tst (jr zero): it jumps to 0, where no memory is."),
        (
            "lw v0,(k1)\nnop\njr ra\nnop",
            "tst (lw v0,(k1)): it reads from 0x00200000, and the handler restarts tst only for a store.",
        ),
    ] {
        let checked = checked(text);
        assert_eq!(checked.verdict, Verdict::Violated(Harm::Crash), "{text}");
        assert_eq!(checked.counterexamples[0].so, format!("A is killed at {killed}"));
    }
    // A `tst` that always returns 1 waits forever; one that always returns 0 shares the lock.
    assert_eq!(checked("li v0,1\njr ra\nnop").verdict, Verdict::Violated(Harm::Stuck));
    assert_eq!(checked("jr ra\nli v0,0").verdict, Verdict::Violated(Harm::Exclusion));
}

#[test]
fn a_computed_jump_goes_where_it_says() {
    // Jumps over the instruction that would report the lock as taken, then returns through t1.
    let text = "lui t0,%hi(over)\naddiu t0,%lo(over)\nmove t1,ra\njr t0\nnop\nli v0,1\nover: jr t1\nnop";
    let checked = checked(&format!("{text}\n.processes 1"));
    assert_eq!((checked.verdict, checked.states), (Verdict::Holds, 11));
}

/// Lines that are almost right.
fn line() -> impl Strategy<Value = String> {
    let words = "lw sw ll sc move addiu li lui b bne beqz jr nop di ei syscall v0 a0 k1 t0 ra zero (a0) \
        %lo(preempted)(t0) %hi(lock) 1f 1b 1: tst tst+4 x: x , # ; .word 0x03e00008 -1 ( ) %lo( .check \
        .rounds .locks é f :";
    let word = prop::sample::select(words.split(' ').collect::<Vec<_>>());
    prop::collection::vec(word, 0..6).prop_map(|words| words.join(" "))
}

fn word() -> impl Strategy<Value = u32> {
    let register = prop::sample::select(vec![0_u32, 2, 4, 8, 9, 10, 27, 31]);
    let opcode = prop::sample::select(vec![0_u32, 4, 5, 9, 15, 35, 43, 48, 56]);
    let low =
        prop_oneof![-6_i16..6, prop::sample::select(vec![0x21, 0x25, 8, 12, 0x1000, 0x1821]), any::<i16>()];
    let plain = (opcode, register.clone(), register, low).prop_map(|(opcode, rs, rt, low)| {
        opcode << 26 | rs << 21 | rt << 16 | u32::from(low.cast_unsigned())
    });
    prop_oneof![8 => plain, 1 => prop::sample::select(vec![0x4200_0038, 0x4200_0039, 12, 0x03e0_0008, 0])]
}

proptest! {
    #[test]
    fn any_text_is_a_program_or_an_error_of_one_of_its_lines(
        text in prop_oneof![any::<String>(), prop::collection::vec(line(), 0..8).prop_map(|lines| lines.join("\n"))],
    ) {
        match from_text("own", &text) {
            Ok(subject) => prop_assert!(!subject.listing().is_empty()),
            Err(error) => {
                prop_assert!((1..=text.lines().count().max(1)).contains(&error.line));
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn what_is_shown_assembles_to_the_same_word(word in word()) {
        let Ok(instruction) = Instruction::decode(word) else { return Ok(()) };
        let text = format!("{}nop\nnop\nnop\n{}\nnop\njr ra\nnop\n", "nop\n".repeat(5), instruction.at(8));
        match from_text("own", &text) {
            Ok(subject) => {
                let listing = subject.listing();
                let shown = listing.lines().nth(8).unwrap();
                prop_assert!(shown.contains(&format!(" {word:08x}  ")), "{word:08x} {shown}");
            }
            // A branch out of this small program, or to its last instruction, after which it would run on.
            Err(error) => {
                let out = matches!(error.problem, Problem::Target { .. } | Problem::FallsOff);
                prop_assert!(out, "{error}");
            }
        }
    }

    /// Any words are refused, or every state that they reach is checked.
    #[test]
    fn any_words_run_without_surprise(words in prop::collection::vec(word(), 1..9), machine in 0..4_usize) {
        let machine = ["", ".kernel k1=unset", ".processors 2\n.handler none", ".handler resume\n.locks 2"][machine];
        let mut text: String = words.iter().map(|word| format!(".word 0x{word:08x}\n")).collect();
        text += "jr ra\nnop\n";
        if let Ok(subject) = from_text("own", &(text + machine)) {
            let setting = subject.setting(Wish::default()).unwrap();
            let checked = subject.check(setting, Limits { states: 3_000, ..Limits::default() });
            prop_assert!(checked.counterexamples.iter().all(|counterexample| counterexample.so.ends_with('.')));
            for point in 0..subject.points() {
                prop_assert!(!subject.play(point, Rival::GivesBack).unwrap().steps.is_empty());
            }
        }
    }
}

/// A listing copied from a page: line numbers, a sentence before and after it, a page number, typographic dashes, and
/// instructions written like directives.
#[test]
fn a_listing_is_read_as_it_is_pasted() {
    let pasted = "Figure 4. A lock by two instructions.\n\n1  0:  .ll v0,(a0)\n2      li t0,1\n3      bnez v0,1f\n4      nop\n        addiu t1,t0,\u{2212}1\n\n\
                  \u{c}                     7\n\n5      .sc t0,(a0)\n6      beqz t0,0b\n7      nop\n8  1:  jr ra\n9      nop\n\n\
                  The routine returns zero\nif the lock was free.\n";
    let subject = from_text("pasted", pasted).expect("a program");
    let said: Vec<String> = subject
        .corrections()
        .iter()
        .map(|correction| format!("{}: {}", correction.line, correction.text))
        .collect();
    assert_eq!(
        said,
        [
            "1: `Figure 4. A lock by two instructions.` is a caption and is left out",
            "3: `0:  .ll v0,(a0)` is read as `0:  ll v0,(a0)`",
            "9: it is not assembly and is skipped",
            "11: `.sc t0,(a0)` is read as `sc t0,(a0)`",
            "17: lines 17 to 18 are not assembly and are skipped",
        ]
    );
    let wrong = from_text("wrong", "tst: lwx v0,(a0)\njr ra\nnop\n");
    assert!(wrong.is_err_and(|error| error.line == 1), "a misspelt instruction is no prose");
}
