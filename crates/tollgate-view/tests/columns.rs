//! The fields of a compared row are declared in one list, which every verb and every format follows.

use crate::{commands, sessions};
use sessions::{CASES, filtered, host};
use tollgate_engine::Topology;
use tollgate_model::Case;
use tollgate_model::compare::Spread;
use tollgate_output::column::{Column, Columns};
use tollgate_output::json::Record;
use tollgate_output::spreadsheet::{self, Reader};
use tollgate_output::table::Table;
use tollgate_output::value::Value;
use tollgate_output::{html, markdown};
use tollgate_view::compare::columns::{Compared, columns};
use tollgate_view::comparison::Comparison;
use tollgate_view::report::{self, page_of};
use tollgate_view::session::Session;
use tollgate_view::summary::Summary;
use tollgate_view::{compare, explain, export, session, show, versus};

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn fields() -> Vec<&'static str> {
    columns().iter().flat_map(|column| column.fields().to_vec()).collect()
}

fn assert_row(document: &impl serde::Serialize, fields: &[&str]) {
    let json = serde_json::to_string(document).expect("JSON");
    let rows: Vec<&str> = json.split("{\"base_run\":").collect();
    let row: serde_json::Value =
        serde_json::from_str(&format!("{{\"base_run\":{}", rows[1].trim_end_matches(',')))
            .expect("an object");
    let mut sorted = fields.to_vec();
    sorted.sort_unstable();
    assert_eq!(row.as_object().expect("an object").keys().collect::<Vec<_>>(), sorted, "{row}");
    let mut rest = rows[1];
    for field in &fields[1..] {
        let found = rest.split_once(&format!("\"{field}\":"));
        assert!(found.is_some(), "{field} in {}", rows[1]);
        rest = found.unwrap_or_default().1;
    }
}

#[test]
fn the_rows_of_every_document_have_all_fields_in_the_order_of_the_list() {
    let runs = sessions::runs(&[host(), filtered()], &CASES);
    let comparisons = [Comparison::of(&runs[0], &runs[1])];
    assert_row(&compare::json::CompareDocument::new(&runs[0], &comparisons, &[]), &fields());
    let session = Session::of(&runs).expect("a session");
    assert_row(&session::json::SessionDocument::new(&session, &[]), &fields());
    let of_commands = commands::runs(&[commands::side("a", 28.0), commands::side("b", 29.0)]);
    let session = Session::of(&of_commands).expect("a session");
    let document = serde_json::to_value(versus::json::VersusDocument::new(&session, &[])).expect("JSON");
    let row = &document["comparison"]["rows"][0];
    let of_case = ["benchmark", "params", "unit"];
    for field in fields().into_iter().filter(|field| !of_case.contains(field)) {
        let in_seconds = format!("{field}_s");
        assert!(row.get(field).is_some() != row.get(in_seconds).is_some(), "{field}: {row}");
    }
    let sides = fields().into_iter().take_while(|field| *field != "benchmark").count();
    // Parts of a command's time have no processor time of their own.
    for field in fields()[sides..].iter().filter(|field| !field.starts_with("cpu_")) {
        assert!(row["others"][0].get(field).is_some(), "{field}: {row}");
    }
}

#[test]
fn a_case_has_the_same_fields_in_both_csvs_and_in_json() {
    let runs = sessions::runs(&[host(), filtered()], &CASES);
    let summary = Summary::of(&runs[0]);
    let header =
        |csv: &str| csv.lines().next().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let of_run = header(&show::csv::csv(&summary)).expect("a header");
    let mut of_runs = header(&export::csv::csv(&runs)).expect("a header");
    of_runs.retain(|field| of_run.contains(field));
    assert_eq!(of_runs, of_run);
    let document = serde_json::to_value(show::json::ShowDocument::new(&summary, None)).expect("JSON");
    let row = &document["measurements"][0];
    // In an object the comparison with the baseline is an object too.
    for field in of_run.iter().filter(|field| !["ratio", "adds", "verdict"].contains(&field.as_str())) {
        assert!(row.get(field).is_some(), "{field}: {row}");
    }
}

