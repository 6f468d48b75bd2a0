//! A harness that the user describes: commands that list the benches and execute one of them, and the position of its figure.

use tollgate_model::stats;
use tollgate_model::text::excerpt;
use tollgate_os::words;

/// Placeholders for the path of a build, and for the name of a bench.
const BINARY: &str = "{binary}";
const BENCH: &str = "{bench}";
const NUMBER: &str = "{iterations}";
/// Placeholders for a figure, and its unit in ns.
const UNITS: [(&str, f64); 4] = [("{ns}", 1.0), ("{us}", 1e3), ("{ms}", 1e6), ("{s}", 1e9)];

/// A harness that the user describes.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    list: Vec<String>,
    one: Vec<String>,
    /// The texts before and after a figure in its line.
    around: [String; 2],
    unit: f64,
}

impl Template {
    /// Parses the commands that list the benches, one per line, and execute one, and a line with its figure (`took {ms} ms`).
    ///
    /// # Errors
    /// A sentence: the option and what is wrong with it.
    pub fn new(list: &str, one: &str, read: &str) -> Result<Self, String> {
        let split = |option: &str, line: &str, needed: &[&str]| {
            let words = words::split(line).map_err(|why| format!("{option} {}: {why}", excerpt(line)))?;
            match needed.iter().find(|needed| !words.iter().any(|word| word.contains(**needed))) {
                Some(missing) => Err(format!("{option} {}: it lacks {missing}", excerpt(line))),
                None => Ok(words),
            }
        };
        let figure = UNITS.iter().find_map(|(mark, unit)| Some((read.split_once(mark)?, *unit)));
        let ((before, behind), unit) = figure.ok_or_else(|| {
            format!(
                "--read {}: it lacks {{ns}}, {{us}}, {{ms}} or {{s}} in place of the figure",
                excerpt(read)
            )
        })?;
        Ok(Self {
            list: split("--list", list, &[BINARY])?,
            one: split("--one", one, &[BINARY, BENCH])?,
            around: [before, behind].map(str::to_owned),
            unit,
        })
    }

    /// Whether another program parses the bench's name, as in `sh -c '{binary} {bench}'`: after an option like `-c`, or next to
    /// words.
    pub(super) fn is_interpreted(&self) -> bool {
        let is_option =
            |word: &String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
        let is_after = |pair: &[String]| is_option(&pair[0]) && pair[1].contains(BENCH);
        let is_beside = |word: &String| word.contains(BENCH) && word.contains(char::is_whitespace);
        self.one.windows(2).any(is_after) || self.one.iter().any(is_beside)
    }

    pub(super) fn list_words(&self, program: &str) -> Vec<String> {
        self.list.iter().map(|word| word.replace(BINARY, program)).collect()
    }

    pub(super) fn is_told(&self) -> bool {
        self.one.iter().any(|word| word.contains(NUMBER))
    }

    pub(super) fn one_words(&self, program: &str, bench: &str, iterations: u64) -> Vec<String> {
        // In this order, so that a bench whose name has braces stays as it is.
        let fill = |word: &String| {
            let fill = |piece: &str| piece.replace(BINARY, program).replace(NUMBER, &iterations.to_string());
            let pieces: Vec<String> = word.split(BENCH).map(fill).collect();
            pieces.join(bench)
        };
        self.one.iter().map(fill).collect()
    }

    /// The median of the figures in the output, in ns.
    pub(super) fn figure(&self, output: &str) -> Result<f64, String> {
        let figures: Vec<f64> = output.lines().filter_map(|line| self.in_line(line)).collect();
        let median = stats::median(&figures).map(|median| median * self.unit);
        median.ok_or_else(|| "has no line in its output that matches --read".to_owned())
    }

    fn in_line(&self, line: &str) -> Option<f64> {
        let [before, behind] = &self.around;
        let (_, rest) = line.split_once(before.as_str())?;
        let rest = rest.trim_start();
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | 'e' | 'E' | '+' | '-');
        let (figure, rest) = rest.split_at(rest.find(|c: char| !is_part(c)).unwrap_or(rest.len()));
        rest.trim_start().starts_with(behind.trim()).then(|| number(figure)).flatten()
    }
}

/// A number, perhaps with groups of three digits: `1,234.5`. Another comma may be that of a decimal fraction.
fn number(text: &str) -> Option<f64> {
    let whole = text.split('.').next().unwrap_or_default();
    let are_groups = whole.split(',').skip(1).all(|group| group.len() == 3);
    let is_behind = text[whole.len()..].contains(',');
    (are_groups && !is_behind).then(|| text.replace(',', "").parse().ok()).flatten()
}
