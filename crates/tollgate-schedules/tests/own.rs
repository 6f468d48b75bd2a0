//! Programs for x86 and litmus tests of herd7, from files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use proptest::prelude::*;

use tollgate_schedules::subject::{Subject, Wish};
use tollgate_schedules::{Checked, Harm, Limits, Verdict, from_text, tso};

const EXCLUSION: Verdict = Verdict::Violated(Harm::Exclusion);

fn subject(name: &str, text: &str) -> Box<dyn Subject> {
    from_text(name, text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn check(subject: &dyn Subject, wish: Wish) -> Checked {
    let checked = subject.check(subject.setting(wish).unwrap(), Limits::default());
    assert!(checked.complete);
    checked
}

fn verdict(text: &str) -> Verdict {
    check(subject("own.s", text).as_ref(), Wish::default()).verdict
}

fn said(text: &str) -> String {
    from_text("own", text).err().unwrap_or_else(|| panic!("is a program:\n{text}")).to_string()
}

/// Test, threads, question, and whether x86-TSO has an execution in which the condition holds: Owens, Sarkar, Sewell, "A
/// better x86 memory model: x86-TSO", TPHOLs 2009, and Maranget, "x86-TSO" of the diy tool suite.
const LITMUS: &[(&str, &[&[&str]], &str, bool)] = &[
    (
        "SB",
        &[&["MOV [x],$1", "MOV EAX,[y]"], &["MOV [y],$1", "MOV EAX,[x]"]],
        "exists (0:EAX=0 /\\ 1:EAX=0)",
        true,
    ),
    (
        "SB+mfences",
        &[&["MOV [x],$1", "MFENCE", "MOV EAX,[y]"], &["MOV [y],$1", "MFENCE", "MOV EAX,[x]"]],
        "exists (0:EAX=0 /\\ 1:EAX=0)",
        false,
    ),
    (
        "SB+mfence+po",
        &[&["MOV [x],$1", "MFENCE", "MOV EAX,[y]"], &["MOV [y],$1", "MOV EAX,[x]"]],
        "exists (0:EAX=0 /\\ 1:EAX=0)",
        true,
    ),
    (
        "SB+sfences",
        &[&["MOV [x],$1", "SFENCE", "MOV EAX,[y]"], &["MOV [y],$1", "LFENCE", "MOV EAX,[x]"]],
        "exists (0:EAX=0 /\\ 1:EAX=0)",
        true,
    ),
    (
        "SB+xchgs",
        &[&["MOV ECX,$1", "XCHG [x],ECX", "MOV EAX,[y]"], &["MOV ECX,$1", "XCHG ECX,[y]", "MOV EAX,[x]"]],
        "exists (0:EAX=0 /\\ 1:EAX=0)",
        false,
    ),
    (
        "SB+locked",
        &[&["lock inc dword ptr [x]", "mov eax,[y]"], &["lock addl $1,(y)", "movl (x),%eax"]],
        "exists (0:EAX=0 /\\ 1:EAX=0)",
        false,
    ),
    (
        "SB+rmw-without-lock",
        &[&["inc dword ptr [x]", "mov eax,[y]"], &["addl $1,(y)", "movl (x),%eax"]],
        "exists (0:EAX=0 /\\ 1:EAX=0)",
        true,
    ),
    (
        "MP",
        &[&["MOV [x],$1", "MOV [y],$1"], &["MOV EAX,[y]", "MOV EBX,[x]"]],
        "exists (1:EAX=1 /\\ 1:EBX=0)",
        false,
    ),
    (
        "LB",
        &[&["MOV EAX,[x]", "MOV [y],$1"], &["MOV EAX,[y]", "MOV [x],$1"]],
        "exists (0:EAX=1 /\\ 1:EAX=1)",
        false,
    ),
    (
        "S",
        &[&["MOV [x],$2", "MOV [y],$1"], &["MOV EAX,[y]", "MOV [x],$1"]],
        "exists (x=2 /\\ 1:EAX=1)",
        false,
    ),
    ("R", &[&["MOV [x],$1", "MOV [y],$1"], &["MOV [y],$2", "MOV EAX,[x]"]], "exists (y=2 /\\ 1:EAX=0)", true),
    ("2+2W", &[&["MOV [x],$2", "MOV [y],$1"], &["MOV [y],$2", "MOV [x],$1"]], "exists (x=2 /\\ y=2)", false),
    (
        "n6",
        &[&["MOV [x],$1", "MOV EAX,[x]", "MOV EBX,[y]"], &["MOV [y],$2", "MOV [x],$2"]],
        "exists (0:EAX=1 /\\ 0:EBX=0 /\\ x=1)",
        true,
    ),
    (
        "n5",
        &[&["MOV [x],$1", "MOV EAX,[x]"], &["MOV [x],$2", "MOV EAX,[x]"]],
        "exists (0:EAX=2 /\\ 1:EAX=1)",
        false,
    ),
    (
        "n4b",
        &[&["MOV EAX,[x]", "MOV [x],$1"], &["MOV EAX,[x]", "MOV [x],$2"]],
        "exists (0:EAX=2 /\\ 1:EAX=1)",
        false,
    ),
    (
        "iwp2.4",
        &[&["MOV [x],$1", "MOV EAX,[x]", "MOV EBX,[y]"], &["MOV [y],$1", "MOV EAX,[y]", "MOV EBX,[x]"]],
        "exists (0:EAX=1 /\\ 0:EBX=0 /\\ 1:EAX=1 /\\ 1:EBX=0)",
        true,
    ),
    (
        "WRC",
        &[&["MOV [x],$1"], &["MOV EAX,[x]", "MOV [y],$1"], &["MOV EAX,[y]", "MOV EBX,[x]"]],
        "exists (1:EAX=1 /\\ 2:EAX=1 /\\ 2:EBX=0)",
        false,
    ),
    (
        "RWC",
        &[&["MOV [x],$1"], &["MOV EAX,[x]", "MOV EBX,[y]"], &["MOV [y],$1", "MOV EAX,[x]"]],
        "exists (1:EAX=1 /\\ 1:EBX=0 /\\ 2:EAX=0)",
        true,
    ),
    (
        "IRIW",
        &[&["MOV [x],$1"], &["MOV EAX,[x]", "MOV EBX,[y]"], &["MOV [y],$1"], &["MOV EAX,[y]", "MOV EBX,[x]"]],
        "exists (1:EAX=1 /\\ 1:EBX=0 /\\ 3:EAX=1 /\\ 3:EBX=0)",
        false,
    ),
    (
        "lost-update",
        &[&["MOV EAX,[x]", "INC EAX", "MOV [x],EAX"], &["MOV EAX,[x]", "INC EAX", "MOV [x],EAX"]],
        "exists x=1",
        true,
    ),
    (
        "xadd",
        &[&["MOV EAX,$1", "LOCK XADD [x],EAX"], &["MOV EAX,$1", "LOCK XADD [x],EAX"]],
        "exists (~x=2)",
        false,
    ),
    (
        "cmpxchg",
        &[&["MOV ECX,$1", "LOCK CMPXCHG [x],ECX"], &["MOV ECX,$2", "LOCK CMPXCHG [x],ECX"]],
        "exists (0:EAX=0 /\\ 1:EAX=0)",
        false,
    ),
];

/// Writes a test as herd7 does: threads in columns.
fn litmus(name: &str, threads: &[&[&str]], question: &str) -> String {
    let rows = threads.iter().map(|thread| thread.len()).max().unwrap();
    let names: Vec<String> = (0..threads.len()).map(|at| format!(" P{at} ")).collect();
    let mut text = format!("X86 {name}\n\"a comment\"\n{{ x=0; y=0; }}\n{} ;\n", names.join("|"));
    for row in 0..rows {
        let cells: Vec<&str> = threads.iter().map(|thread| thread.get(row).copied().unwrap_or("")).collect();
        text += &format!(" {} ;\n", cells.join(" | "));
    }
    text + question + "\n"
}

#[test]
fn litmus_tests_have_the_answers_of_x86_tso() {
    for &(name, threads, question, allowed) in LITMUS {
        let of =
            |question: &str| check(subject(name, &litmus(name, threads, question)).as_ref(), Wish::default());
        let checked = of(question);
        let expected = if allowed { Verdict::Allowed } else { Verdict::Forbidden };
        assert_eq!(checked.verdict, expected, "{name}");
        assert_eq!(checked.outcomes.iter().any(|outcome| outcome.holds), allowed, "{name}");
        assert_eq!(checked.counterexamples.is_empty(), !allowed, "{name}");
        // The same question as a property.
        let never = of(&format!("~{question}"));
        let violated = Verdict::Violated(Harm::Condition);
        assert_eq!(never.verdict, if allowed { violated } else { Verdict::Holds }, "{name}");
        let all = of(&question.replace("exists", "forall"));
        assert_eq!(all.verdict == Verdict::Holds, all.outcomes.iter().all(|outcome| outcome.holds), "{name}");
    }
}

#[test]
fn final_states_are_those_that_herd7_lists() {
    let &(name, threads, question, _) = &LITMUS[0];
    let text = litmus(name, threads, &format!("locations [x;]\n{question}\nHash=0"));
    let checked = check(subject("sb", &text).as_ref(), Wish::default());
    let states: Vec<(&str, bool)> =
        checked.outcomes.iter().map(|state| (state.values.as_str(), state.holds)).collect();
    assert_eq!(
        states,
        [
            ("0:EAX=0; 1:EAX=0; x=1;", true),
            ("0:EAX=0; 1:EAX=1; x=1;", false),
            ("0:EAX=1; 1:EAX=0; x=1;", false),
            ("0:EAX=1; 1:EAX=1; x=1;", false),
        ]
    );
    // On one processor no load overtakes a store.
    let one = Wish { processors: Some(1), ..Wish::default() };
    assert_eq!(check(subject("sb", &text).as_ref(), one).verdict, Verdict::Forbidden);
    let filtered = litmus(name, threads, "filter (0:EAX=1)\nexists (1:EAX=0)");
    assert_eq!(check(subject("sb", &filtered).as_ref(), Wish::default()).verdict, Verdict::Allowed);
    let filtered = litmus(name, threads, "filter (0:EAX=0)\nforall (1:EAX=1)");
    assert_eq!(
        check(subject("sb", &filtered).as_ref(), Wish::default()).verdict,
        Verdict::Violated(Harm::Condition)
    );
}

#[test]
fn without_preemption_a_process_loses_its_processor_where_it_enters_the_kernel() {
    let body = |between: &str| {
        format!(
            "lw v0,(a0)\nmove t2,a0\nbnez v0,1f\nnop\n{between}li t0,1\nsw t0,(t2)\nli v0,0\n1: jr ra\nnop\n"
        )
    };
    let none = ".preemption none\n";
    assert_eq!(verdict(&body("")), Verdict::Violated(Harm::Exclusion));
    assert_eq!(verdict(&format!("{none}{}", body(""))), Verdict::Holds);
    // A system call on another word, between the load and the store.
    let call = "lui a0,%hi(preempted)\naddiu a0,a0,%lo(preempted)\nsyscall\n";
    let text = format!("{none}{}", body(call));
    let checked = check(subject("own.s", &text).as_ref(), Wish::default());
    assert_eq!(checked.verdict, Verdict::Violated(Harm::Exclusion));
    let steps: Vec<String> = checked.counterexamples[0].steps.iter().map(|step| step.what.clone()).collect();
    let called = steps.iter().position(|what| what == "test-and-set for A").unwrap();
    assert_eq!(steps[called + 1..called + 3], ["A goes on at tst+0x1c", "B goes on"], "{steps:#?}");
    assert!(
        from_text("own.s", ".preemption some\njr ra\nnop")
            .err()
            .unwrap()
            .to_string()
            .contains(".preemption none")
    );
}

/// Algorithm 2 of Lamport, "A fast mutual exclusion algorithm", as printed, and in the style of Pascal, and of C with the
/// paper's brackets.
#[test]
fn pseudocode_is_read_by_its_steps() {
    let printed = "\
start: ⟨b[i] := true⟩;
  ⟨x := i⟩;
  if ⟨y ≠ 0⟩ then ⟨b[i] := false⟩;
    await ⟨y = 0⟩;
    goto start fi;
  ⟨y := i⟩;
  if ⟨x ≠ i⟩ then ⟨b[i] := false⟩;
    for j := 1 to N do await ⟨¬b[j]⟩ od;
    if ⟨y ≠ i⟩ then await ⟨y = 0⟩;
      goto start fi fi;
  critical section;
  ⟨y := 0⟩;
  ⟨b[i] := false⟩
";
    let pascal = "\
.processors 1
(* with begin
   and end *)
start: b[i] := true; x := i;
if <y <> 0> then begin b[i] := false; await y = 0; goto start end;
y := i;  // a remark
if x <> i then begin
  b[i] := 0;
  for j := 1 to N do await not b[j];
  if not (y = i) then begin await (y = 0); goto start; end
end;
critical section; y := 0; b[i] := false;
";
    let braces = "\
start:
  <b[i]=true>;
  <x=i>;
  if (<y != 0>) {
    <b[i]=false>;
    await (<y == 0>);
    goto start;
  }
  <y=i>;
  if (<x != i>) {
    <b[i]=false>;
    for (j = 1; j <= N; j++) {
      await (<!b[j]>);
    }
    if (<y != i>) { await <y == 0>; goto start; }
  }
  critical section;
  <y=0>;
  <b[i]=false>;
";
    let one = Wish { processors: Some(1), ..Wish::default() };
    let lamport = tollgate_schedules::subjects().find(|subject| subject.name() == "lamport-up").unwrap();
    for text in [printed, pascal, braces] {
        let own = subject("lamport.txt", text);
        assert_eq!(own.cost(), lamport.cost(), "{}", own.listing());
        assert_eq!(check(own.as_ref(), one).verdict, Verdict::Holds, "{}", own.listing());
        let two = Wish { processors: Some(2), ..Wish::default() };
        assert_eq!(check(own.as_ref(), two).verdict, Verdict::Violated(Harm::Exclusion));
    }
    assert_eq!(subject("two", pascal).setting(Wish::default()).unwrap().processors, 1);
    for (text, wrong) in [
        ("x := 1;\nrepeat y := 0", "line 2: `repeat` does not begin a statement; write `x := 1`"),
        ("if x = 1 then y := 0; await x", "line 1: the program has no line `critical section`"),
        ("if x = 1 then y := 0; fi fi", "line 1: `fi` does not begin a statement"),
        ("x := 1; if x = 1 then\nawait x = 0; endif; if y then", "line 2: `fi` is missing"),
        (
            "for k := 1 to N do await not b[k] od",
            "line 1: the only known loop is `for j := 1 to N do await ¬b[j] od`",
        ),
        ("<x=1>; if (<y != 0>) {", "line 1: `end` is missing"),
        ("if x < 1 then y := 2 fi", "line 1: `1` does not begin a statement"),
    ] {
        let said = from_text("own", text).err().unwrap().to_string();
        assert!(said.starts_with(wrong), "{text}: {said}");
    }
    let deep = format!("x := 1; {}", "if x then ".repeat(40));
    assert!(from_text("own", &deep).err().unwrap().to_string().contains("`if` is nested more than 16"));
    let deep = format!("x := 1; {}", "{".repeat(100_000));
    assert!(from_text("own", &deep).err().unwrap().to_string().contains("more than 16 `begin`"));
}

proptest! {
    #[test]
    fn no_pseudocode_panics(words in prop::collection::vec(0..WORDS.len(), 0..60)) {
        let text: Vec<&str> = words.into_iter().map(|word| WORDS[word]).collect();
        let _ = from_text("own", &format!("x := 1; {}", text.join(" ")));
    }
}

const WORDS: [&str; 29] = [
    "{",
    "}",
    "while",
    "if",
    "then",
    "fi",
    "begin",
    "end",
    "await",
    "for",
    "j",
    ":=",
    "1",
    "to",
    "N",
    "do",
    "od",
    "not",
    "b[j]",
    "b[i]",
    "x",
    "≠",
    "=",
    "<",
    ">",
    ";",
    ":",
    "goto",
    "critical\n",
];

#[test]
fn on_x86_too_a_process_keeps_its_processor_through_the_lock() {
    let lock = "lock: mov eax,[word]\ntest eax,eax\njnz lock\nword = 1\ncritical section\nword = 0\n";
    let on = |processors: u8, preemption: &str| {
        let text = format!(".machine x86\n.processors {processors}\n.preemption {preemption}\n{lock}");
        verdict(&text)
    };
    assert_eq!(on(1, "any"), Verdict::Violated(Harm::Exclusion));
    assert_eq!(on(1, "none"), Verdict::Holds);
    assert_eq!(on(2, "none"), Verdict::Violated(Harm::Exclusion));
    let error = from_text("own.s", ".machine x86\n.preemption no\nx = 1").err().unwrap().to_string();
    assert!(error.contains("`.preemption none` or `.preemption any`, not with `no`"), "{error}");
}

/// Forms of herd7 that the tests above do not have.
#[test]
fn litmus_tests_are_read_in_their_forms() {
    let text = "X86_64 forms\n(* a (* nested *) comment\n over lines *)\nOrig=PodWR Fre\n{\nint x=2; uint64_t y; 0:rdi=x; 1:RSI=y;\n 1:rcx=3;\n}\n \
        P0 | P1 ;\n movl (%rdi),%eax | L0: ;\n cmpl $2,%eax | movq %rcx,(%rsi) ;\n jne L1 | jmp L2 ;\n movl $7,%ebx | movl $9,(x) ;\n L1: | L2: ;\n\
        exists\n(0:rbx=7 /\\ not (0:%rax<>2)\n /\\ (y=1 \\/ [y]=3)) (* the end *)\nGenerated assembler\n";
    let test = subject("forms.litmus", text);
    let checked = check(test.as_ref(), Wish::default());
    assert_eq!(checked.verdict, Verdict::Allowed);
    assert_eq!(checked.outcomes.len(), 1);
    assert_eq!(checked.outcomes[0].values, "0:%rax=2; 0:rbx=7; y=3;");
    assert_eq!(test.condition(), Some("exists (0:rbx=7 /\\ not (0:%rax<>2) /\\ (y=1 \\/ [y]=3))"));
    assert!(
        matches!(test.play(0, tollgate_schedules::subject::Rival::GivesBack), Err(error) if error.to_string().contains("no single"))
    );
    let wish = Wish { processes: Some(3), ..Wish::default() };
    assert_eq!(test.setting(wish).unwrap_err().to_string(), "forms.litmus runs with 2 processes, not with 3");
}

#[test]
fn litmus_tests_that_are_none_say_why() {
    let head = "X86 t\n{ x=0; }\n";
    for (text, wrong) in [
        (
            "AArch64 MP\n{}\nP0;\nexists x=1".to_owned(),
            "line 1: this test is for AArch64; the model has the store buffers",
        ),
        ("C SB\n{}\n".to_owned(), "line 1: this test is for C"),
        ("X86 t\nP0 ;\n".to_owned(), "line 2: the test has no first values"),
        (format!("{head}exists x=1"), "line 3: the test has no threads"),
        (format!("{head}P0 ;\nMOV [x],$1 ;\n"), "line 4: the test has no question"),
        (format!("{head}P1 ;\nMOV [x],$1 ;\nexists x=1"), "line 3: `P1` is not the name of thread 0"),
        (
            format!("{head}P0 ;\n\nMOW [x],$1 ;\nexists x=1"),
            "line 5: `MOW [x],$1` is not a line of a program",
        ),
        (
            format!("{head}P0 ;\nMOV [x] ;\nexists x=1"),
            "line 4: `MOV` is written `MOV [x],1` or `mov eax,[x]`; this has 1 operand",
        ),
        (format!("{head}P0 ;\nMOV [x],[y] ;\nexists x=1"), "line 4: `MOV` has two places in memory"),
        (
            format!("{head}P0 ;\nMOV [x],$256 ;\nexists x=1"),
            "line 4: 256 is out of range; the model keeps bytes",
        ),
        (format!("{head}P0 ;\nMOV [EAX],$1 ;\nexists x=1"), "line 4: `EAX` holds no address of a variable"),
        (
            format!("{head}P0 ;\nLOCK MOV [x],$1 ;\nexists x=1"),
            "line 4: lock cannot stand before `LOCK MOV [x],$1`",
        ),
        (format!("{head}P0 ;\nJMP L9 ;\nexists x=1"), "line 4: there is no label `L9`"),
        (
            format!("{head}P0 ;\nL: JMP L ;\nexists x=1"),
            "line 4: the jumps lead back to this one without a step",
        ),
        (
            format!("{head}P0 ;\n MFENCE | MFENCE ;\nexists x=1"),
            "line 4: this row has 2 cells, and there are 1 threads",
        ),
        (
            format!("{head}P0 ;\nMFENCE ;\nexists (1:EAX=0)"),
            "line 5: there is no thread 1; the threads are 0 to 0",
        ),
        (format!("{head}P0 ;\nMFENCE ;\nexists (0:X0=0)"), "line 5: `X0` is not a register of the model"),
        (format!("{head}P0 ;\nMFENCE ;\nexists (x=0"), "line 5: the condition has `(` without `)`"),
        (format!("{head}P0 ;\nMFENCE ;\nexists x"), "line 5: `x` is not a comparison"),
        (format!("{head}P0 ;\nMFENCE ;\nexists"), "line 5: `exists` asks for nothing"),
        (
            format!("{head}P0|P1|P2|P3|P4 ;\nMFENCE ;\nexists x=1"),
            "line 3: the test has 5 threads; the model has room for 4",
        ),
        ("X86 t\n{ 0:RAX=x; }\nP0 ;\nMOV EAX,$1 ;\nexists x=1".to_owned(), "line 3: P0 uses eax as a number"),
        (
            format!("{head}P0 ;\nMFENCE ;\nexists {}x=1{}", "(".repeat(99), ")".repeat(99)),
            "line 5: the condition is nested",
        ),
        (
            format!("{head}P0 ;\nMFENCE ;\nexists x=1{}", " /\\ x=1".repeat(200)),
            "line 5: the condition has more than 100",
        ),
    ] {
        assert!(said(&text).starts_with(wrong), "{text}\n{}", said(&text));
    }
}

/// The listing of a built-in program reads as a program with the same states.
#[test]
fn the_listing_of_each_built_in_program_is_that_program() {
    for built_in in tso::subjects() {
        let processors = built_in.setting(Wish::default()).unwrap().processors;
        let text = format!(".processors {processors}\n{}", built_in.listing());
        let (own, built_in) =
            (check(subject("own", &text).as_ref(), Wish::default()), check(*built_in, Wish::default()));
        assert_eq!(
            (own.verdict, own.states, own.setting),
            (built_in.verdict, built_in.states, built_in.setting)
        );
    }
}

#[test]
fn locks_of_x86_hold_or_do_not() {
    let spin = "lock: mov eax,1\nxchg [word],eax\ntest eax,eax\njnz lock\ncritical section\nmov [word],0";
    assert_eq!(verdict(spin), Verdict::Holds);
    // Without the lock of xchg.
    let split =
        "lock: cmp dword ptr [word],0\njne lock\nmov dword ptr [word],1\ncritical section\nmov [word],0";
    assert_eq!(verdict(split), EXCLUSION);
    for (prefix, expected) in [("lock ", Verdict::Holds), ("", EXCLUSION)] {
        let ticket = format!(
            "1: mov ecx,1\nxor eax,eax\n{prefix}cmpxchg [word],ecx\njne 1b\ncritical section\nmov [word],0"
        );
        assert_eq!(verdict(&ticket), expected, "{ticket}");
        let ticket = format!(
            "movl $1,%eax\n{prefix}xadd %eax,(next)\n1: cmpl %eax,(serving)\njne 1b\ncritical section\naddl $1,(serving)"
        );
        assert_eq!(verdict(&ticket), expected, "{ticket}");
    }
    // Dekker's first step, with and without its fence.
    let flags = |fence: &str| {
        format!(
            "flag[i] = 1\n{fence}\ncmp i,1\nje first\nif flag[1] != 0 goto out\ngoto in\nfirst: if flag[2] != 0 goto out\nin: critical section\nout: flag[i] = 0\n"
        )
    };
    assert_eq!(verdict(&flags("mfence")), Verdict::Holds);
    assert_eq!(verdict(&flags("lock or [dummy],0")), Verdict::Holds);
    assert_eq!(verdict(&flags("")), EXCLUSION);
    assert_eq!(verdict(&format!(".processors 1\n{}", flags(""))), Verdict::Holds);
    // It waits for a value that is never stored.
    assert_eq!(verdict(".init free=1\nwait until free == 0\ncritical"), Verdict::Violated(Harm::Stuck));
    assert_eq!(verdict(".init free=0\n.processes 1\nwait until free == 0\ncritical"), Verdict::Holds);
}

/// The spin lock as Sewell and others print it ("x86-TSO", CACM 53(7), 2010), whose word is initially 1, and as compilers
/// and the GNU assembler write it.
#[test]
fn a_spin_lock_is_read_in_each_of_its_forms() {
    const HOLDS: Verdict = Verdict::Holds;
    let printed = |release: &str| {
        format!(
            ".init [eax]=1\nacquire: LOCK DEC [EAX]    ; LOCK'd decrement of [EAX]\n JNS enter ; branch if [EAX] was >= 1\n\
             spin: CMP [EAX],0 ; test [EAX]\n JLE spin\n JMP acquire ; try again\nenter: critical section\n\
             release: {release}\n"
        )
    };
    let gnu = |lock: &str, spin: &str, word: &str, release: &str| {
        format!(
            ".init {word}=1\n1: {lock} {word}\n jns 3f\n2: {spin}\n cmpl $0,{word}\n jle 2b; jmp 1b\n3: critical section\n {release}\n"
        )
    };
    for (text, expected) in [
        (printed("MOV [EAX],1"), HOLDS),
        (printed("MOV [EAX]←1"), HOLDS),
        (printed("MOV [EAX]←1").replace("LOCK DEC", "DEC"), EXCLUSION),
        (gnu("lock; decl", "rep; nop", "y", "movl $1,y"), HOLDS),
        (gnu("lock ; decl", "rep nop", "y", "movl $1,y"), HOLDS),
        (gnu("decl", "pause", "y", "movl $1,y; nop"), EXCLUSION),
        (gnu("lock decl", "rep; nop", "y", "movl $1,y; rep; ret"), HOLDS),
    ] {
        assert_eq!(verdict(&text), expected, "{text}");
    }
    let uninitialised = printed("MOV [EAX],1").replace(".init [eax]=1\n", "");
    let said: Vec<String> =
        subject("own", &uninitialised).corrections().iter().map(|it| it.text.clone()).collect();
    assert_eq!(
        said,
        [
            "eax holds the address of the word [eax], which begins with 0; `.init [eax]=1` gives it another value"
        ]
    );
    // Registers with addresses, also with a distance.
    for (word, written) in [("[rdi]", "(%rdi)"), ("[rdi+4]", "4(%rdi)")] {
        let text = gnu("lock; decl", "rep; nop", "y", "movl $1,y");
        let text =
            text.replace(".init y", &format!(".init {word}")).replace(" y\n", &format!(" {written}\n"));
        assert_eq!(verdict(&text.replace(",y", &format!(",{written}"))), HOLDS, "{text}");
    }
}

/// Peterson, "Myths about the mutual exclusion problem", 1981, which x86 breaks without a fence.
#[test]
fn conditions_are_read_comparison_by_comparison() {
    let peterson = |wait: &str| {
        format!("flag[i] := true;\nturn := i;\nmfence;\n{wait};\ncritical section;\nflag[i] := false\n")
    };
    let sentences =
        |wait: &str| format!("flag[i] = 1\nturn = i\nmfence\nTry: {wait}\ncritical section\nflag[i] = 0\n");
    for wait in [
        "await flag[j] = 0 or turn ≠ i",
        "await ¬flag[j] or turn ≠ i",
        "await not (flag[j] and turn = i)",
        "await ⟨¬flag[j] ∨ turn = j⟩",
        "while flag[j] and turn = i do skip od",
        "while (flag[j] && turn != j) do skip",
        "again: if flag[j] ∧ turn = i then goto again fi",
    ] {
        let text = peterson(wait);
        assert_eq!(verdict(&text), Verdict::Holds, "{text}");
        assert_eq!(verdict(&text.replace("mfence;", "")), EXCLUSION, "{wait}");
        // Each half alone is too weak, or waits forever.
        let listing = subject("own", &text).listing();
        assert_eq!(listing.matches("flag[j]").count(), 1, "{listing}");
    }
    for wait in [
        "wait until flag[j] == 0 or turn != i",
        "wait until ¬flag[j] or turn ≠ i",
        "if flag[j] and turn == i goto Try",
    ] {
        let text = sentences(wait);
        assert_eq!(verdict(&text), Verdict::Holds, "{text}");
        assert_eq!(verdict(&text.replace("mfence\n", "")), EXCLUSION, "{wait}");
    }
    // *and* binds more tightly, and the second comparison is skipped if the first one decides.
    let steps = |condition: &str| {
        let text = format!("if {condition} then x := 1 fi; critical section");
        subject("own", &text).listing().lines().map(|line| line[4..].trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        steps("a = 1 or b = 1 and c = 1")[..4],
        ["if a == 1 goto and2", "if b != 1 goto fi1", "if c != 1 goto fi1", "and2: x = 1"]
    );
    let two = subject("own", &peterson("await ¬flag[j]"));
    let refused = two.setting(Wish { processes: Some(3), ..Wish::default() }).unwrap_err().to_string();
    assert_eq!(refused, "own runs with 1 to 2 processes, not with 3");
    for (text, problem) in [
        (
            ".processes 3\nawait ¬flag[j]\ncritical section\nx := 1",
            "j is the other process of two, and there are 3; write `.processes 2`",
        ),
        ("x := 1; await or x = 1", "`or` does not begin a condition"),
        ("x := 1; await x = 1 and", "`` does not begin a condition"),
    ] {
        assert!(said(text).contains(problem), "{}", said(text));
    }
}

#[test]
fn x86_programs_that_are_none_say_why() {
    for (text, wrong) in [
        ("x = 1", "line 1: the program has no line `critical section`"),
        ("x = 1\ncritical section\nx := 1", "line 1: `x` does not begin a statement"),
        (
            "critical section\nmov eax,1\nmovx eax,1",
            "line 3: `movx eax,1` is not a line of a program; write `x = 1`",
        ),
        ("critical section\nif x > 1 goto end", "line 2: `if x > 1 goto end` is not a line of a program"),
        (
            "critical section\nif x == 1 goto out",
            "line 2: there is no label `out`; `end` is after the last line",
        ),
        ("critical section\nx = 1\nx[i] = 1", "line 3: `x` is one word for all processes here; write x"),
        ("critical section\nx[i] = 1\nx = 1", "line 3: `x` is one word for each process here; write x[i]"),
        ("critical section\nx[5] = 1", "line 2: `x[5]` names no process"),
        ("critical section\nx = y", "line 2: `y` is not a number"),
        ("critical section\nmov 1,eax", "line 2: `mov` writes to a number"),
        ("critical section\ninc 1", "line 2: `1` is a number and cannot be written"),
        ("critical section\neax = 1", "line 2: `eax` is a register; write `mov eax,…`"),
        (".rounds 9\ncritical section", "line 1: `.rounds` is written `.rounds 2` (1 to 4), not with `9`"),
        (".turns 9\ncritical section", "line 1: `.turns` is not a directive; there are .machine x86"),
        (".machine x86\nlw v0,(a0)", "line 2: `lw v0,(a0)` is not a line of a program"),
        (
            ".machine arm\njr ra\nnop",
            "line 1: `.machine` is written `.machine mips (mips, x86)`, not with `arm`",
        ),
        (
            "a = 1\nb[i] = 1\nc[i] = 1\nd[i] = 1\ne[i] = 1\ncritical section",
            "line 5: `e` is one variable too many",
        ),
        ("critical section\nrep; movsb", "line 2: rep cannot stand before `movsb` here"),
        (
            "critical section\nmov rdi,1\nmov [rdi],1",
            "line 3: rdi holds an address and a number; the model keeps no addresses",
        ),
        ("critical section\nmovl $1,(%rdi,%rax,4)", "line 2: `%rdi,%rax,4` is not a place in memory"),
        (
            "# objdump\n  401136:\tc7 05 f0 2e 00 00 01 \tmovl   $0x1,0x2ef0(%rip)  # 404030 <flag0>\n  401140:\t0f ae f0 \tmfence",
            "line 2: a listing of objdump for x86 is not read; write the instructions alone",
        ),
        (
            "a.out:     file format elf64-x86-64\n\n  401136:\tmov    DWORD PTR [rip+0x2ef0],0x1",
            "line 3: a listing of objdump",
        ),
    ] {
        assert!(said(text).starts_with(wrong), "{text}\n{}", said(text));
    }
    let registers: String =
        ["eax", "ebx", "ecx", "edx", "esi", "edi", "ebp"].iter().map(|r| format!("mov {r},1\n")).collect();
    assert!(said(&registers).starts_with("line 7: ebp is one register too many; a process has 6"));
    let long = "x = 1\n".repeat(201);
    assert!(said(&long).starts_with("line 201: this is line 201 of the program; the model has room for 200"));
}

/// Large files are read or refused without a search of quadratic time.
#[test]
fn large_texts_are_refused_soon() {
    let many = |unit: &str| unit.repeat((1 << 18) / unit.len());
    for text in [
        many("b 1b\n"),
        many("bnez v0,1f\nsw t0,(a0)\n"),
        many("1: nop\n"),
        many("/**/"),
        many("x = 1\n"),
        many("1: jmp 1b\n"),
        format!("X86 t\n{{ {} }}\nP0;\nMFENCE;\nexists y=1", many("0:RAX=x;")),
        format!("X86 t\n{{ x=0; }}\nP0;\n{}", many("exists x=1\n")),
        format!("X86 t\n{{ x=0; }}\nP0;\n{}exists x=1", many("locations [x;]\n")),
        format!("X86 t\n{{ x=0; }}\n{};\nexists x=1", many("P0|")),
        format!("X86 t\n{{ x=0; }}\nP0;\n{}exists x=1", many("MFENCE;")),
        format!("X86 t\n{{ x=0; }}\nP0;\nMFENCE;\nexists {}", many("(")),
        format!("X86 t\n{{ x=0; }}\nP0;\nMFENCE;\nexists {}", many("x=1 /\\ ")),
        many("(*"),
    ] {
        if let Ok(subject) = from_text("own", &text) {
            assert!(subject.listing().len() <= 2 * text.len());
        }
    }
}

/// Lines that are almost right.
fn line() -> impl Strategy<Value = String> {
    let words = "mov xchg lock cmpxchg xadd add cmp test inc mfence jmp jne je ret [x],eax eax,[x] [y],1 eax,ebx x (x),%eax $1,(y) \
        b[i] b[2] = == != 1 i 0 if goto wait until critical section a: 1: 1b 1f end for each j b[j] , [ ] ( % $ é .init .rounds ; | \
        P0 P1 X86 { } exists forall ~ /\\ \\/ 0:EAX=0 x=1 (*";
    let word = prop::sample::select(words.split_whitespace().collect::<Vec<_>>());
    prop::collection::vec(word, 0..6).prop_map(|words| words.join(" "))
}

fn lines() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..8).prop_map(|lines| lines.join("\n"))
}

proptest! {
    /// Any text is a program, all of whose states can be visited, or an error in one of its lines.
    #[test]
    fn any_text_is_a_program_or_an_error(
        lines in lines(),
        frame in prop::sample::select(vec![
            ("own", "", ""),
            ("own", ".machine x86\n.rounds 1\n", "\ncritical section"),
            ("own", "X86 t\n{ x=0; }\nP0 | P1 ;\n", ";\nexists (0:EAX=0 /\\ x=1)"),
            ("own.litmus", "X86 t\n", ""),
        ]),
    ) {
        let text = format!("{}{lines}{}", frame.1, frame.2);
        match from_text(frame.0, &text) {
            Ok(subject) => {
                let setting = subject.setting(Wish::default()).unwrap();
                let checked = subject.check(setting, Limits { states: 2_000, ..Limits::default() });
                prop_assert!(!subject.listing().is_empty());
                prop_assert!(checked.counterexamples.iter().all(|found| !found.so.is_empty()));
            }
            Err(error) => {
                let text_of = error.to_string();
                let line: usize = text_of.strip_prefix("line ").and_then(|rest| rest.split(':').next()?.parse().ok()).unwrap();
                prop_assert!((1..=text.lines().count().max(1)).contains(&line), "{text_of}\n{text}");
            }
        }
    }

    #[test]
    fn any_characters_are_refused_or_read(text: String) {
        for name in ["own", "own.litmus"] {
            if let Err(error) = from_text(name, &text) {
                prop_assert!(error.to_string().starts_with("line "));
            }
        }
    }
}
