//! Tests ARCHITECTURE.md's claim that a new figure and a new format each need one place.

use tollgate_output::column::{Column, Columns};
use tollgate_output::figures;
use tollgate_output::json::Record;
use tollgate_output::spreadsheet::{self, Reader};
use tollgate_output::table::Table;
use tollgate_output::value::{Tone, Value};
use tollgate_output::{html, markdown};

/// A name and a ratio.
type Row = (&'static str, Option<f64>);

fn columns() -> Columns<Row> {
    Columns::new([
        Column::new("name", "benchmark", "its name", |(name, _): &Row| Some(Value::text(*name))).of_words(),
        Column::new("ratio", "ratio", "the ratio", |(_, ratio)| {
            Some(Value::figure((*ratio)?, figures::ratio))
        }),
    ])
}

/// The one place of a new figure.
fn with_one_more() -> Columns<Row> {
    let verdict = |(_, ratio): &Row| {
        let tone = if (*ratio)? > 1.0 { Tone::Changed } else { Tone::Plain };
        Some(Value::text(if tone == Tone::Changed { "slower" } else { "same" }).with_tone(tone))
    };
    columns().with(Column::new("verdict", "verdict", "what it means", verdict).of_words())
}

const ROWS: [Row; 2] = [("entry|call", Some(1.50049)), ("entry/none", None)];

/// The one place of a new format: tabs between cells.
fn tabs<R>(columns: &Columns<R>, rows: impl IntoIterator<Item = R>) -> String {
    let head: Vec<&str> = columns.iter().map(|column| column.key).collect();
    let line = |row: R| {
        columns.values(&row).iter().map(|value| value.words().to_owned()).collect::<Vec<_>>().join("\t")
    };
    let lines = std::iter::once(head.join("\t")).chain(rows.into_iter().map(line));
    lines.map(|line| line + "\n").collect()
}

fn text(columns: &Columns<Row>) -> String {
    let table = Table::from_rows(columns, ROWS.map(|row| (row, None)));
    anstream::adapter::strip_str(&table.render(80)).to_string()
}

fn csv(columns: &Columns<Row>) -> String {
    spreadsheet::from_rows(columns, ROWS, Reader::Terminal)
}

fn json(columns: &Columns<Row>) -> String {
    serde_json::to_string(&ROWS.map(|row| Record::from_row(columns, &row))).expect("JSON")
}

#[test]
fn a_figure_that_is_added_to_the_list_is_in_every_format() {
    let formats: [fn(&Columns<Row>) -> String; 6] = [
        text,
        |columns| markdown::table(columns, ROWS),
        |columns| html::Table::from_rows("all", columns, ROWS).render(),
        csv,
        json,
        |columns| tabs(columns, ROWS),
    ];
    for format in formats {
        let (before, after) = (format(&columns()), format(&with_one_more()));
        assert!(!before.contains("verdict") && !before.contains("slower"), "{before}");
        assert!(after.contains("verdict") && after.contains("slower"), "{after}");
    }
}

#[test]
fn people_read_the_same_digits_everywhere_and_programs_all_of_them() {
    let columns = with_one_more();
    assert_eq!(
        text(&columns),
        "benchmark   ratio  verdict\nentry|call  1.500  slower\nentry/none      –  –\n"
    );
    assert_eq!(
        markdown::table(&columns, ROWS),
        "| benchmark | ratio | verdict |\n|---|--:|---|\n| entry&#124;call | 1.500 | **slower** |\n| entry/none | – | – |\n\n"
    );
    let page = html::Table::from_rows("all", &columns, ROWS).render();
    assert!(page.contains("<tr><th>entry|call<td>1.500<td>slower"), "{page}");
    assert_eq!(csv(&columns), "name,ratio,verdict\nentry|call,1.50049,slower\nentry/none,,\n");
    assert_eq!(
        json(&columns),
        r#"[{"name":"entry|call","ratio":1.50049,"verdict":"slower"},{"name":"entry/none","ratio":null,"verdict":null}]"#
    );
}

#[test]
fn an_interval_is_two_fields_and_one_column() {
    let ends = |(_, ratio): &Row| {
        let ratio = (*ratio)?;
        Some(Value::ends([ratio - 1.0, ratio + 1.0], |[low, high]| figures::ratio_span(low, high)))
    };
    let columns = Columns::new([
        Column::new("ci", "95 % CI", "the interval", ends).in_unit().with_fields(&["low", "high"]),
        Column::new("shown", "shown", "what people alone read", |_| Some(Value::of_words("x")))
            .with_fields(&[]),
    ]);
    let row = ("entry/call", Some(3.0));
    assert_eq!(spreadsheet::from_rows(&columns, [row], Reader::Terminal), "low,high\n2,4\n");
    assert_eq!(
        serde_json::to_string(&Record::from_row(&columns, &row)).expect("JSON"),
        r#"{"low":2.0,"high":4.0}"#
    );
    let seconds = serde_json::to_string(&Record::in_seconds(&columns, &row)).expect("JSON");
    assert_eq!(seconds, r#"{"low_s":2e-9,"high_s":4e-9}"#);
    assert_eq!(markdown::table(&columns, [row]), "| 95 % CI | shown |\n|---|--:|\n| 2.000–4.000 | x |\n\n");
}

#[test]
fn a_screen_chooses_by_key_and_keeps_the_order_of_the_list() {
    let columns = with_one_more();
    let keys = |columns: &Columns<Row>| columns.iter().map(|column| column.key).collect::<Vec<_>>();
    assert_eq!(keys(&columns.pick(&["verdict", "name"])), ["name", "verdict"]);
    assert_eq!(keys(&columns.without(&["name"])), ["ratio", "verdict"]);
    assert_eq!(columns.value("ratio", &ROWS[0]).words(), "1.500");
    assert_eq!(keys(&columns.arranged(&["verdict", "name"])), ["verdict", "name"]);
    assert_eq!(
        markdown::table(&columns.pick(&["name"]).headed("name", "command"), []),
        "| command |\n|---|\n\n"
    );
}
