//! The rows of the first screen: the headline cases by section, and for a run of some suites all else that fits.

use tollgate_engine::{Headline, Section};
use tollgate_model::text::clean;
use tollgate_model::{Case, Unit};
use tollgate_output::figures;
use tollgate_output::table::{Look, cut, styled};
use tollgate_suites::{Benchmark, SUITES};
use unicode_width::UnicodeWidthStr;

use crate::summary::{CaseRow, Figures, Summary};
use crate::{counts, facts};

const COLUMNS: [(&str, usize); 4] = [("median", 9), ("95 % CI", 15), ("min", 10), ("× syscall", 11)];
const LAYOUTS: &[&[usize]] = &[&[0, 1, 2, 3], &[0, 1, 3], &[0, 1], &[0]];
const COLUMNS_OF_COUNTS: [(&str, usize); 3] = [("instructions", 13), ("batches", 17), ("× syscall", 11)];
const LAYOUTS_OF_COUNTS: &[&[usize]] = &[&[0, 1, 2], &[0, 1], &[0]];
/// The columns for a name with its mark: the most and the fewest.
const NAMES: [usize; 2] = [34, 26];

const MARK: &str = "  ";

pub(super) struct Rows<'a> {
    sections: Vec<(String, Vec<Shown<'a>>)>,
    loads: Option<String>,
    hidden: usize,
    is_counted: bool,
    columns: &'static [usize],
    name: usize,
    width: usize,
}

#[derive(Clone)]
struct Shown<'a> {
    name: String,
    figures: &'a Figures<'a>,
}

impl<'a> Rows<'a> {
    pub(super) fn headlines(summary: &'a Summary, width: usize) -> Self {
        let is_counted = counts::is_counted(summary);
        let (columns, name) = layout(is_counted, width);
        let headlines = headlines(summary);
        let loads = loads(&headlines);
        let mut rows = Self { sections: Vec::new(), loads, hidden: 0, is_counted, columns, name, width };
        for (section, row, headline) in
            headlines.into_iter().filter(|(section, ..)| *section != Section::Loads)
        {
            rows.add(title(section, summary), headline.name.to_owned(), row);
        }
        rows
    }

    /// Adds the other rows if more than half of them fit in this many lines, as in a run of some suites. Without headlines, it adds
    /// as many as fit.
    pub(super) fn fill(&mut self, summary: &'a Summary, room: usize) {
        let of_headlines = headlines(summary);
        let is_headline = |row: &CaseRow| of_headlines.iter().any(|(_, known, _)| known.case == row.case);
        let others = summary.rows.iter().filter(|row| row.figures().is_some() && !is_headline(row));
        let others: Vec<&CaseRow> = others.collect();
        let mut all = Self { sections: self.sections.clone(), loads: self.loads.clone(), ..*self };
        let mut added = 0;
        for row in &others {
            let suite = row.case.suite();
            let section = section_of(suite).map_or(suite.to_owned(), |section| title(section, summary));
            let heading = usize::from(all.sections.iter().all(|(title, _)| *title != section));
            let hidden = usize::from(added + 1 < others.len());
            if all.lines() + heading + 1 + hidden > room {
                break;
            }
            let name = name_among(row.case, &others, self.name.saturating_sub(MARK.len()));
            all.add(section, name, row);
            added += 1;
        }
        let hidden = others.len() - added;
        if hidden < added || hidden == 0 || of_headlines.is_empty() {
            *self = Self { hidden, ..all };
            self.widen();
        }
    }

