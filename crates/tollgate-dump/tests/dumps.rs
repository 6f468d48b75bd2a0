//! Whole pasted sessions, and the states that they must give.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use tollgate_dump::{Apart, DefectOf, FORMATS, Format, Joined, Origin, Session, join, read};
use tollgate_x86::{GateKind, Selector, WideGate, Width};

const THREE_SYSTEMS: &str = include_str!("dumps/kd-three-systems.txt");
/// An article on three systems whose headings name none, in another language, with prose between the pastes.
const ARTICLE: &str = include_str!("dumps/article-ja.txt");
const WINDOWS_7: &str = include_str!("dumps/kd-windows-7-x64.txt");
const QEMU_64: &str = include_str!("dumps/qemu-linux-64.txt");
const GDB: &str = include_str!("dumps/gdb.txt");

fn session(text: &[u8]) -> Session {
    let dump = read(text, None);
    assert_eq!(dump.complaints, []);
    assert_eq!(dump.cut, None);
    join(&dump, None)
}

fn one(text: &str) -> Joined {
    let mut session = session(text.as_bytes());
    assert_eq!(session.states.len(), 1, "{session:#?}");
    session.states.remove(0)
}

fn defects(state: &Joined) -> Vec<DefectOf> {
    state.defects.iter().map(|defect| defect.of).collect()
}

/// Returns the text as other programs may change it.
fn dresses(text: &str) -> Vec<Vec<u8>> {
    let utf16 = std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let quoted = text.lines().map(|line| format!("> {line}\n")).collect::<String>();
    let spaced = text.replace(' ', "\u{a0}");
    let coloured = text.replace("kd>", "\u{1b}[1;32mkd>\u{1b}[0m");
    vec![
        text.as_bytes().to_vec(),
        text.replace('\n', "\r\n").into_bytes(),
        utf16,
        quoted.into_bytes(),
        spaced.into_bytes(),
        coloured.into_bytes(),
    ]
}

#[test]
fn three_systems_in_one_paste() {
    let plain = session(THREE_SYSTEMS.as_bytes());
    for text in dresses(THREE_SYSTEMS) {
        let session = session(&text);
        assert_eq!(session.states.len(), 3, "{session:#?}");
        // The plain screen is a case of `tollgate decode`.
        for (state, plain) in session.states.iter().zip(&plain.states) {
            let all = |state: &Joined| {
                let tables = (&state.idtr, &state.memory, &state.printed_descriptors, &state.msrs);
                format!("{:?}", (state.lines, &state.width, tables, state.task(Width::Legacy)))
            };
            assert_eq!(all(state), all(plain));
        }
        assert!(
            session.states.iter().all(|state| state.contradictions.is_empty() && state.defects.is_empty())
        );
    }
}

#[test]
fn without_the_bytes_both_rows_give_the_base() {
    let rows: String =
        WINDOWS_7.lines().filter(|line| !line.starts_with("fffff800`")).map(|l| format!("{l}\n")).collect();
    let state = one(&rows);
    let task = state.task(Width::Long);
    assert_eq!(
        task.base.map(|(base, origin)| (base.value, origin)),
        Some((0xffff_f800_01d5_2080, Origin::Explained))
    );
}

#[test]
fn a_base_whose_low_half_is_sign_extended_is_put_together_too() {
    let rows = "tr=0040
0040 ffffffff`c40c1080 00000000`00000067 TSS32 Busy 0 Nb By P  Nl 0000008b
0048 00000000`0000ffff 00000000`0000f800 <Reserved> 0 Nb By Np Nl 00000000
";
    let state = one(rows);
    assert_eq!(state.task(Width::Long).base.map(|(base, _)| base.value), Some(0xffff_f800_c40c_1080));
    assert_eq!(defects(&state), [DefectOf::DgCutsBase, DefectOf::DgBogusRow]);
    let alone = one(&rows.lines().take(2).map(|line| format!("{line}\n")).collect::<String>());
    assert_eq!(alone.task(Width::Long).base, None, "half of an address is none");
}

