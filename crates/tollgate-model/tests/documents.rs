//! The run document: written, read back, and refused with a reason when it is not one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use crate::support;
use proptest::prelude::*;
use support::{measured, run_of};
use tollgate_model::run::ReadError;
use tollgate_model::run::Switched;
use tollgate_model::traced::Ended;
use tollgate_model::versus::{Cold, Command, Failed};
use tollgate_model::{Case, Counted, Fact, Knob, Label, Outcome, ParamValue, Part, Run, RunId};

/// Every kind of value that a document can hold.
fn small() -> Run {
    let mut case = Case::plain("entry/syscall");
    case.params.insert("instructions".into(), ParamValue::Number(32));
    case.params.insert("memory".into(), ParamValue::Word("thp".into()));
    case.params.insert("shared".into(), ParamValue::Flag(true));
    let mut estimates = measured("entry", &[vec![164.25, -0.5, 1e-300], vec![0.1, 1e300]]);
    estimates.processes[0].rounds += 2;
    estimates.processes[0].discarded = vec![0, 3];
    estimates.discarded = 2;
    // The second process timed 70 rounds, and two of them had a batch of this case.
    estimates.processes[1].rounds = 70;
    estimates.processes[1].ran = Some(vec![0, 64]);
    estimates.counted =
        Some(Counted { what: "minor faults".into(), events: 1000, operations: 1000, is_share: false });
    estimates.baseline = Some(Case::plain("entry/vdso"));
    estimates.notes.push("int 0x80".into());
    let mut run = run_of(vec![
        (case, Outcome::Measured(Box::new(estimates))),
        (Case::plain("entry/b"), Outcome::Skipped { why: "no such instruction".into() }),
        (Case::plain("entry/c"), Outcome::Failed { error: "killed by signal 11".into() }),
    ]);
    run.label = Some("a-label".parse().unwrap());
    let facts = [
        ("a.flag", Fact::known(true, "CPUID.1:ECX[31]")),
        ("a.integer", Fact::known(-3, "sysconf(3)")),
        ("a.list", Fact::known(vec!["x".to_owned(), "y".to_owned()], "/proc/cpuinfo")),
        ("a.real", Fact::known(0.25, "/proc/loadavg")),
        ("a.text", Fact::known("6.1 \u{e9}", "uname(2)")),
        ("b.absent", Fact::absent("no such file")),
        ("b.refused", Fact::refused("permission denied: 13")),
        ("b.unreadable", Fact::unreadable("not a number")),
    ];
    run.facts = facts.map(|(name, fact)| (name.to_owned(), fact)).into();
    run
}

fn text() -> String {
    String::from_utf8(small().to_json().unwrap()).unwrap()
}

