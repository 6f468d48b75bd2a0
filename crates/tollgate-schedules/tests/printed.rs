//! Printed listings, with their omissions and misspellings, read as the built-in programs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use tollgate_schedules::subject::{Checked, Subject, Wish};
use tollgate_schedules::{Limits, mips};

/// Figures of the paper as printed; each has other quirks.
const PRINTED: &[(&str, &str)] = &[
    (
        "figure-2",
        "図2: アトミックでない test-and-set\n// v0: the old value\ntst:\tlw\tv0, 0(a0)\n\tli\tt0, 1\n\tbnez\tv0, 1f\n\tsw\tt0, 0(a0)\n1:\tj\tra\n",
    ),
    (
        "figure-4",
        "0:  ll   v0, (a0)     // linked\n    li   t0, 1\n    bnez v0, 1f\n    nop\n    sc   t0, (a0)\n    beqz t0, 0b\n1:  jp   ra\n    nop\n",
    ),
    ("figure-5", "Figure 5. Halting the machine\n    di\n1:  b 1b\n"),
    (
        "figure-8",
        "0:\tlui\tt0,%hi(preempted)\n\taddui\tt0,%lo(preempted)\n\tsw\tzero,(t0)\t/* not\n yet */\n\tlw\tv0,(a0)\n\tli\tt1,1\n\tbnez\tv0,1f\n\tsw\tt1,(a0)\n\tlw\tt2,(t0)\n\tnop\n\tbnez\tt2,0b\n1:\tj ra\n\tnop\n",
    ),
    (
        "figure-9",
        "move k1,a0\nlw v0,(a0)\nnop\nbnez v0,1f\nnop\nli t0,1\nsw t0,(k1)   // faults after a preemption\n1: jp ra\n",
    ),
    (
        "figure-11",
        "move　k1，a0\nlw v0，（a0）\nli t0，1\nbnez v0，1f\nbne k1，a0，start\nsw t0，（k1）\n1： j　ra\n",
    ),
    (
        "figure-11",
        "0080d821\n8c820000\n24080001\n14400004\n00000000\n1764fffa\n00000000\naf680000\n03e00008\n00000000\n",
    ),
    (
        "figure-11",
        ".set noreorder\n.globl tst\nTST:\nMOVE K1,A0\nLW V0,(A0)\nLI T0,1\nBNEZ V0,1F\nNOP\nBNE K1,A0,START\nNOP\nSW T0,(K1)\n1: JR RA\nNOP\n",
    ),
    (
        "figure-11",
        ".set reorder\nmove $27,$4\nlw $2,($4)\nli $8,1\nbnez $2,1f\nbne $27,$4,start\nsw $8,($27)\n1: j $31\n",
    ),
    ("di-ei", "li t0,1\ndi\nsync.p\nlw v0,(a0)\nbnez v0,1f\nsw t0,(a0)\n1: ei\njp ra\n"),
];

fn check(subject: &dyn Subject) -> Checked {
    subject.check(subject.setting(Wish::default()).unwrap(), Limits::default())
}

fn built_in(name: &str) -> &'static dyn Subject {
    *mips::subjects().iter().find(|subject| subject.name() == name).unwrap()
}