#[test]
fn gdb_has_memory_and_registers_and_no_tables() {
    let state = one(GDB);
    assert_eq!(state.width.width, Some(Width::Long));
    assert_eq!(state.idtr.base, None);
    let gate = state.memory.read(0xffff_fe00_0000_0800, 16).unwrap();
    let gate = WideGate::decode(gate.value.try_into().unwrap());
    assert_eq!((gate.low.selector, gate.low.dpl), (Selector(0x10), 3));
    assert_eq!(gate.low.gate_kind(Width::Long), Some((GateKind::Interrupt, false)));
    assert_eq!(state.memory.read(0xffff_fe00_0000_1040, 8).unwrap().value[5], 0x8b);
    let named = format!("idtr=fffffe0000000000\ngdtr=fffffe0000001000\n{GDB}");
    let state = one(&named);
    assert_eq!(state.idt(Width::Long).iter().map(|gate| gate.vector).collect::<Vec<_>>(), [0x80, 0x81]);
    assert_eq!(
        state.gdt(Width::Long).iter().map(|entry| entry.selector).collect::<Vec<_>>(),
        [0, 8, 16, 24, 0x40]
    );
}

#[test]
fn a_gate_in_memory_is_found_after_any_line() {
    let row = "8003f570  cd 55 08 00 00 ee 86 80                          .U......\n";
    for text in [
        format!("{row}idtr=8003f400\n"),
        format!("idtr=8003f400\n{row}"),
        format!("idtr=8003f400 idtl=7ff\n{row}"),
    ] {
        let entries = one(&text).idt(Width::Legacy);
        assert_eq!(entries.iter().map(|entry| entry.vector).collect::<Vec<_>>(), [0x2e], "{text}");
    }
    let cut = one(&format!("idtr=8003f400\nidtl=16f\n{row}"));
    assert!(cut.idt(Width::Legacy).is_empty(), "the table ends before it");
}

#[test]
fn systems_differ_by_registers_that_a_machine_has_once() {
    let count = |text: &str| join(&read(text.as_bytes(), None), None).states.len();
    assert_eq!(count("idtr=8003f400\nidtr=8003f400\n"), 1);
    assert_eq!(count("idtr=8003f400\nidtr=8003f500\n"), 2);
    assert_eq!(count("tr=28\n\ntr=40\n"), 2);
    assert_eq!(count("msr[174] = 00000000`00000008\nmsr[174] = 00000000`00000010\n"), 2);
    assert_eq!(
        count("msr[c0000101] = 00000000`00000008\nmsr[c0000101] = 00000000`00000010\n"),
        1,
        "a base of a thread"
    );
    assert_eq!(count("eip=80000000\neip=80000010\n"), 1, "a program runs on");
    assert_eq!(count("8003f570  cd 55 08 00\n8003f570  cd 55 08 01\n"), 2);
    assert_eq!(count("8003f570  cd 55 08 00\n8003f572  08 00 00 ee\n"), 1);
    assert_eq!(count("idtr=8003f400\nmsr[c0000082] = fffff800`01024040\n"), 2, "the width changes");
    assert_eq!(count("0: kd> r tr\ntr=28\n1: kd> r cr0\ncr0=80010031\n"), 2, "another processor");
    assert_eq!(count("Windows XP\ntr=28\nWindows XP\nmsr[174] = 00000000`00000008\n"), 1, "the same name");
    let again = format!("{QEMU_64}{}", QEMU_64.replace("fffffe0000003000", "fffffe0000096000"));
    let session = join(&read(again.as_bytes(), None), None);
    assert_eq!(session.states.len(), 2);
    assert_eq!(
        session.states[1].registers.len(),
        session.states[0].registers.len(),
        "an answer is not taken apart"
    );
}

#[test]
fn what_does_not_agree_is_said_with_its_lines() {
    let said = |text: &str| {
        let state = one(text);
        state.contradictions.into_iter().map(|found| (found.lines, found.what)).collect::<Vec<_>>()
    };
    let table = "gdtr=80042000\ngdtl=3ff\n80042008  ff ff 00 00 00 9b cf 00\n";
    assert_eq!(said(&format!("{table}0008 00000000 ffffffff Code RE Ac 0 Bg Pg P  Nl 00000c9b\n")), []);
    assert_eq!(
        said(&format!("{table}0008 00000000 ffffffff Code RE Ac 3 Bg Pg P  Nl 00000cfb\n")),
        [(vec![3, 4], "selector 0008: the flags are cfb in the row and c9b in the bytes".to_owned())]
    );
    assert_eq!(
        said("idtr=8003f400 idtl=7ff\n8003f570  cd 55 08 00 00 ee 86 80\n2e:  808655ce nt!KiSystemService\n"),
        [(
            vec![2, 3],
            "vector 2e: the gate leads to 808655ce in the row and to 808655cd in the bytes".to_owned()
        )]
    );
    assert_eq!(
        said("idtr=8003f400 idtl=7f\n2e:  808655ce nt!KiSystemService\n"),
        [(vec![1, 2], "vector 2e is printed, and IDTR's limit is 7f".to_owned())]
    );
    let tss = "0020 c7ef7944 0000206b TSS32 Busy 0 Nb By P  Nl 0000008b\n";
    let qemu = "TR =0020 c7ef7940 0000206b 00008b00 DPL=0 TSS32-busy\n";
    assert_eq!(
        said(&format!("{qemu}{tss}")),
        [(
            vec![1, 2],
            "the TSS is at c7ef7940, and by its descriptor as it was explained at c7ef7944".to_owned()
        )]
    );
}

