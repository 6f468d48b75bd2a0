//! A quantity is the figure that stands beside a published one: a case of a run with its estimator and unit, a fact, the verdict
//! on a program of `tollgate schedules`, a kernel option, the answer of another verb, or a ratio or difference of these.

use serde::Deserialize;
use tollgate_model::estimate::Estimate;
use tollgate_model::stats::{Interval, trimmed_mean};
use tollgate_model::traced::blame;
use tollgate_model::{Fact, FactValue, Unit};
use tollgate_schedules::subject::Wish;
use tollgate_schedules::{Limits, Verdict};
use tollgate_view::facts;
use tollgate_view::summary::{CaseRow, Figures, State, Summary};

use crate::figure::{Answer, Bound, Figure, Modes};
use crate::known::{Known, row};

/// A quantity. One of the fields without a default says what is meant; the others say how it is computed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quantity {
    case: String,
    /// Selects from the matching cases the one with the nth smallest value of a parameter, counted from 0.
    nth: Option<(String, usize)>,
    /// A note that the case must have, and the reason to give if it does not.
    noted: Option<(String, String)>,
    by: By,
    /// A column of a traced command: `real`, `user`, `sys` or `waiting`.
    part: String,
    /// The calls of a traced command whose time is summed over all its processes.
    calls: Vec<String>,
    unit: In,
    /// A factor for the figure.
    times: Option<f64>,
    status: String,
    ratio: Option<Box<[Quantity; 2]>>,
    minus: Option<Box<[Quantity; 2]>>,
    /// Alternatives; the first that is known counts.
    any: Vec<Quantity>,
    fact: String,
    /// A published figure.
    value: Option<f64>,
    /// The answer of another verb, as `NAME.WHAT` of an [`Ask`](crate::Ask).
    told: String,
    /// The program of `tollgate schedules` whose verdict is meant.
    schedule: String,
    /// Whether the program is preempted in user mode, which is the default.
    preempted: Option<bool>,
    /// A kernel option, or `=y` or `=m` for the number of options with that value.
    option: String,
    /// Further arguments of `tollgate run`, if `--check` does not measure it: it is slow or needs another environment.
    on_request: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum By {
    #[default]
    Median,
    /// The mean of the first five samples.
    #[serde(rename = "mean-of-5")]
    MeanOf5,
    #[serde(rename = "mean-of-10")]
    MeanOf10,
    #[serde(rename = "mean-of-20")]
    MeanOf20,
    /// The mean of twelve samples without the highest and the lowest.
    TrimmedMean,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
enum In {
    #[default]
    #[serde(rename = "ns")]
    Nanoseconds,
    #[serde(rename = "µs")]
    Microseconds,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "s")]
    Seconds,
    /// Cycles of the time stamp counter.
    #[serde(rename = "cycles")]
    Cycles,
    /// 10⁶ bytes.
    #[serde(rename = "MB")]
    Megabytes,
    /// 1024 bytes.
    #[serde(rename = "KB")]
    Kilobytes,
    /// 10⁶ bytes per second.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// Operations in 20 seconds.
    #[serde(rename = "in 20 s")]
    TwentySeconds,
}

/// Why a quantity is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The reason, as a clause.
    pub why: String,
    /// The patterns of the cases that no run was asked to measure.
    pub to_measure: Vec<String>,
}

impl Missing {
    fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), to_measure: Vec::new() }
    }

    fn beside(self, cases: Vec<String>) -> Self {
        Self { to_measure: [self.to_measure, cases].concat(), ..self }
    }
}

impl Quantity {
    /// Returns the value from the first run that has it, with the index of that run.
    ///
    /// # Errors
    /// If no run has it, returns the reason of the first run that was asked to measure it.
    pub(super) fn evaluate(&self, known: &Known) -> Result<(Answer, usize), Missing> {
        let mut why: Option<Missing> = None;
        for (at, summary) in known.runs.iter().enumerate() {
            match self.of_run(known, Some(summary)) {
                Ok(answer) => return Ok((answer, at)),
                Err(missing) => {
                    let tells_more = why.as_ref().is_none_or(|known| !known.to_measure.is_empty());
                    if tells_more && (why.is_none() || missing.to_measure.is_empty()) {
                        why = Some(missing);
                    }
                }
            }
        }
        match why {
            None => self.of_run(known, None).map(|answer| (answer, 0)),
            Some(why) => Err(why),
        }
    }

