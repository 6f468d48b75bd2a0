//! OpenMetrics 1.0 text that is valid in the older Prometheus text format too, for textfile collectors: gauges only, no time
//! stamps. Units are the base units: seconds and bytes.

use std::fmt::Write;

use tollgate_model::{Run, Unit};

use super::environment::{KeyFacts, machine};
use super::metric::{Metric, metrics};
use super::session::InSession;
use super::time::Moment;
use super::{short, word};
use crate::summary::{Figures, Summary};

/// The suffix of a family, its help and its value.
type Statistic = (&'static str, &'static str, fn(&Figures) -> Option<f64>);

const STATISTICS: [Statistic; 5] = [
    ("", "The median over fresh processes.", |figures| Some(figures.estimate.median)),
    ("_low", "The lower end of the 95 % CI of the median.", |figures| Some(figures.estimate.interval?.low)),
    ("_high", "The upper end of the 95 % CI of the median.", |figures| Some(figures.estimate.interval?.high)),
    ("_min", "The smallest sample.", |figures| figures.min()),
    ("_p99", "The 99th percentile of the samples.", |figures| figures.estimate.p99),
];

/// Base units with their quantities, in the order of their families.
const UNITS: [(&str, &str); 5] = [
    ("latency", "seconds"),
    ("size", "bytes"),
    ("latency", "cycles"),
    ("counted", "events"),
    ("executed", "instructions"),
];

fn in_base_unit(unit: Unit) -> (&'static str, f64) {
    match unit {
        Unit::Nanoseconds | Unit::NanosecondsPerLine => ("seconds", 1e9),
        Unit::Bytes => ("bytes", 1.0),
        Unit::Cycles => ("cycles", 1.0),
        Unit::Count => ("events", 1.0),
        Unit::Instructions => ("instructions", 1.0),
    }
}

/// All runs. The series of a single run have the same labels from run to run; series of several runs differ by the label `run`.
pub fn openmetrics(runs: &[Run]) -> String {
    let summaries: Vec<Summary> = runs.iter().map(Summary::of).collect();
    let runs: Vec<Series> = summaries.iter().map(|summary| Series::new(summary, runs.len() > 1)).collect();
    let mut text = String::new();
    for (quantity, unit) in UNITS {
        for (suffix, help, statistic) in STATISTICS {
            let name = format!("tollgate_{quantity}{suffix}_{unit}");
            let value = |figures: &Figures| statistic(figures).filter(|_| figures.below.is_none());
            family(&mut text, [&name, unit, help], &runs, value);
        }
        let name = format!("tollgate_{quantity}_detection_limit_{unit}");
        let help = "The upper bound of a value below the detection limit.";
        family(&mut text, [&name, unit, help], &runs, |figures| figures.below);
    }
    counts(&mut text, "tollgate_latency_kept_samples", "Samples that were kept.", &runs, |figures| {
        figures.estimate.samples as u64
    });
    counts(
        &mut text,
        "tollgate_latency_discarded_batches",
        "Batches that were discarded.",
        &runs,
        |figures| figures.measured.discarded,
    );
    of_runs(&mut text, &runs);
    text.push_str("# EOF\n");
    text
}

struct Series<'a> {
    run: &'a Run,
    metrics: Vec<Metric<'a>>,
    labels: String,
}

impl<'a> Series<'a> {
    fn new(summary: &'a Summary, of_several: bool) -> Self {
        let run = summary.run;
        let machine = machine(&run.facts).unwrap_or_default();
        let label = run.label.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut pairs = vec![("environment", word(&run.environment)), ("label", label), ("machine", machine)];
        if of_several {
            pairs.push(("run", run.id.to_string()));
        }
        // Other runs keep their series.
        if let Some(part) = InSession::of(run) {
            pairs.push(("session_environment", part.session_environment));
            pairs.extend(part.session_knob.map(|knob| ("session_knob", knob)));
            pairs.extend(part.session_command.map(|command| ("session_command", command)));
            pairs.extend(of_several.then_some(("session", part.session)));
        }
        Self { run, metrics: metrics(summary), labels: labels(&pairs) }
    }

    fn series(&self, metric: &Metric, figures: &Figures) -> String {
        let per = if figures.measured.unit == Unit::NanosecondsPerLine { "line" } else { "operation" };
        let own = [
            ("suite", metric.case.suite().to_owned()),
            ("benchmark", metric.case.benchmark.clone()),
            ("params", metric.params.clone()),
            ("metric", metric.name.to_owned()),
            ("per", per.to_owned()),
        ];
        format!("{},{}", labels(&own), self.labels)
    }

    fn valid(&self) -> impl Iterator<Item = (&Metric<'a>, &Figures<'a>)> {
        self.metrics.iter().filter_map(|metric| Some((metric, metric.valid()?)))
    }
}

fn family(
    text: &mut String,
    [name, unit, help]: [&str; 3],
    runs: &[Series],
    value: impl Fn(&Figures) -> Option<f64>,
) {
    let mut begun = false;
    for run in runs {
        for (metric, figures) in run.valid() {
            let (base, divisor) = in_base_unit(figures.measured.unit);
            let Some(value) = value(figures).filter(|_| base == unit) else { continue };
            if !begun {
                begin(text, name, Some(unit), help);
                begun = true;
            }
            let _ = writeln!(text, "{name}{{{}}} {}", run.series(metric, figures), value / divisor);
        }
    }
}

fn counts(text: &mut String, name: &str, help: &str, runs: &[Series], count: fn(&Figures) -> u64) {
    begin(text, name, None, help);
    for run in runs {
        for (metric, figures) in run.valid() {
            let _ = writeln!(text, "{name}{{{}}} {}", run.series(metric, figures), count(figures));
        }
    }
}

fn of_runs(text: &mut String, runs: &[Series]) {
    begin(text, "tollgate_cases", None, "Requested cases, by status.");
    for run in runs {
        for status in ["measured", "skipped", "failed"] {
            let number =
                run.metrics.iter().filter(|metric| metric.status() == status && !metric.is_part()).count();
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
    // Only OpenMetrics has the type info; in the older format it is a gauge of 1.
    begin(text, "tollgate_run_info", None, "The run and its machine.");
    for run in runs {
        let key_facts = KeyFacts::of(&run.run.facts);
        let mut own = vec![("version", short(&run.run.tool.version))];
        let facts = [
            ("kernel", key_facts.kernel),
            ("cpu", key_facts.cpu),
            ("microcode", key_facts.microcode),
            ("hypervisor", key_facts.hypervisor),
            ("clocksource", key_facts.clocksource),
        ];
        own.extend(facts.map(|(name, value)| (name, value.unwrap_or_default())));
        // With several runs it is a label of each series.
        if runs.len() == 1 {
            own.push(("run", run.run.id.to_string()));
            own.extend(InSession::of(run.run).map(|part| ("session", part.session)));
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