#[test]
fn a_hint_narrows_what_is_read() {
    let text = b"idtr=8003f400\n8003f570  cd 55 08 00\nffff0000009bcf00\n";
    let formats = |hint| read(text, hint).pieces.iter().map(|piece| piece.format).collect::<Vec<_>>();
    assert!(formats(Some(Format::Hex)).iter().all(|format| *format == Format::Hex));
    assert!(
        formats(Some(Format::Db)).contains(&Format::Db) && !formats(Some(Format::Db)).contains(&Format::Hex)
    );
}

#[test]
fn the_caller_s_word_counts_most() {
    let state = join(&read(b"idtr=8003f400", None), Some(Width::Long)).states.remove(0);
    assert_eq!((state.width.width, state.width.is_certain), (Some(Width::Long), true));
    assert_eq!(state.width.reasons[0].line, None);
}

#[test]
fn names_are_one_to_one_and_examples_are_read_as_what_they_are() {
    for spec in FORMATS {
        assert_eq!(Format::by_name(spec.name), Some(spec.format));
        assert_eq!(spec.format.spec().name, spec.name);
        for hint in [Some(spec.format), None] {
            let dump = read(spec.example.as_bytes(), hint);
            assert!(dump.complaints.is_empty(), "{}: {dump:?}", spec.name);
            assert!(dump.pieces.iter().all(|piece| piece.format == spec.format), "{}: {dump:?}", spec.name);
            // A field of a structure says nothing without the structure's name, which is on a line of its own.
            assert!(spec.format == Format::Dt || !dump.pieces.is_empty(), "{}: {dump:?}", spec.name);
        }
    }
}

/// Returns the text as a browser saves it.
fn as_html(text: &str) -> String {
    let escaped = |line: &str| line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let line = |line: &str| match line.chars().next() {
        Some('■') => format!("<h2>{}</h2>\n", escaped(&line[3..])),
        Some('●') => format!("<h3 class=\"sub\">{}</h3>\n", escaped(&line[3..])),
        Some(c) if !c.is_ascii() => format!("<p>{}</p>\n", escaped(line)),
        _ => format!("{}<br>\n", escaped(line)),
    };
    format!("<!DOCTYPE html>\n<html><body>\n{}</body></html>\n", text.lines().map(line).collect::<String>())
}