fn instructions(subject: &dyn Subject) -> Vec<String> {
    subject
        .listing()
        .lines()
        .map(|line| line.split_whitespace().skip(2).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn a_printed_figure_is_the_built_in_program() {
    for (name, text) in PRINTED {
        let printed =
            mips::from_text("printed", text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        let built_in = built_in(name);
        // One load delay slot has the manufacturer's `sync.p`, and no `nop` is printed after its load.
        if *name != "di-ei" {
            assert_eq!(instructions(printed.as_ref()), instructions(built_in), "{text}");
            assert_eq!(check(printed.as_ref()).states, check(built_in).states, "{text}");
        }
        assert_eq!(check(printed.as_ref()).verdict, check(built_in).verdict, "{text}");
    }
}

#[test]
fn corrections_are_listed_with_their_lines() {
    let corrections = |at: usize| {
        let printed = mips::from_text("printed", PRINTED[at].1).unwrap();
        printed.corrections().iter().map(|c| format!("{}: {}", c.line, c.text)).collect::<Vec<_>>()
    };
    assert_eq!(
        corrections(0),
        [
            "1: `図2: アトミックでない test-and-set` is a caption and is left out",
            "5: a `nop` is put into the delay slot of `bnez v0, 1f`: `sw t0, 0(a0)` is for one path only",
            "7: `j ra` is read as `jr ra`",
            "7: a `nop` is put into the delay slot of `jr ra`: the listing ends with it",
        ]
    );
    assert_eq!(
        corrections(3),
        [
            "2: `addui t0,%lo(preempted)` is read as `addiu t0,%lo(preempted)`",
            "7: a `nop` is put into the delay slot of `bnez v0,1f`: `sw t1,(a0)` is for one path only",
            "11: a `nop` is put into the delay slot of `bnez t2,0b`: `jr ra` cannot be there",
            "12: `j ra` is read as `jr ra`",
        ]
    );
    let start = "5: no line has the label `start`; it is the first instruction";
    assert!(corrections(5).iter().any(|line| line == start), "{:?}", corrections(5));
    // Spellings of GNU as are not corrections.
    for at in [6, 7, 8] {
        let other: Vec<_> = corrections(at).into_iter().filter(|line| !line.contains("start")).collect();
        assert_eq!(other, [] as [&str; 0], "{}", PRINTED[at].1);
    }
    let halves = "lui t0,%hi()\naddui t0,%lo()\nlw v0,(t0)\njr ra\nnop";
    let halves = mips::from_text("printed", halves).unwrap();
    assert_eq!(halves.corrections().len(), 3);
    assert!(halves.corrections()[0].text.contains("`%hi(preempted)`"), "{:?}", halves.corrections());
}

#[test]
fn remarks_and_other_names_are_read_too() {
    let text = "lui t0,%hi(_flag)\naddiu t0,t0,%lo(_flag)\nsw zero,(t0)\nlw v0,(a0)  ← 古い値\nli t1,1\nbnez v0,1f\nnop\nここで書く\nsw t1,(a0)\nlw t2,(t0)\nnop\nbnez t2,start\nnop\n1: jr ra\nnop\n";
    let printed = mips::from_text("printed", text).unwrap();
    assert_eq!(instructions(printed.as_ref()), instructions(built_in("figure-8")));
    let said: Vec<String> = printed.corrections().iter().map(|c| format!("{}: {}", c.line, c.text)).collect();
    assert_eq!(
        said,
        [
            "1: `_flag` is read as `preempted`, the word that the kernel sets",
            "4: `← 古い値` is not an instruction and is left out",
            "8: `ここで書く` is not an instruction and is left out",
            "12: no line has the label `start`; it is the first instruction",
        ]
    );
}

#[test]
fn the_listing_of_each_built_in_program_is_that_program() {
    for built_in in mips::subjects() {
        let own = mips::from_text("own", &built_in.listing()).unwrap();
        assert_eq!(own.listing(), built_in.listing());
        assert_eq!(own.corrections(), [], "{}", built_in.name());
    }
}

/// Whichever delay slots a printer left out, the verdict is that of the complete program.
#[test]
fn any_delay_slots_may_be_missing() {
    for name in ["figure-2", "figure-4", "figure-5", "figure-8", "figure-9", "figure-11", "di-ei"] {
        let built_in = built_in(name);
        let verdict = check(built_in).verdict;
        let lines = with_labels(built_in);
        let jumps = |line: &str| line.contains(" b") || line.contains(" jr ");
        let slots: Vec<usize> = (1..lines.len()).filter(|&at| jumps(&lines[at - 1])).collect();
        for missing in 0..1_u32 << slots.len() {
            let is_missing = |at: usize| {
                slots.iter().position(|&slot| slot == at).is_some_and(|bit| missing >> bit & 1 == 1)
            };
            let text: Vec<&str> =
                (0..lines.len()).filter(|&at| !is_missing(at)).map(|at| lines[at].as_str()).collect();
            let printed = mips::from_text("printed", &text.join("\n")).unwrap();
            assert_eq!(check(printed.as_ref()).verdict, verdict, "{name}\n{}", text.join("\n"));
        }
    }
}

/// Returns the instructions of a program with a label each, and branches to these labels.
fn with_labels(subject: &dyn Subject) -> Vec<String> {
    let listing = subject.listing();
    let lines: Vec<Vec<&str>> = listing.lines().map(|line| line.split_whitespace().collect()).collect();
    let targets: Vec<&str> = lines.iter().filter_map(|line| line.last()?.rsplit(',').next()).collect();
    let name = |place: &str| place.replace("tst+0x", "at_").replace("tst", "at_0");
    let line = |line: &Vec<&str>| {
        let label = if targets.contains(&line[0]) { format!("{}:", name(line[0])) } else { String::new() };
        format!("{label} {}", name(&line[2..].join(" ")))
    };
    lines.iter().map(line).collect()
}

#[test]
fn what_an_assembler_takes_is_taken_as_it_stands() {
    // An instruction in a delay slot, C comments and idle directives are not misprints.
    let text = "start: move k1,a0 // once more\n.align 2\nlw v0,(a0)\nnop\nbnez v0,1f\nnop\nbne k1,a0,start\nli a0,1\nsw a0,(k1)\n1: jr ra\nnop";
    let own = mips::from_text("own", text).unwrap();
    assert_eq!(own.corrections(), []);
    assert_eq!(instructions(own.as_ref()), instructions(built_in("figure-11-argument-spoiled")));
    // With `.set noreorder` even code that no program should have is left alone.
    let stored = "lw v0,(a0)\nli t0,1\nbnez v0,1f\nsw t0,(a0)\n1: jr ra\nnop";
    let corrected = mips::from_text("own", stored).unwrap();
    assert_eq!((corrected.corrections().len(), instructions(corrected.as_ref()).len()), (1, 7));
    let literal = mips::from_text("own", &format!(".set noreorder\n{stored}")).unwrap();
    assert_eq!((literal.corrections().len(), instructions(literal.as_ref()).len()), (0, 6));
}