    /// Returns the patterns of the cases that it needs and that no run was asked to measure, except those measured on request only.
    pub fn to_measure(&self, known: &Known) -> Vec<String> {
        if self.is_on_request() {
            Vec::new()
        } else {
            self.evaluate(known).err().map(|missing| missing.to_measure).unwrap_or_default()
        }
    }

    /// Returns the fact of the answer that it needs and no run has. A failed one is asked for again: a guest's kernel may exist
    /// by then.
    pub fn unanswered(&self, known: &Known) -> Vec<String> {
        let pairs = [&self.ratio, &self.minus].into_iter().flatten().flat_map(|pair| pair.iter());
        let own = Some(&self.told).filter(|told| !told.is_empty()).map(|told| fact_of(told));
        let is_open = |name: &String| {
            let mut answers = known.runs.iter().filter_map(|summary| summary.run.facts.get(name));
            !answers.any(|fact| matches!(fact, Fact::Known { .. }))
        };
        let parts = pairs.chain(&self.any).flat_map(|part| part.unanswered(known));
        own.into_iter().filter(is_open).chain(parts).collect()
    }

    /// Returns the patterns of all cases that it names.
    pub fn patterns(&self) -> Vec<&str> {
        let pairs = [&self.ratio, &self.minus].into_iter().flatten().flat_map(|pair| pair.iter());
        let parts = pairs.chain(&self.any).flat_map(Self::patterns);
        let own = [self.case.as_str(), &self.status].into_iter().filter(|pattern| !pattern.is_empty());
        own.chain(parts).collect()
    }

    /// Returns whether a part of it is measured on request only.
    pub fn is_on_request(&self) -> bool {
        let pairs = [&self.ratio, &self.minus].into_iter().flatten().flat_map(|pair| pair.iter());
        self.on_request.is_some() || pairs.chain(&self.any).any(Self::is_on_request)
    }

    pub(super) fn of_run(&self, known: &Known, summary: Option<&Summary>) -> Result<Answer, Missing> {
        let answer = if !self.any.is_empty() {
            self.first_of(known, summary)?
        } else if let Some(pair) = &self.ratio {
            self.of_pair(pair, known, summary, Figure::over)?
        } else if let Some(pair) = &self.minus {
            self.of_pair(pair, known, summary, Figure::minus)?
        } else if let Some(value) = self.value {
            exactly(value)
        } else if !self.told.is_empty() {
            answered(known, &self.told)?
        } else if !self.schedule.is_empty() {
            Answer::Words(schedule(&self.schedule, self.preempted)?)
        } else if !self.option.is_empty() {
            Answer::Words(known.option(&self.option).map_err(Missing::because)?)
        } else if !self.fact.is_empty() {
            Answer::Words(fact(known, &self.fact)?)
        } else if !self.status.is_empty() {
            let row = self.find(known, summary, &self.status)?;
            Answer::Words(row.status().to_owned())
        } else {
            Answer::Figure(self.of_case(known, summary)?)
        };
        Ok(match (answer, self.times) {
            (Answer::Figure(figure), Some(times)) => Answer::Figure(figure.times(times)),
            (answer, _) => answer,
        })
    }

    /// Returns the first alternative that this run has. If it has none, returns the reason of the first.
    fn first_of(&self, known: &Known, summary: Option<&Summary>) -> Result<Answer, Missing> {
        let mut answers = self.any.iter().map(|one| one.of_run(known, summary));
        let first = answers.next().unwrap_or_else(|| Err(Missing::because("nothing is named")));
        first.or_else(|why| answers.find_map(Result::ok).ok_or(why))
    }

    /// Returns the patterns of the cases from which this run's value is computed.
    pub(super) fn taken(&self, known: &Known, summary: Option<&Summary>) -> Vec<String> {
        match self.any.iter().find(|one| one.of_run(known, summary).is_ok()) {
            Some(one) => one.taken(known, summary),
            None => {
                let patterns = self.patterns().into_iter().filter(|pattern| known.has_case(pattern));
                patterns.map(str::to_owned).collect()
            }
        }
    }

