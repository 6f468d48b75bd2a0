use tollgate_output::table::{Look, Table, paragraph};

use super::text;
use crate::aslr::spread::{Bits, Spread};
use crate::aslr::{RegionResult, Study};

/// Formats the answer, the regions, and those that move together.
pub fn screen(study: &Study, width: usize) -> String {
    let mut text = paragraph(&text::verdict(study), width, "");
    text.push_str(&paragraph(&text::program(study), width, ""));
    text.push('\n');
    text.push_str(&table(study, width));
    let lines = text::together(study);
    if !lines.is_empty() {
        text.push('\n');
    }
    for line in lines {
        text.push_str(&paragraph(&line, width, "- "));
    }
    text.push('\n');
    text.push_str(&paragraph(&text::settings(study), width, ""));
    text
}

fn table(study: &Study, width: usize) -> String {
    let header = ["region", "bits", "95 % CI", "allowed", "aligned to", "values"];
    let mut table = Table::new(&header).with_dispensable(2);
    for found in &study.regions {
        let name = text::region(found.region).to_owned();
        let allowed = found.allowed.bits.map_or_else(|| "?".to_owned(), bits);
        match &found.seen {
            Err(why) => {
                let cells = [name, "none".into(), String::new(), String::new()];
                table.row(Look::Faint, &cells, &[(*why).to_owned()]);
            }
            Ok(spread) => {
                let (figure, interval) = figure(spread);
                let alignment = spread.alignment.map_or_else(String::new, text::alignment);
                let values = match spread.distinct {
                    1 => format!("{:#x}", spread.low),
                    several => several.to_string(),
                };
                let cells = [name, figure, interval, allowed, alignment, values];
                let look = if found.differs.is_some() { Look::Flagged } else { Look::Plain };
                table.row(look, &cells, &remarks(found, spread));
            }
        }
    }
    table.render(width)
}

fn figure(spread: &Spread) -> (String, String) {
    match spread.bits {
        Bits::Constant { .. } if spread.samples == 1 => ("?".into(), String::new()),
        Bits::Constant { .. } if spread.bits.stays() => (bits(0.0), String::new()),
        Bits::Constant { at_most } => ("?".into(), span(0.0, at_most)),
        Bits::TooFew => ("?".into(), String::new()),
        Bits::Uniform(interval) => (bits(interval.bits), span(interval.low, interval.high)),
        Bits::Between { at_least, at_most } => ("?".into(), span(at_least, at_most)),
    }
}

fn span(low: f64, high: f64) -> String {
    format!("{low:.2}–{high:.2}")
}

fn bits(bits: f64) -> String {
    format!("{bits:.1}")
}

fn remarks(found: &RegionResult, spread: &Spread) -> Vec<String> {
    let uneven = matches!(spread.bits, Bits::Between { .. })
        .then_some("not uniform: at least as many bits as the starts show, at most as many as fit");
    let why = found.allowed.why.as_ref().filter(|_| found.differs.is_none());
    let reasons = uneven.map(str::to_owned).into_iter().chain(found.differs.clone());
    reasons.chain(why.filter(|_| !text::is_said_elsewhere(found)).cloned()).collect()
}
