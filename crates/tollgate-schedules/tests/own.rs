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
    let deep = format!("x := 1; {}", "if x then ".repeat(40));
    assert!(from_text("own", &deep).err().unwrap().to_string().contains("`if` is nested more than 16"));
    let deep = format!("x := 1; {}", "{".repeat(100_000));
    assert!(from_text("own", &deep).err().unwrap().to_string().contains("`begin` is nested more than 16"));
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

/// Each program of these files, which `%%` separates, and why it is none.
#[test]
fn what_is_no_program_says_why() {
    for (machine, programs) in [
        ("litmus", include_str!("refused/litmus.txt")),
        ("mips", include_str!("refused/mips.txt")),
        ("x86", include_str!("refused/x86.txt")),
    ] {
        let refused = programs.split("\n%%\n").map(|text| format!("{text}\n  => {}\n", said(text)));
        insta::assert_snapshot!(format!("refused-{machine}"), refused.collect::<Vec<_>>().join("\n"));
    }
    let many = format!("X86 t\n{{ x=0; }}\nP0 ;\nMFENCE ;\nexists x=1{}", " /\\ x=1".repeat(200));
    assert!(said(&many).starts_with("line 5: the condition has more than 100"));
    let long = "x = 1\n".repeat(201);
    assert!(said(&long).starts_with("line 201: this is line 201 of the program; the model has room for 200"));
    let long = "nop\n".repeat(129);
    assert_eq!(said(&long), "line 129: this is instruction 129 of 129; the model has room for 128");
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