#[test]
fn an_article_whose_headings_name_no_system() {
    let without = |marks: &[char]| ARTICLE.replace(marks, "");
    let commands = |line: &&str| !line.contains("kd> ");
    let silent: String = ARTICLE.lines().filter(commands).map(|line| format!("{line}\n")).collect();
    let html = as_html(ARTICLE);
    // Prose in an unknown encoding.
    let latin: Vec<u8> =
        ARTICLE.chars().map(|c| if c.is_ascii() { c as u8 } else { 0x80 | (c as u32 as u8) }).collect();
    let mut texts = dresses(ARTICLE);
    texts.extend([without(&['■', '●']).into_bytes(), silent.into_bytes(), html.into_bytes(), latin]);
    for text in texts {
        let shown = String::from_utf8_lossy(&text).chars().take(60).collect::<String>();
        let dump = read(&text, None);
        let session = join(&dump, None);
        assert_eq!(dump.complaints, []);
        assert_eq!(session.states.len(), 3, "{shown}: {session:#?}");
        let [tables, sysenter, syscall] = session.states.as_slice() else { panic!() };
        assert_eq!(
            session.states.iter().map(|state| state.width.width).collect::<Vec<_>>(),
            [Some(Width::Legacy), Some(Width::Legacy), Some(Width::Long)],
            "{shown}"
        );
        let numbers = |state: &Joined| state.msrs.keys().copied().collect::<Vec<_>>();
        assert!(tables.msrs.is_empty(), "{shown}");
        assert_eq!(numbers(sysenter), [0x174, 0x175, 0x176], "{shown}");
        assert_eq!(numbers(syscall), [0xc000_0081, 0xc000_0082, 0xc000_0083, 0xc000_0084], "{shown}");
        assert_eq!(tables.idt(Width::Legacy)[0].vector, 0x2e, "{shown}");
        assert_eq!(tables.task(Width::Legacy).base.unwrap().0.value, 0x8004_2000, "{shown}");
        assert_eq!(
            tables.printed_descriptors.keys().copied().collect::<Vec<_>>(),
            [8, 0x10, 0x28],
            "{shown}"
        );
        assert_eq!(syscall.printed_descriptors.keys().copied().collect::<Vec<_>>(), [0x10, 0x18], "{shown}");
        // The instructions of programs are not memory.
        assert!(tables.memory.stretches().all(|(address, ..)| address >= 0x8000_0000), "{shown}");
        assert!(sysenter.memory.is_empty() && syscall.memory.is_empty(), "{shown}");
        assert!(session.states.iter().all(|state| state.contradictions.is_empty()), "{shown}");
    }
    let session = session(ARTICLE.as_bytes());
    let headings: Vec<&str> =
        session.states.iter().map(|state| state.heading.as_ref().unwrap().text.as_str()).collect();
    assert_eq!(headings, ["■int 2Eの実際", "■sysenterの実際", "■syscallの実際"]);
    let apart: Vec<Option<Apart>> = session.states.iter().map(|state| state.apart).collect();
    assert!(matches!(apart[..], [None, Some(Apart::Section(_)), Some(Apart::Width(_))]), "{apart:?}");
}

#[test]
fn prose_parts_what_nothing_ties_and_only_that() {
    const IDT: &str = "idtr=8003f400\n8003f570  cd 55 08 00 00 ee 86 80\n";
    const TR: &str = "tr=28\n0028 80042000 000020ab TSS32 Busy 0 Nb By P  Nl 0000008b\n";
    const SYSENTER: &str = "msr[174] = 00000000`00000008\nmsr[176] = 00000000`80865710\n";
    const SYSCALL: &str = "msr[c0000081] = 00230010`00000000\nmsr[c0000082] = fffff800`01024040\n";
    const CODE: &str = "0008 00000000 ffffffff Code RE Ac 0 Bg Pg P  Nl 00000c9b\n";
    const WIDE: &str = "0010 00000000`00000000 00000000`00000000 Code RE Ac 0 Nb By P  Lo 0000029b\n";
    let apart = |text: &str| {
        let session = join(&read(text.as_bytes(), None), None);
        session.states.iter().skip(1).map(|state| state.apart.unwrap()).collect::<Vec<_>>()
    };
    let prose = |parts: &[&str]| apart(&parts.join("\nNow we look at the next one.\n\n"));
    assert_eq!(prose(&[IDT, TR, CODE]), [], "the tables of one machine");
    assert_eq!(prose(&[IDT, SYSENTER]), [Apart::Prose(4)]);
    assert_eq!(prose(&[SYSENTER, CODE]), [], "SYSENTER_CS names it");
    assert_eq!(prose(&[SYSENTER, TR]), [Apart::Prose(4)]);
    assert_eq!(prose(&[SYSCALL, WIDE]), [], "STAR names it");
    assert_eq!(prose(&[WIDE, SYSCALL]), []);
    assert_eq!(prose(&[IDT, SYSCALL]), [Apart::Width(6)], "STAR alone shows its width");
    assert_eq!(prose(&[SYSENTER, SYSCALL]), [Apart::Width(6)]);
    assert_eq!(apart(&format!("{IDT}{SYSENTER}")), [], "one answer after the other");
    assert_eq!(apart(&format!("kd> r\n{IDT}lkd> r\n{SYSENTER}")), [Apart::Prose(4)], "another debugger");
    assert_eq!(apart(&format!("(qemu) x\n{IDT}(gdb) x\n{SYSENTER}")), [], "the two are used of one machine");
    // A heading of the outermost rank separates, one within a section does not.
    assert_eq!(apart(&format!("■ A\n{IDT}■ B\n{TR}")), [Apart::Section(4)]);
    assert_eq!(apart(&format!("■ A\n{IDT}● B\n{TR}● C\n{CODE}■ D\n{SYSENTER}")), [Apart::Section(9)]);
    assert_eq!(apart(&format!("Title\n=====\nA\n---\n{IDT}\nB\n---\n{TR}\nC\n---\n{CODE}")).len(), 2);
    assert_eq!(apart(&format!("1. r idtr\n{IDT}2. r tr\n{TR}")), [], "steps");
    // The caller can say that everything is from one machine.
    let all = read(format!("■ A\n{IDT}■ B\n{SYSENTER}").as_bytes(), None).of_one_machine();
    assert_eq!(join(&all, None).states.len(), 1);
}

