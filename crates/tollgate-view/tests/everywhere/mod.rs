//! A comparison as every verb and every format shows it, in one text, so that a change of one is seen beside the others.

#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::Value;
use tollgate_engine::Topology;
use tollgate_model::Run;
use tollgate_model::compare::Spread;
use tollgate_view::compare::{self, json};
use tollgate_view::comparison::Comparison;
use tollgate_view::report::{markdown, page_of};
use tollgate_view::session::{self, Session};
use tollgate_view::{explain, versus};

/// Runs of one session: its screens, then the other verbs' output for the same runs.
pub fn of_session(runs: &[Run]) -> String {
    let session = Session::of(runs).expect("a session");
    let of_commands = session.is_of_commands();
    let screen = |all, width| {
        if of_commands { versus::text(&session, all, width) } else { session::text(&session, all, width) }
    };
    let document = if of_commands {
        serde_json::to_value(versus::json::VersusDocument::new(&session, &[]))
    } else {
        serde_json::to_value(session::json::SessionDocument::new(&session, &[]))
    };
    let document = document.expect("JSON");
    let parts = [
        ("screen", screen(false, 80)),
        ("all", screen(true, 100)),
        ("explained", explained(&session)),
        ("csv", shortened(&compare::csv::csv(session.compared()))),
        ("json", lists(&document["comparison"])),
        ("of several runs", of_runs(runs, &Spread::default())),
    ];
    parts.map(part).concat()
}

/// Runs that are compared with the first of them.
pub fn of_runs(runs: &[Run], spread: &Spread) -> String {
    let [base, others @ ..] = runs else { return String::new() };
    let comparisons: Vec<Comparison> =
        others.iter().map(|other| Comparison::knowing(base, other, 0.0, spread)).collect();
    let traces = json::traces(&comparisons);
    let document = json::CompareDocument::new(base, &comparisons, &traces);
    let document = serde_json::to_value(document).expect("JSON");
    let parts = [
        ("compare", compare::text::text(&comparisons, false, 100)),
        ("compare --all", compare::text::text(&comparisons, true, 100)),
        ("json of compare", lists(&document)),
        ("markdown", markdown(runs, spread, 0.0)),
        ("page", seen(&page_of(runs, |_| None, spread).render().expect("a page"))),
    ];
    parts.map(part).concat()
}

fn part((name, text): (&str, String)) -> String {
    let text = anstream::adapter::strip_str(&text).to_string();
    format!("\n==== {name}\n{}\n", text.trim_end())
}

/// The text of an explanation about the costs of the first benchmark.
fn explained(session: &Session) -> String {
    let Some((case, _)) = session.members[0].summary.measured().next() else { return String::new() };
    let Some(benchmark) = tollgate_suites::find(&case.benchmark) else { return String::new() };
    let facts = &session.members[0].summary.run.facts;
    let text = explain::text(benchmark, &Topology::default(), None, Some(session), facts, 80);
    let text = anstream::adapter::strip_str(&text).to_string();
    let costs = text.lines().skip_while(|line| !line.starts_with("Costs here"));
    costs.take_while(|line| !line.starts_with("To avoid it")).collect::<Vec<_>>().join("\n")
}

/// The lists of a document, a line for each of their objects, without nulls.
fn lists(document: &Value) -> String {
    let mut text = String::new();
    for (name, list) in document.as_object().expect("an object") {
        match list {
            Value::Array(list) => {
                list.iter().for_each(|it| text.push_str(&format!("{name}: {}\n", short(it))))
            }
            other => text.push_str(&format!("{name}: {}\n", short(other))),
        }
    }
    text
}

fn short(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let known = fields.iter().filter(|(_, value)| !value.is_null());
            let fields = known.map(|(name, value)| format!("{name}={}", short(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(" "))
        }
        Value::Array(all) => format!("[{}]", all.iter().map(short).collect::<Vec<_>>().join(" ")),
        // Their last digits are irrelevant, and depend on where they are computed.
        Value::Number(number) if number.is_f64() => format!("{:.5e}", number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

/// Comma-separated values with as many digits.
fn shortened(csv: &str) -> String {
    let short = |cell: &str| match cell.parse::<f64>() {
        Ok(number) if cell.contains('.') => format!("{number:.5e}"),
        _ => cell.to_owned(),
    };
    let line = |line: &str| line.split(',').map(short).collect::<Vec<_>>().join(",");
    csv.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The words of a page above its suites, a line for each element.
fn seen(page: &str) -> String {
    let (_, from) = page.split_once("<h1>").expect("a title");
    let until = ["<section aria-labelledby=\"ruler\"", "<section aria-labelledby=\"s1\""];
    let shown =
        until.iter().filter_map(|end| from.split_once(end)).map(|(shown, _)| shown).min_by_key(|it| it.len());
    let mut text = String::new();
    for piece in shown.unwrap_or(from).split('<').filter_map(|piece| piece.split_once('>')) {
        let (element, words) = piece;
        let begins_line = ["tr", "li", "p", "h1", "h2", "h3", "div", "dt", "summary"];
        match element.split([' ', '/']).next().unwrap_or_default() {
            name if begins_line.contains(&name) => text.push('\n'),
            "td" | "th" | "dd" | "span" => text.push_str(" | "),
            _ => (),
        }
        text.push_str(words);
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}