#[test]
fn a_median_has_the_same_digits_wherever_people_read_it() {
    let runs = sessions::runs(&[host()], &CASES);
    let summary = Summary::of(&runs[0]);
    let benchmark = tollgate_suites::find("entry/syscall").expect("a benchmark");
    let mut of_benchmark = Summary::of(&runs[0]);
    of_benchmark.retain(|case| case.benchmark == benchmark.name);
    let explained =
        explain::text(benchmark, &Topology::default(), Some(&of_benchmark), None, &runs[0].facts, 80);
    let figures = summary.figures(&Case::plain("entry/syscall")).expect("measured");
    let [median, interval] =
        [Some(figures.in_words()), figures.interval_in_words()].map(|words| words.expect("known"));
    for text in [
        show::text::text(&summary, show::text::Options { width: Some(100), ..Default::default() }),
        explained,
        report::markdown(&runs, &Spread::default(), 0.0),
        page_of(&runs, |_| None, &Spread::default()).render().expect("a page"),
    ] {
        let text = plain(&text);
        assert!(text.contains(&median) && text.contains(&interval), "{median} {interval} in {text}");
    }
}

#[test]
fn a_figure_that_is_added_to_the_list_is_in_every_format() {
    fn percent<'a>() -> Column<Compared<'a>> {
        let value = |it: &Compared<'a>| Some(Value::of_words(format!("{} of 100", it.words("ratio")?)));
        Column::new("percent", "in percent", "a figure that there is not", value).with_fields(&["percent"])
    }
    fn rows<'a>(comparison: &'a Comparison<'a>) -> impl Iterator<Item = Compared<'a>> {
        comparison.rows.iter().map(move |row| Compared::new(comparison, row))
    }
    let runs = sessions::runs(&[host(), filtered()], &CASES);
    let comparison = Comparison::of(&runs[0], &runs[1]);
    let columns: Columns<Compared> = columns().with(percent());
    let shown = columns.pick(&["case", "percent"]);
    for people in [
        plain(&Table::from_rows(&shown, rows(&comparison).map(|row| (row, None))).render(80)),
        markdown::table(&shown, rows(&comparison)),
        html::Table::from_rows("all", &shown, rows(&comparison)).render(),
    ] {
        assert!(people.contains("in percent") && people.contains("1.560 of 100"), "{people}");
    }
    let csv = spreadsheet::from_rows(&columns, rows(&comparison), Reader::System);
    assert!(csv.lines().next().is_some_and(|header| header.ends_with(",more_time,percent")), "{csv}");
    let row = rows(&comparison).next().expect("a row");
    let json = serde_json::to_value(Record::from_row(&columns, &row)).expect("JSON");
    assert_eq!(json.get("percent"), Some(&serde_json::Value::Null), "{json}");
}

#[test]
fn a_ratio_has_the_same_digits_wherever_people_read_it() {
    let runs = sessions::runs(&[host(), filtered()], &CASES);
    let comparisons = [Comparison::of(&runs[0], &runs[1])];
    let session = Session::of(&runs).expect("a session");
    let benchmark = tollgate_suites::find("entry/syscall").expect("a benchmark");
    let mut summary = Summary::of(&runs[0]);
    summary.retain(|case| case.benchmark == benchmark.name);
    let explained =
        explain::text(benchmark, &Topology::default(), Some(&summary), Some(&session), &runs[0].facts, 80);
    let row = comparisons[0].row(&Case::plain("entry/syscall")).expect("a row");
    let words = |key: &str| Compared::new(&comparisons[0], row).words(key).expect("known");
    for text in [
        compare::text::text(&comparisons, false, 100),
        session::text(&session, false, 80),
        session::text(&session, true, 80),
        explained,
        report::markdown(&runs, &Spread::default(), 0.0),
        page_of(&runs, |_| None, &Spread::default()).render().expect("a page"),
    ] {
        let text = plain(&text);
        for figure in ["ratio", "ratio_ci", "adds"].map(words) {
            assert!(text.contains(&figure), "{figure} in {text}");
        }
    }
}