    /// Leaves out columns if names are longer than the room for them.
    fn widen(&mut self) {
        let names = self.sections.iter().flat_map(|(_, rows)| rows).map(|row| row.name.width() + MARK.len());
        let longest = names.max().unwrap_or(0);
        let narrower = layouts(self.is_counted).iter().filter(|columns| columns.len() < self.columns.len());
        let fits = |columns: &&'static [usize]| {
            self.width.saturating_sub(taken(self.is_counted, columns)) >= longest
        };
        let chosen = narrower.copied().filter(|columns| columns.len() > 1).collect::<Vec<_>>();
        if let Some(columns) =
            chosen.iter().find(|columns| fits(columns)).or(chosen.last()).filter(|_| longest > self.name)
        {
            self.columns = columns;
            self.name = self.width.saturating_sub(taken(self.is_counted, columns)).min(longest);
        }
    }

    fn add(&mut self, section: String, name: String, row: &'a CaseRow) {
        let Some(figures) = row.figures() else { return };
        let shown = Shown { name, figures };
        match self.sections.iter_mut().find(|(title, _)| *title == section) {
            Some((_, rows)) => rows.push(shown),
            None => self.sections.push((section, vec![shown])),
        }
    }

    pub(super) fn lines(&self) -> usize {
        let rows: usize = self.sections.iter().map(|(_, rows)| rows.len() + 1).sum();
        // The line of loads replaces the section's heading, except the first.
        let is_apart = self.sections.iter().position(|(title, _)| title == MEMORY).is_none_or(|at| at == 0);
        rows + usize::from(self.loads.is_some() && is_apart)
    }

    pub(super) fn is_any_wide(&self) -> bool {
        self.sections.iter().flat_map(|(_, rows)| rows).any(|row| row.figures.is_wide())
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let loads = self.loads.as_deref();
        for (at, (title, rows)) in self.sections.iter().enumerate() {
            let is_memory = title == MEMORY;
            let heading = match loads.filter(|_| is_memory && at > 0) {
                Some(loads) => format!("{title}   {loads}"),
                None => title.clone(),
            };
            let heading = if at == 0 { self.with_columns(&heading) } else { cut(&heading, self.width) };
            text.push_str(&styled(Look::Heading, &heading));
            if let Some(loads) = loads.filter(|_| is_memory && at == 0) {
                text.push_str(&format!("  {}\n", cut(loads, self.width.saturating_sub(2))));
            }
            rows.iter().for_each(|row| text.push_str(&self.line(row)));
        }
        if let Some(loads) = loads.filter(|_| !self.sections.iter().any(|(title, _)| title == MEMORY)) {
            text.push_str(&styled(Look::Heading, &cut(&format!("{MEMORY}   {loads}"), self.width)));
        }
        if self.hidden > 0 {
            text.push_str(&format!(
                "  {}: tollgate show --all\n",
                figures::count(self.hidden, "more row", "more rows")
            ));
        }
        text
    }

    fn with_columns(&self, title: &str) -> String {
        self.aligned(title, |column| all(self.is_counted)[column].0.to_owned())
    }

    fn line(&self, row: &Shown) -> String {
        let mark = if row.figures.is_wide() { "~ " } else { MARK };
        let cells =
            if self.is_counted { of_count(row.figures).to_vec() } else { cells(row.figures).to_vec() };
        let line = self
            .aligned(&format!("{mark}{}", row.name), |column| cells.get(column).cloned().unwrap_or_default());
        styled(if row.figures.is_wide() { Look::Flagged } else { Look::Plain }, &line)
    }

    fn aligned(&self, name: &str, cell: impl Fn(usize) -> String) -> String {
        let name = cut(&clean(name), self.name);
        let mut line = format!("{name}{}", " ".repeat(self.name.saturating_sub(name.width())));
        for column in self.columns {
            let (cell, width) = (cell(*column), all(self.is_counted)[*column].1);
            // A cell that is too long takes from the next gap.
            line.push_str(&" ".repeat(width.saturating_sub(cell.width()).max(1)));
            line.push_str(&cell);
        }
        cut(line.trim_end(), self.width)
    }
}

/// A case's name without its suite, in this many columns if possible: what it has in common with the other rows of its benchmark
/// is left out, then the names of the parameters.
fn name_among(case: &Case, others: &[&CaseRow], width: usize) -> String {
    let benchmark = case.benchmark.rsplit('/').next().unwrap_or_default();
    let differs = |name: &String| {
        let same = others.iter().filter(|row| row.case.benchmark == case.benchmark);
        same.into_iter().any(|row| row.case.params.get(name) != case.params.get(name))
    };
    let own = || case.params.iter().filter(|(name, _)| differs(name));
    let named: Vec<String> = case.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let named_own: Vec<String> = own().map(|(name, value)| format!("{name}={value}")).collect();
    let values: Vec<String> = own().map(|(_, value)| value.to_string()).collect();
    let with = |params: &[String]| match params {
        [] => benchmark.to_owned(),
        params => format!("{benchmark}{{{}}}", params.join(", ")),
    };
    let names = [with(&named), with(&named_own)];
    names.into_iter().find(|name| name.width() <= width).unwrap_or_else(|| with(&values))
}

fn all(is_counted: bool) -> &'static [(&'static str, usize)] {
    if is_counted { &COLUMNS_OF_COUNTS } else { &COLUMNS }
}

fn layout(is_counted: bool, width: usize) -> (&'static [usize], usize) {
    let [most, fewest] = NAMES;
    let fits = |columns: &&'static [usize]| fewest + taken(is_counted, columns) <= width;
    let columns = layouts(is_counted).iter().copied().find(fits).unwrap_or(&[0]);
    (columns, width.saturating_sub(taken(is_counted, columns)).min(most))
}

fn layouts(is_counted: bool) -> &'static [&'static [usize]] {
    if is_counted { LAYOUTS_OF_COUNTS } else { LAYOUTS }
}

fn taken(is_counted: bool, columns: &[usize]) -> usize {
    columns.iter().map(|column| all(is_counted)[*column].1).sum()
}

const MEMORY: &str = "Memory";