fn refusal(text: &str) -> String {
    Run::parse(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn a_run_comes_back_as_it_was() {
    assert_eq!(Run::parse(text().as_bytes()).unwrap(), small());
    assert_eq!(Run::read(text().as_bytes()).unwrap(), small());
}

/// Documents of the first version count the threads or processes of a case of `scaling` as `users`.
#[test]
fn a_parameter_of_an_older_document_has_its_name_of_today() {
    let older =
        text().replace("\"instructions\":", "\"users\":").replace("\"instructions\" :", "\"users\" :");
    assert!(older.contains("users"), "{older}");
    let case = &Run::parse(older.as_bytes()).unwrap().measurements[0].case;
    assert_eq!((case.number("tasks"), case.number("users")), (Some(32), None));
}

#[test]
fn every_truncation_is_refused_and_named() {
    let text = text();
    let whole = text.trim_end().len();
    for end in 0..whole {
        let cut = &text.as_bytes()[..end];
        match Run::parse(cut) {
            Err(ReadError::Truncated { .. }) => {}
            // A cut inside a multi-byte character is not text, and one after a sign or a point is not a number.
            Err(ReadError::Syntax(_))
                if std::str::from_utf8(cut).is_err() || b"-+.e".contains(&cut[end - 1]) => {}
            other => panic!("cut at {end}: {other:?}"),
        }
    }
    assert!(Run::parse(&text.as_bytes()[..whole]).is_ok());
    let cut = "is cut off: the document ends at line 1, column 12, before it is whole";
    assert_eq!(refusal("{\"schema\": 2"), cut);
}

#[test]
fn another_schema_is_refused_before_other_fields_are_read() {
    let of_schema = |schema: u64| refusal(&text().replace("\"schema\":2", &format!("\"schema\":{schema}")));
    assert_eq!(of_schema(1), "has schema 1, but this tollgate reads schema 2: measure again");
    assert_eq!(of_schema(3), "has schema 3, but this tollgate reads schema 2: use a newer tollgate");
    assert_eq!(
        of_schema(7_000_000_000),
        "has schema 7000000000, but this tollgate reads schema 2: use a newer tollgate"
    );
    assert_eq!(of_schema(0), "has schema 0, but this tollgate reads schema 2: measure again");
    // A document of schema 1 has fields of other names, and is refused all the same.
    let old = r#"{"schema": 1, "tool": {}, "place": "vm", "environment": {}, "measurements": "elsewhere"}"#;
    assert_eq!(refusal(old), "has schema 1, but this tollgate reads schema 2: measure again");
    assert!(Run::parse(br#"{"schema": -1}"#).is_err());
    assert!(Run::parse(br#"{"schema": "2"}"#).is_err());
    assert!(Run::parse(b"{}").is_err());
    assert!(Run::parse(b"[]").is_err());
}

#[test]
fn values_that_are_not_finite_numbers_are_refused_both_ways() {
    for bad in ["NaN", "1e999", "-1e999", "Infinity", "null", "\"1\""] {
        assert!(Run::parse(text().replace("164.25", bad).as_bytes()).is_err(), "{bad}");
        assert!(
            Run::parse(text().replace("\"value\":0.25", &format!("\"value\":{bad}")).as_bytes()).is_err()
                || bad == "\"1\"",
            "{bad}"
        );
    }
    for bad in [f64::NAN, f64::INFINITY] {
        let mut run = small();
        run.facts.insert("x".into(), Fact::known(bad, "x"));
        assert!(run.to_json().is_err());
        let run =
            run_of(vec![(Case::plain("a"), Outcome::Measured(Box::new(measured("g", &[vec![1.0, bad]]))))]);
        let why = run.to_json().unwrap_err().to_string();
        assert_eq!(why, "is not a run document: a: a sample is not a finite number");
    }
}

#[test]
fn contradictions_are_refused() {
    let refused = |from: &str, to: &str, why: &str| {
        assert!(text().contains(from), "{from}");
        let said = refusal(&text().replace(from, to));
        assert!(said.contains(why), "{from} -> {to}: {said}");
    };
    refused("entry/c", "entry/b", "entry/b occurs twice");
    refused("\"ops_per_sample\":200", "\"ops_per_sample\":0", "ops_per_sample is 0");
    refused("\"clock_hz\":2000000000", "\"clock_hz\":0", "clock_hz is 0");
    refused("[0,3]", "[3,0]", "not ascending");
    refused("[0,3]", "[0,5]", "within its rounds");
    refused("[0,3]", "[0]", "do not add up");
    refused("[0,64]", "[64,0]", "not ascending");
    refused("[0,64]", "[0,70]", "within its rounds");
    refused("[0,64]", "[0]", "do not add up");
    refused("\"ran\":[0,64],\"discarded\":[]", "\"ran\":[0,1,64],\"discarded\":[5]", "the discarded rounds");
    refused("minor faults", "minor\\nfaults", "control a terminal");
    refused("\"discarded\":2,", "\"discarded\":1,", "do not add up");
    refused("[164.25,-0.5,", "[164.25,", "do not add up");
    refused("entry/syscall", "entry/\\u001b[2J", "control a terminal");
    refused("entry/syscall", "entry/\\u202ex", "control a terminal");
    refused("\"group\":\"entry\"", &format!("\"group\":\"{}\"", "g".repeat(257)), "too long");
    refused("\"unit\":\"ns\"", "\"unit\":\"h\"", "is not a run document");
    refused("\"environment\":\"vm\"", "\"environment\":\"moon\"", "is not a run document");
}

/// The part of a run in a session, with every field.
fn part() -> Part {
    Part {
        id: "20260101-000000-s".parse().unwrap(),
        environment: "cpu1".into(),
        stands_for: Some("host:env.A=b,cpu=1".into()),
        place: 1,
        of: 2,
        paired: true,
        knob: Some(Knob {
            path: "/sys/kernel/mm/transparent_hugepage/enabled".into(),
            was: "madvise".into(),
            value: "always".into(),
        }),
        switches: vec![Switched {
            name: "audit".into(),
            on: "auditctl -e 1".into(),
            off: "auditctl -e 0".into(),
        }],
        command: None,
    }
}

#[test]
fn a_part_of_a_session_comes_back_as_it_was_and_may_be_left_out() {
    for knob in [part().knob, None] {
        let mut run = small();
        run.session = Some(Part { knob, ..part() });
        assert_eq!(Run::parse(&run.to_json().unwrap()).unwrap(), run);
    }
    let mut run = small();
    let command = Command {
        line: "grep -r tollgate .\nexit 1".into(),
        name: Some("search".into()),
        parameters: [("pattern".to_owned(), "tollgate".to_owned())].into(),
        shell: Some("sh -c".into()),
        is_corrected: true,
        failed: vec![Failed { execution: 3, ended: Ended::Exit(1) }],
        cold: Some(Cold {
            files: 7,
            stayed: vec!["/lib/libc.so.6".into()],
            stayed_files: 1,
            certified_by: Some("mincore(2)".into()),
        }),
        harness: Some("divan".into()),
    };
    run.session = Some(Part { command: Some(Box::new(command.clone())), ..part() });
    assert_eq!(Run::parse(&run.to_json().unwrap()).unwrap(), run);
    let empty = Command { line: String::new(), ..command };
    run.session = Some(Part { command: Some(Box::new(empty)), ..part() });
    let error = Run::parse(&serde_json::to_vec(&run).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "is not a run document: session.command has an empty line");
    // Runs of older versions and runs without a session have no such field.
    assert!(!text().contains("session"));
    assert_eq!(Run::parse(text().as_bytes()).unwrap().session, None);
    let null = text().replace("\"started\"", "\"session\":null,\"started\"");
    assert_eq!(Run::parse(null.as_bytes()).unwrap().session, None);
}

#[test]
fn contradictory_parts_are_refused_both_ways() {
    let refused = |change: &dyn Fn(&mut Part), why: &str| {
        let mut changed = part();
        change(&mut changed);
        let mut run = small();
        run.session = Some(changed);
        let json = serde_json::to_vec(&run).unwrap();
        for said in [run.to_json().unwrap_err().to_string(), refusal(std::str::from_utf8(&json).unwrap())] {
            assert!(said.contains(why), "{why}: {said}");
        }
    };
    refused(&|part| part.place = 2, "its place in the session is 2; it must be at least 0 and below 2");
    refused(&|part| (part.place, part.of) = (0, 0), "its place in the session is 0");
    refused(&|part| part.of = u32::MAX, "its session has 4294967295 environments");
    refused(&|part| part.environment.clear(), "session.environment is empty");
    refused(
        &|part| part.environment.push('\u{1b}'),
        "session.environment is too long or has characters that control",
    );
    refused(
        &|part| part.environment = "e".repeat(4097),
        "session.environment is too long or has characters that control",
    );
    refused(
        &|part| part.stands_for = Some("e".repeat(4097)),
        "session.stands_for is too long or has characters that control",
    );
    let knob = |change: &dyn Fn(&mut Knob), why: &str| {
        refused(&|part| change(part.knob.as_mut().unwrap()), why);
    };
    knob(&|knob| knob.path = "sys/kernel".into(), "session.knob.path is not absolute");
    knob(&|knob| knob.path.push('\n'), "session.knob.path is too long or has characters that control");
    knob(&|knob| knob.was = "1\r".into(), "session.knob.was is too long or has characters that control");
    knob(
        &|knob| knob.value = "v".repeat(4097),
        "session.knob.value is too long or has characters that control",
    );
    let mut run = small();
    run.session = Some(part());
    let json = String::from_utf8(run.to_json().unwrap()).unwrap();
    for (from, to) in [
        ("20260101-000000-s", "../../etc"),
        ("20260101-000000-s", "last"),
        ("\"place\":1", "\"place\":-1"),
        ("\"place\":1", "\"place\":4294967297"),
        ("\"paired\":true", "\"paired\":1"),
        ("\"paired\":true,", ""),
    ] {
        assert!(json.contains(from), "{from}");
        assert!(Run::parse(json.replace(from, to).as_bytes()).is_err(), "{from} -> {to}");
    }
}

#[test]
fn a_run_ends_after_it_began() {
    let ended = |finished: &str| {
        let mut run = small();
        run.started = "2026-11-21T01:54:27Z".into();
        run.finished = finished.into();
        run.to_json().map_err(|error| error.to_string())
    };
    assert!(ended("2026-11-21T01:54:27Z").is_ok());
    assert_eq!(
        ended("2026-11-21T01:54:26.9Z").unwrap_err(),
        "is not a run document: it finished at 2026-11-21T01:54:26.9Z, before it started at 2026-11-21T01:54:27Z"
    );
}

#[test]
fn what_a_message_quotes_ends_after_200_characters() {
    let long = "x".repeat(500_000);
    let environment =
        refusal(&text().replace("\"environment\":\"vm\"", &format!("\"environment\":\"{long}\"")));
    let schema = refusal(&format!("{{\"schema\":\"\\u001b{long}\"}}"));
    let id = refusal(&text().replace("\"id\":\"", &format!("\"id\":\"{long}")));
    for said in [environment, schema, id] {
        assert!(said.matches('x').count() <= 202, "{said}");
        assert!(said.contains(" at line 1 column"), "{said}");
        assert!(!said.contains('\u{1b}'), "{said}");
    }
}

#[test]
fn labels_and_ids_are_safe_names() {
    for good in ["a", "0", "v6.1-mitigations_off", "A+B", "x".repeat(64).as_str()] {
        assert_eq!(good.parse::<Label>().unwrap().to_string(), good);
        assert_eq!(good.parse::<RunId>().unwrap().as_ref(), good);
    }
    let long = "x".repeat(65);
    for bad in [
        "",
        "last",
        ".hidden",
        "-flag",
        "_a",
        "a/b",
        "a..b",
        "..",
        "a b",
        "a\n",
        "a\u{1b}[0m",
        "\u{e9}",
        "a\u{e9}",
        &long,
    ] {
        assert!(bad.parse::<Label>().is_err(), "{bad:?}");
        assert!(bad.parse::<RunId>().is_err(), "{bad:?}");
    }
    assert!(Run::parse(text().replace("a-label", "../../etc").as_bytes()).is_err());
    let last = "last".parse::<Label>().unwrap_err().to_string();
    assert_eq!(
        last,
        "the label \"last\" means the newest run and cannot be a name; use 1 to 64 of A-Z a-z 0-9 . _ + - and begin \
         with a letter or digit"
    );
}

#[test]
fn samples_survive_to_the_last_digit() {
    let mut random = support::Random(5);
    let samples: Vec<f64> = (0..2000).map(|_| 164.0 * random.factor(0.1)).collect();
    let run = run_of(vec![(Case::plain("a"), Outcome::Measured(Box::new(measured("g", &[samples]))))]);
    let back = Run::parse(&run.to_json().unwrap()).unwrap();
    let Outcome::Measured(back) = &back.measurements[0].outcome else { panic!("not measured") };
    let Outcome::Measured(sent) = &run.measurements[0].outcome else { panic!("not measured") };
    for (back, sent) in back.samples.iter().zip(&sent.samples) {
        assert_eq!(back, sent);
    }
}

proptest! {
    #[test]
    fn random_bytes_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        prop_assert!(Run::parse(&bytes).is_err());
    }

    #[test]
    fn a_changed_byte_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut run = small();
        run.session = Some(part());
        let mut bytes = run.to_json().unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(run) = Run::parse(&bytes) {
            prop_assert!(run.to_json().is_ok());
        }
    }
}