    fn of_pair(
        &self,
        pair: &[Self; 2],
        known: &Known,
        summary: Option<&Summary>,
        join: fn(Figure, Figure) -> Option<Figure>,
    ) -> Result<Answer, Missing> {
        let [one, other] = pair.each_ref().map(|quantity| quantity.of_run(known, summary));
        match (one, other) {
            (Ok(Answer::Figure(one)), Ok(Answer::Figure(other))) if one.is_count == other.is_count => {
                join(one, other)
                    .map(Answer::Figure)
                    .ok_or_else(|| Missing::because("too small a figure: below the detection limit"))
            }
            (Ok(_), Ok(_)) => Err(Missing::because("a count and a time are not compared")),
            (Err(one), Err(other)) if !one.to_measure.is_empty() && !other.to_measure.is_empty() => {
                Err(Missing { why: one.why, to_measure: [one.to_measure, other.to_measure].concat() })
            }
            // Both parts of a ratio must come from one run.
            (Err(missing), Ok(Answer::Figure(_))) if !missing.to_measure.is_empty() => {
                Err(missing.beside(pair[1].taken(known, summary)))
            }
            (Ok(Answer::Figure(_)), Err(missing)) if !missing.to_measure.is_empty() => {
                Err(missing.beside(pair[0].taken(known, summary)))
            }
            (Err(missing), _) | (_, Err(missing)) => Err(missing),
        }
    }

    fn find<'a, 'b>(
        &self,
        known: &Known,
        summary: Option<&'b Summary<'a>>,
        pattern: &str,
    ) -> Result<&'b CaseRow<'a>, Missing> {
        if let Some(found) = summary.and_then(|summary| row(summary, pattern, self.nth.as_ref())) {
            return Ok(found);
        }
        if !known.has_case(pattern) {
            return Err(Missing::because(format!("this machine has no case {pattern}")));
        }
        let why = match self.on_request.as_deref() {
            Some("") => format!("not in the given runs; `tollgate run '{pattern}'` measures it"),
            Some(options) => {
                format!("not in the given runs; `tollgate run '{pattern}' {options}` measures it")
            }
            None => "not in the given runs; --check measures it".to_owned(),
        };
        Err(Missing { why, to_measure: vec![pattern.to_owned()] })
    }

    fn of_case(&self, known: &Known, summary: Option<&Summary>) -> Result<Figure, Missing> {
        let row = self.find(known, summary, &self.case)?;
        let figures = match &row.state {
            State::Measured(figures) => figures,
            State::Without(status, why) => {
                return Err(Missing::because(format!("{} is {}: {why}", row.case, status.name())));
            }
        };
        if let Some((note, why)) = &self.noted
            && !figures.measured.notes.contains(note)
        {
            return Err(Missing::because(why));
        }
        if !figures.is_estimate() {
            return Err(Missing::because(format!(
                "{} was executed by an emulator, whose times are not latencies",
                row.case
            )));
        }
        let mut figure = self.estimate(figures).ok_or_else(|| {
            Missing::because(format!("{} has too few samples, or no such part or call", row.case))
        })?;
        figure.from = vec![row.case.clone()];
        if figure.is_count {
            return Ok(figure);
        }
        let clock_is_tsc = summary.is_some_and(|summary| facts::clock_is_tsc(&summary.run.facts));
        self.scaled(figure, figures, clock_is_tsc)
            .ok_or_else(|| Missing::because(format!("{} has no figure in that unit", row.case)))
    }

    /// Returns the figure in the unit of the samples, without its case.
    fn estimate(&self, figures: &Figures) -> Option<Figure> {
        let plain = |value: f64, has_no_interval| Figure {
            value,
            interval: None,
            modes: None,
            bound: None,
            is_count: figures.is_count() && figures.measured.unit == Unit::Instructions,
            has_no_interval,
            from: Vec::new(),
        };
        if !self.calls.is_empty() {
            let traced = blame::median(figures.measured.divided())?;
            let meant = traced.calls.iter().filter(|call| self.calls.contains(&call.name));
            let total = meant.map(|call| call.total_ns as f64).reduce(|one, other| one + other)?;
            return Some(plain(total, true));
        }
        if !self.part.is_empty() {
            let part = figures.parts.iter().find(|part| part.name == self.part)?;
            return Some(Figure {
                interval: part.figures.estimate.interval,
                ..plain(part.figures.estimate.median, part.figures.estimate.interval.is_none())
            });
        }
        let samples = &figures.measured.samples;
        let mean = |number: usize| {
            let first = samples.get(..number)?;
            Some(plain(first.iter().sum::<f64>() / number as f64, true))
        };
        match self.by {
            // No estimator reports a figure below the detection limit.
            _ if figures.below.is_some() => {
                Some(Figure { bound: Some(Bound::AtMost), ..plain(figures.bounded(), false) })
            }
            By::MeanOf5 => mean(5),
            By::MeanOf10 => mean(10),
            By::MeanOf20 => mean(20),
            By::TrimmedMean => Some(plain(trimmed_mean(samples)?, true)),
            By::Median => {
                let Estimate { median, interval, modes, .. } = &figures.estimate;
                let modes = modes.as_slice().try_into().ok().map(Modes::Two);
                Some(Figure { interval: *interval, modes, ..plain(*median, false) })
            }
        }
    }