/// A step for each pair of MSRs would be thousands of millions, and take minutes; other work adds nothing to the time of this thread.
#[test]
fn prose_between_many_msrs_does_not_take_the_square_of_their_number() {
    const MINUTE: i64 = 60;
    const NUMBER: u32 = 1 << 17;
    let rows = (0..NUMBER)
        .map(|at| format!("msr[{:x}] = 00000000`00000001\nAnd this is the next one of them.\n", 0x1000 + at));
    let dump = read(rows.collect::<String>().as_bytes(), None);
    let used = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_sec;
    let begun = used();
    assert_eq!(join(&dump, None).states[0].msrs.len(), NUMBER as usize);
    assert!(used() - begun < MINUTE);
}

#[test]
fn gates_of_16_bytes_that_were_listed_as_two() {
    let rows = |base: &str, limit: u32| {
        format!(
            "Interrupt Descriptor Table (base={base}, limit={limit}):
IDT[0x06]=32-Bit Interrupt Gate target=0x0008:0x00100010, DPL=3
IDT[0x07]=??? descriptor hi=0x00000000, lo=0xffff8000
IDT[0x1fe]=32-Bit Trap Gate target=0x0008:0x00100020, DPL=0
IDT[0x1ff]=??? descriptor hi=0x00000000, lo=0xffff8000
IDT[0x200]=??? descriptor hi=0x00000000, lo=0x00000000
"
        )
    };
    let state = one(&rows("0xffff800000010000", 0xffff));
    let gates: Vec<(u8, u64)> =
        state.printed_gates.iter().map(|(vector, rows)| (*vector, rows[0].value.offset.unwrap())).collect();
    assert_eq!(gates, [(3, 0xffff_8000_0010_0010), (0xff, 0xffff_8000_0010_0020)]);
    assert_eq!(state.printed_gates[&3][0].lines, [2, 3]);
    assert_eq!(defects(&state), [DefectOf::BochsHalvesGates]);
    let lone = "Interrupt Descriptor Table (base=0xffff800000010000, limit=65535):
IDT[0x06]=32-Bit Interrupt Gate target=0x0008:0x00100010, DPL=3
";
    let state = one(lone);
    assert!(state.width.width == Some(Width::Long) && state.printed_gates.is_empty(), "{state:#?}");
    assert_eq!(defects(&state), [DefectOf::BochsHalfGate]);
    assert_eq!(state.defects[0].lines, [2]);
    let state = one("Interrupt Descriptor Table (base=0xc0003160, limit=1031):
IDT[0x06]=32-Bit Interrupt Gate target=0x0008:0x00100010, DPL=3
EFER=0x00000000
");
    assert_eq!(
        state.printed_gates.keys().copied().collect::<Vec<_>>(),
        [6],
        "outside long mode it is the vector"
    );
}

#[test]
fn the_gates_of_an_idt_show_how_long_they_are() {
    const GATE: u64 = 0x0010_8e00_0008_0000;
    let table = |upper: u64| {
        let row =
            |at: u64| format!("0x{:016x} <bogus+0>:\t{:#018x}\t{upper:#018x}\n", 0x1000 + 16 * at, GATE + at);
        one(&format!("idtr:base=0x00001000, limit=0xffff\n{}", (0..4).map(row).collect::<String>()))
    };
    let long = table(0);
    assert_eq!((long.width.width, long.width.is_certain), (Some(Width::Long), false));
    assert_eq!(long.idt(Width::Long).iter().map(|entry| entry.vector).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let legacy = table(GATE);
    assert_eq!((legacy.width.width, legacy.width.is_certain), (Some(Width::Legacy), false));
    assert_eq!(legacy.idt(Width::Legacy).len(), 8);
}