fn title(section: Section, summary: &Summary) -> String {
    let facts = &summary.run.facts;
    match section {
        Section::Entry => "Kernel entry, in a function".to_owned(),
        Section::Faults => "Faults and signals, in a function".to_owned(),
        Section::Loads | Section::Memory => MEMORY.to_owned(),
        Section::Processes => "Locks, scheduling, processes".to_owned(),
        Section::Files => {
            let on = facts::text(facts, "files.fs").zip(facts::text(facts, "files.device"));
            on.map_or("Files".to_owned(), |(fs, device)| format!("Files ({fs} on {device})"))
        }
    }
}

fn section_of(suite: &str) -> Option<Section> {
    match suite {
        "entry" => Some(Section::Entry),
        "traps" => Some(Section::Faults),
        "memory" => Some(Section::Memory),
        "locks" | "processes" => Some(Section::Processes),
        "files" => Some(Section::Files),
        _ => None,
    }
}

pub(crate) fn headlines<'a>(summary: &'a Summary) -> Vec<(Section, &'a CaseRow<'a>, &'static Headline)> {
    let benchmarks = SUITES.iter().flat_map(|suite| suite.benchmarks);
    let marked =
        benchmarks.flat_map(|benchmark| benchmark.headlines.iter().map(move |mark| (benchmark, mark)));
    let mut all: Vec<_> = marked
        .filter_map(|(benchmark, mark)| Some((mark.section, row_of(summary, benchmark, mark)?, mark)))
        .collect();
    all.sort_by_key(|(section, ..)| *section);
    all
}

/// The measured row of a headline. The run may come from another machine with other cases.
fn row_of<'a>(summary: &'a Summary, benchmark: &Benchmark, headline: &Headline) -> Option<&'a CaseRow<'a>> {
    let mut rows = summary.rows.iter();
    rows.find(|row| row.case.benchmark == benchmark.name && headline.names(&row.case.params))
        .filter(|row| row.figures().is_some())
}

/// `dependent load, 4K pages: 16K 1.2 | 128K 4.0 | 4M 16 | 128M 183 ns`
fn loads(headlines: &[(Section, &CaseRow, &'static Headline)]) -> Option<String> {
    let load = |(section, row, headline): &(Section, &CaseRow, &'static Headline)| {
        let is_time = |figures: &&Figures| figures.is_estimate() && !figures.is_count();
        let figures = row.figures().filter(|_| *section == Section::Loads).filter(is_time)?;
        let below = if figures.below.is_some() { "< " } else { "" };
        Some(format!("{} {below}{}", headline.name, figures::significant(figures.bounded(), 2)))
    };
    let all: Vec<String> = headlines.iter().filter_map(load).collect();
    let mut of_loads = headlines.iter().filter(|(section, ..)| *section == Section::Loads);
    let page = of_loads.find_map(|(_, row, _)| row.case.params.get("page"));
    let pages = page.map_or(String::new(), |page| format!(", {} pages", page.to_string().to_uppercase()));
    (!all.is_empty()).then(|| format!("dependent load{pages}: {} ns", all.join(" | ")))
}

fn cells(figures: &Figures) -> [String; 4] {
    let unit = figures.measured.unit;
    let shown = |value: f64| figures::estimate(value, unit);
    if !figures.is_estimate() {
        return ["emulated".to_owned(), String::new(), String::new(), String::new()];
    }
    if let Some(limit) = figures.below {
        return [format!("< {}", shown(limit)), String::new(), String::new(), String::new()];
    }
    let is_long = |words: &String| words.width() >= COLUMNS[1].1;
    let median = shown(figures.estimate.median);
    let unit_name = median.split_once(' ').map_or("", |(_, unit)| unit);
    let words = figures.interval_in_words().map(|range| format!("{range} {unit_name}"));
    // If an interval is narrower than the last digit of the median, there is no room for more digits, and no use.
    let in_short = || {
        let ends = figures.estimate.interval?;
        let (low, high) = (shown(ends.low), shown(ends.high));
        let low = low.strip_suffix(unit_name).filter(|_| high.ends_with(unit_name))?;
        Some(format!("{}–{high}", low.trim_end()))
    };
    let interval = words.map(|words| if is_long(&words) { in_short().unwrap_or(words) } else { words });
    let min = figures.min().map(shown);
    let multiple = figures.multiple.filter(|_| unit == Unit::Nanoseconds).map(times);
    [median, interval.unwrap_or_default(), min.unwrap_or_default(), multiple.unwrap_or_default()]
}

fn of_count(figures: &Figures) -> [String; 3] {
    let count = counts::count(figures.estimate.median, figures.measured.unit);
    let batches = counts::batches(figures).unwrap_or_default();
    let multiple = figures.multiple.map(|multiple| match multiple {
        little if little < 0.095 => figures::significant(little, 1),
        multiple => times(multiple),
    });
    [count, batches, multiple.unwrap_or_default()]
}

/// `0.2`, `1.0`, `53`, `1390`: two digits are enough beside the figures themselves.
fn times(multiple: f64) -> String {
    match multiple {
        small if small < 9.95 => format!("{small:.1}"),
        _ => figures::thousands(&figures::significant(multiple, 2)),
    }
}
