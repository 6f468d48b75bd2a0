//! OpenMetrics 1.0 text that is the older Prometheus text format too, for collectors of text files: gauges only, no time stamps.
//! Units are the base units: seconds and bytes.

use std::fmt::Write;

use tollgate_model::{Run, Unit};

use super::environment::{Hot, machine};
use super::metric::{Figures, Metric, metrics};

use super::time::Moment;
use super::{short, word};

/// A figure of a price, by the name of its family without the unit.
struct Statistic {
    family: &'static str,
    help: &'static str,
    /// Of what has a price, unless it is what has none.
    value: fn(&Figures) -> Option<f64>,
}

const fn told(figures: &Figures, value: f64) -> Option<f64> {
    if figures.below.is_none() { Some(value) } else { None }
}

const STATISTICS: [Statistic; 6] = [
    Statistic {
        family: "tollgate_price",
        help: "The median over fresh processes.",
        value: |figures| told(figures, figures.estimate.median),
    },
    Statistic {
        family: "tollgate_price_low",
        help: "The lower end of the median's interval at 95 %.",
        value: |figures| told(figures, figures.estimate.interval.low),
    },
    Statistic {
        family: "tollgate_price_high",
        help: "The upper end of the median's interval at 95 %.",
        value: |figures| told(figures, figures.estimate.interval.high),
    },
    Statistic {
        family: "tollgate_price_floor",
        help: "The smallest sample.",
        value: |figures| told(figures, figures.estimate.min),
    },
    Statistic {
        family: "tollgate_price_p99",
        help: "99 % of the samples are at or below it.",
        value: |figures| told(figures, figures.estimate.p99),
    },
    Statistic {
        family: "tollgate_price_below",
        help: "What a price is below that cannot be told from nothing.",
        value: |figures| figures.below,
    },
];

/// Base units, in the order of their families.
const UNITS: [&str; 4] = ["seconds", "bytes", "cycles", "instructions"];

/// The base unit, and how many of ours are one of it.
fn in_base_unit(unit: Unit) -> (&'static str, f64) {
    match unit {
        Unit::Nanoseconds | Unit::NanosecondsPerLine => ("seconds", 1e9),
        Unit::Bytes => ("bytes", 1.0),
        Unit::Cycles => ("cycles", 1.0),
        Unit::Instructions => ("instructions", 1.0),
    }
}

/// All runs. The series of one run keep their names from run to run; where there are several, the label `run` tells them apart.
pub fn openmetrics(runs: &[Run]) -> String {
    let told: Vec<Told> = runs.iter().map(|run| Told::of(run, runs.len() > 1)).collect();
    let mut text = String::new();
    for unit in UNITS {
        for statistic in &STATISTICS {
            family(&mut text, statistic, unit, &told);
        }
    }
    counts(
        &mut text,
        "tollgate_price_kept_samples",
        "Samples that a price is made from.",
        &told,
        |figures| figures.estimate.samples as u64,
    );
    counts(
        &mut text,
        "tollgate_price_dropped_blocks",
        "Blocks that were timed and not kept.",
        &told,
        |figures| figures.discarded,
    );
    of_runs(&mut text, &told);
    text.push_str("# EOF\n");
    text
}

/// A run and what there is to tell of it.
struct Told<'a> {
    run: &'a Run,
    metrics: Vec<Metric<'a>>,
    /// The labels that all its series have.
    labels: String,
}

impl<'a> Told<'a> {
    fn of(run: &'a Run, of_several: bool) -> Self {
        let machine = machine(&run.facts).unwrap_or_default();
        let label = run.label.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut pairs = vec![("environment", word(&run.environment)), ("label", label), ("machine", machine)];
        if of_several {
            pairs.push(("run", run.id.to_string()));
        }
        Self { run, metrics: metrics(run), labels: labels(&pairs) }
    }

    /// The labels of a metric, without braces.
    fn series(&self, metric: &Metric, figures: &Figures) -> String {
        let per = if figures.unit == Unit::NanosecondsPerLine { "line" } else { "operation" };
        let own = [
            ("suite", metric.suite().to_owned()),
            ("benchmark", metric.case.benchmark.clone()),
            ("params", metric.params.clone()),
            ("metric", metric.name.to_owned()),
            ("per", per.to_owned()),
        ];
        format!("{},{}", labels(&own), self.labels)
    }

    fn estimates(&self) -> impl Iterator<Item = (&Metric<'a>, &Figures)> {
        self.metrics
            .iter()
            .filter_map(|metric| Some((metric, metric.figures().filter(|figures| figures.is_estimate())?)))
    }
}

fn family(text: &mut String, statistic: &Statistic, unit: &str, runs: &[Told]) {
    let name = format!("{}_{unit}", statistic.family);
    let mut begun = false;
    for run in runs {
        for (metric, figures) in run.estimates() {
            let (base, divisor) = in_base_unit(figures.unit);
            let Some(value) = (statistic.value)(figures).filter(|_| base == unit) else { continue };
            if !begun {
                begin(text, &name, Some(unit), statistic.help);
                begun = true;
            }
            let _ = writeln!(text, "{name}{{{}}} {}", run.series(metric, figures), value / divisor);
        }
    }
}

fn counts(text: &mut String, name: &str, help: &str, runs: &[Told], count: fn(&Figures) -> u64) {
    begin(text, name, None, help);
    for run in runs {
        for (metric, figures) in run.estimates() {
            let _ = writeln!(text, "{name}{{{}}} {}", run.series(metric, figures), count(figures));
        }
    }
}

/// What is to be told of a run as such.
fn of_runs(text: &mut String, runs: &[Told]) {
    begin(text, "tollgate_cases", None, "Cases that were asked for, by what became of them.");
    for run in runs {
        for status in ["measured", "skipped", "failed"] {
            let number = run
                .metrics
                .iter()
                .filter(|metric| metric.status() == status && metric.name == super::metric::PRICE)
                .count();
            let _ = writeln!(text, "tollgate_cases{{status=\"{status}\",{}}} {number}", run.labels);
        }
    }
    let started = "tollgate_run_started_timestamp_seconds";
    begin(text, started, Some("seconds"), "When the run began, since 1970.");
    for run in runs {
        if let Ok(moment) = run.run.started.parse::<Moment>() {
            let _ = writeln!(text, "{started}{{{}}} {}", run.labels, moment.unix());
        }
    }
    // The type info is OpenMetrics alone; a gauge of 1 is what it becomes in the older format.
    begin(text, "tollgate_run_info", None, "The run and the machine that it was made on.");
    for run in runs {
        let hot = Hot::of(&run.run.facts);
        let mut own = vec![("version", short(&run.run.tool.version))];
        let facts = [
            ("kernel", hot.kernel),
            ("cpu", hot.cpu),
            ("microcode", hot.microcode),
            ("hypervisor", hot.hypervisor),
            ("clocksource", hot.clocksource),
        ];
        own.extend(facts.map(|(name, value)| (name, value.unwrap_or_default())));
        // With several runs it is among the labels of each.
        if runs.len() == 1 {
            own.push(("run", run.run.id.to_string()));
        }
        let _ = writeln!(text, "tollgate_run_info{{{},{}}} 1", labels(&own), run.labels);
    }
}

fn begin(text: &mut String, name: &str, unit: Option<&str>, help: &str) {
    let _ = writeln!(text, "# TYPE {name} gauge");
    if let Some(unit) = unit {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {help}");
}

fn labels(pairs: &[(&str, String)]) -> String {
    pairs.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect::<Vec<_>>().join(",")
}

/// A label's value, as both formats write it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