    fn scaled(&self, figure: Figure, figures: &Figures, clock_is_tsc: bool) -> Option<Figure> {
        let measured = &figures.measured;
        let is_time = matches!(measured.unit, Unit::Nanoseconds | Unit::NanosecondsPerLine);
        let time = |factor: f64| is_time.then_some(factor);
        let factor = match (self.unit, measured.unit) {
            (In::Nanoseconds, _) => time(1.0),
            (In::Microseconds, _) => time(1e-3),
            (In::Milliseconds, _) => time(1e-6),
            (In::Seconds, _) => time(1e-9),
            (In::Cycles, Unit::Cycles) => Some(1.0),
            (In::Cycles, _) => time(measured.clock_hz as f64 / 1e9).filter(|_| clock_is_tsc),
            (In::Megabytes, Unit::Bytes) => Some(1e-6),
            (In::Kilobytes, Unit::Bytes) => Some(1.0 / 1024.0),
            (In::Megabytes | In::Kilobytes, _) => None,
            (In::MegabytesPerSecond, _) => {
                return Some(per(figure, time(measured.bytes_per_op? as f64 * 1e3)?));
            }
            (In::TwentySeconds, _) => return Some(per(figure, time(20e9)?)),
        };
        factor.map(|factor| figure.times(factor))
    }
}

/// Returns `amount` divided by the figure.
fn per(mut figure: Figure, amount: f64) -> Figure {
    let turned = |value: f64| amount / value;
    figure.interval = figure
        .interval
        .filter(|interval| interval.low > 0.0)
        .map(|interval| Interval { low: turned(interval.high), high: turned(interval.low) });
    figure.bound = figure.bound.map(|_| Bound::AtLeast);
    figure.modes = figure.modes.map(|modes| modes.under(amount));
    figure.value = turned(figure.value);
    figure
}

pub(crate) fn fact_of(told: &str) -> String {
    format!("claims.{told}")
}

/// Returns the answer from the first run that has it; if none has, returns the reason.
fn answered(known: &Known, told: &str) -> Result<Answer, Missing> {
    let name = fact_of(told);
    let answers = || known.runs.iter().filter_map(|summary| summary.run.facts.get(&name));
    match answers().find(|fact| matches!(fact, Fact::Known { .. })).or_else(|| answers().next()) {
        None => Err(Missing::because("not in the given runs; --check asks for it")),
        Some(Fact::Unknown { why }) => Err(Missing::because(why.kind_and_why().1)),
        Some(Fact::Known { value: FactValue::Integer(number), .. }) => Ok(exactly(*number as f64)),
        Some(Fact::Known { value: FactValue::Real(number), .. }) => Ok(exactly(*number)),
        Some(Fact::Known { value, .. }) => Ok(Answer::Words(value.to_string())),
    }
}

fn exactly(value: f64) -> Answer {
    let (interval, modes, bound) = (None, None, None);
    let from = Vec::new();
    Answer::Figure(Figure { value, interval, modes, bound, is_count: false, has_no_interval: true, from })
}

fn fact(known: &Known, name: &str) -> Result<String, Missing> {
    match known.facts.get(name) {
        Some(Fact::Known { value, .. }) => Ok(facts::in_words(name, value)),
        Some(Fact::Unknown { why }) => Err(Missing::because(format!("{name} is unknown: {why}"))),
        None => Err(Missing::because(format!("there is no fact {name}"))),
    }
}

fn schedule(name: &str, preempted: Option<bool>) -> Result<String, Missing> {
    let subject = tollgate_schedules::subjects().find(|subject| subject.name() == name);
    let subject = subject.ok_or_else(|| Missing::because(format!("there is no program {name}")))?;
    let wish = Wish { preempted, ..Wish::default() };
    let setting = subject.setting(wish).map_err(|unfit| Missing::because(unfit.to_string()))?;
    match subject.check(setting, Limits::default()).verdict {
        Verdict::Holds => Ok("holds".to_owned()),
        Verdict::Violated(harm) => Ok(harm.to_string()),
        Verdict::Allowed => Ok("allowed".to_owned()),
        Verdict::Forbidden => Ok("forbidden".to_owned()),
        Verdict::NotDecided(_) => Err(Missing::because("not every order of steps was checked")),
    }
}
