//! The fields of traced system calls, each declared once. JSON and CSV have all of them; the table picks some by key.

use std::borrow::Cow;

use tollgate_model::Traced;
use tollgate_model::traced::{Backend, Call, Parts};
use tollgate_output::column::{Column, Columns, ValueKind};
use tollgate_output::json::Record;
use tollgate_output::spreadsheet::{self, Reader};
use tollgate_output::value::Value;

use super::text;

/// One call, several together, or the time outside of calls.
pub(crate) struct Line<'a> {
    name: Cow<'a, str>,
    /// `None` outside of calls.
    counts: Option<Counts>,
    parts: Parts,
    total_ns: u64,
    /// The call if there is only one: more is known about it than about a sum.
    call: Option<&'a Call>,
    known: Known,
    /// Whether text shows the parts as shares of the total, because times do not fit.
    in_shares: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    count: u64,
    errors: u64,
    unfinished: u64,
    stopped: u64,
}

/// The parts of time that a backend knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub cpu: bool,
    /// The kinds of waiting. ptrace(2) sees that a thread was off its processor, but not why.
    pub kinds: bool,
    /// How long calls took.
    pub totals: bool,
    /// The calls of the command's own children.
    pub children: bool,
}

impl Known {
    pub(crate) fn of(traced: &Traced) -> Self {
        let has_kinds = |parts: &Parts| parts.sleep_ns > 0 || parts.disk_ns > 0 || parts.runqueue_ns > 0;
        Self {
            cpu: traced.backend != Backend::Strace,
            kinds: traced.backend == Backend::Bpf || traced.calls.iter().any(|call| has_kinds(&call.parts)),
            totals: !traced.is_untimed,
            children: traced.has_children(),
        }
    }
}

/// Returns whether a call is blocking, by its name or because it mostly slept, as a read from an empty pipe. A disk wait (state D
/// of proc(5)) is not sleep.
pub(crate) fn is_blocking(call: &Call) -> bool {
    crate::calls::is_blocking(&call.name) || call.parts.sleep_ns > call.total_ns / 2
}

/// Writes a header and a line for each call; unknown values are empty, and terminal control characters are escaped.
pub fn csv(traced: &Traced) -> String {
    let known = Known::of(traced);
    spreadsheet::from_rows(
        &columns(),
        traced.calls.iter().map(|call| Line::of(call, known)),
        Reader::Terminal,
    )
}

type Field<'a> = Column<Line<'a>>;

pub(crate) fn columns<'a>() -> Columns<Line<'a>> {
    Columns::new([
        Field::new(
            "name",
            "call",
            "Its name in the kernel's table, such as `openat`; `openat (32-bit)` if it is from the 32-bit table.",
            |line| Some(Value::new([line.name.as_ref().into()], text::sentence(&line.name))),
        )
        .of_words()
        .always(),
        whole("count", "calls", "Calls that returned.", |line| line.number(|of| of.count)),
        whole("errors", "errors", "The calls of `count` that returned an error.", |line| {
            let errors = line.number(|of| of.errors)?;
            Some(if errors.raw(0) == 0 { errors.in_words(None) } else { errors })
        }),
        whole("unfinished", "unfinished", "Calls that did not return.", |line| {
            line.number(|of| of.unfinished)
        }),
        whole(
            "stopped",
            "stopped",
            "The calls of `count` that a seccomp(2) filter stopped before they began. Their times are unknown and in \
             no field. Always 0 with ptrace(2) and strace(1), which time them.",
            |line| line.number(|of| of.stopped),
        ),
        Field::new(
            "total_s",
            "total",
            "Time from entry to return; the five parts sum to it. Null, like all other times, with a log of strace(1) without -T.",
            |line| line.known.totals.then(|| line.time(line.total_ns)),
        ),
        Field::new("on_cpu_s", "cpu", "On a processor, including interrupts and steal time.", |line| {
            line.known.cpu.then(|| line.part(line.parts.on_cpu_ns))
        }),
        Field::new(
            "sleep_s",
            "sleep",
            "Asleep until something happens. This and the next two are null if the backend does not distinguish them, \
             and lower bounds if `unknown_s` is above 0.",
            |line| line.known.kinds.then(|| line.part(line.parts.sleep_ns)),
        ),
        Field::new(
            "disk_s",
            "disk",
            "Waiting for a disk, or in another wait that signals do not end.",
            |line| line.known.kinds.then(|| line.part(line.parts.disk_ns)),
        ),
        Field::new("runqueue_s", "runnable", "Ready to run, without a processor.", |line| {
            line.known.kinds.then(|| line.part(line.parts.runqueue_ns))
        }),
        Field::new(
            "unknown_s",
            "off",
            "Off the processor, for a reason that the backend does not know.",
            |line| line.known.totals.then(|| line.part(line.parts.unknown_ns)),
        ),
        Field::new("mean_s", "mean", "The mean.", |line| {
            let mean = line.call.filter(|_| line.known.totals)?.mean_ns()?;
            Some(Value::new([(mean / 1e9).into()], text::time(mean.round() as u64)))
        }),
        Field::new("p50_s", "p50", "The median.", |line| Some(line.time(line.call?.quantile_ns(0.5)?))),
        Field::new("p99_s", "p99", "The 99th percentile.", |line| {
            Some(line.time(line.call?.quantile_ns(0.99)?))
        }),
        Field::new("max_s", "max", "The longest.", |line| {
            let longest = line.call?.max_ns;
            (longest > 0 || (line.total_ns == 0 && line.is_timed())).then(|| line.time(longest))
        }),
        Field::new(
            "blocking",
            "blocking",
            "Whether it waits for others as a rule, such as `wait4`.",
            |line| {
                let is_blocking = is_blocking(line.call?);
                Some(Value::new([is_blocking.into()], if is_blocking { "yes" } else { "no" }))
            },
        )
        .with_kinds(&[ValueKind::Flag])
        .always(),
    ])
}

const PARTS: [&str; 5] = ["on_cpu_s", "sleep_s", "disk_s", "runqueue_s", "unknown_s"];

/// Returns how threads passed their time. Kinds that the backend does not know are null, and count in `unknown_s`.
pub(crate) fn parts(parts: Parts, known: Known) -> Record {
    Record::from_row(&columns().pick(&PARTS), &Line::outside("", parts, known))
}

fn whole<'a>(
    key: &'static str,
    head: &'static str,
    about: &'static str,
    value: fn(&Line<'a>) -> Option<Value>,
) -> Field<'a> {
    Field::new(key, head, about, value).with_kinds(&[ValueKind::Whole]).always()
}

impl<'a> Line<'a> {
    pub(crate) fn of(call: &'a Call, known: Known) -> Self {
        Self { call: Some(call), ..Self::sum(&call.name, &[call], known) }
    }

    /// Sums all calls of an execution, or of a kind. A parent's wait for a traced child is the child's time, and in no sum.
    pub(crate) fn together(name: &'static str, calls: &[&Call], known: Known) -> Self {
        let own: Vec<&Call> =
            calls.iter().filter(|call| !known.children || !call.waits_for_child()).copied().collect();
        Self { counts: Self::sum(name, calls, known).counts, ..Self::sum(name, &own, known) }
    }

    pub(crate) fn sum(name: impl Into<Cow<'a, str>>, calls: &[&Call], known: Known) -> Self {
        let add = |of: fn(&Call) -> u64| calls.iter().map(|call| of(call)).fold(0, u64::saturating_add);
        let counts = Counts {
            count: add(|call| call.count),
            errors: add(|call| call.errors),
            unfinished: add(|call| call.unfinished),
            stopped: add(|call| call.stopped),
        };
        Self {
            name: name.into(),
            counts: Some(counts),
            parts: calls.iter().fold(Parts::default(), |sum, call| sum.plus(call.parts)),
            total_ns: add(|call| call.total_ns),
            call: None,
            known,
            in_shares: false,
        }
    }

    pub(crate) fn outside(name: &'a str, parts: Parts, known: Known) -> Self {
        let name = Cow::Borrowed(name);
        Self { name, counts: None, parts, total_ns: parts.total_ns(), call: None, known, in_shares: false }
    }

    pub(crate) fn plus(self, parts: Parts) -> Self {
        let total_ns = self.total_ns.saturating_add(parts.total_ns());
        Self { parts: self.parts.plus(parts), total_ns, ..self }
    }

    pub(crate) fn in_shares(self, in_shares: bool) -> Self {
        Self { in_shares, ..self }
    }

    /// Returns what the columns of a table do not say.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let counts = self.counts.unwrap_or_default();
        let said = [(counts.unfinished, "did not return"), (counts.stopped, "stopped by a filter")];
        let said = said.into_iter().filter(|(number, _)| *number > 0);
        said.map(|(number, what)| format!("{} {what}", text::grouped(number))).collect()
    }

    fn number(&self, of: fn(Counts) -> u64) -> Option<Value> {
        let number = of(self.counts?);
        Some(Value::new([number.into()], text::grouped(number)))
    }

    fn time(&self, ns: u64) -> Value {
        self.in_words(ns, text::time)
    }

    fn part(&self, ns: u64) -> Value {
        self.in_words(ns, |ns| if self.in_shares { text::share(ns, self.total_ns) } else { text::time(ns) })
    }

    /// Machine-readable values are in seconds.
    fn in_words(&self, ns: u64, words: impl FnOnce(u64) -> String) -> Value {
        Value::new([text::seconds(ns).into()], "").in_words(self.is_timed().then(|| words(ns)))
    }

    /// Returns `false` if all of its calls were stopped, so no time is known.
    fn is_timed(&self) -> bool {
        self.known.totals && self.counts.is_none_or(|of| of.stopped == 0 || of.count > of.stopped)
    }
}

#[cfg(feature = "schema")]
pub(crate) mod schema {
    tollgate_output::described!(
        /// A system call.
        TracedCall,
        tollgate_output::json::schema(&super::columns())
    );
    tollgate_output::described!(
        /// How threads passed their time. Kinds that the backend does not know are null, and in `unknown_s`.
        PartsOfTime,
        tollgate_output::json::schema(&super::columns().pick(&super::PARTS))
    );
}

#[cfg(test)]
mod tests {
    use super::super::{TracedCommand, calls, examples};
    use super::*;

    #[test]
    fn csv_json_and_table_have_the_fields_of_the_list_and_no_others() {
        let traced = examples::checkout();
        let fields: Vec<&str> = columns().iter().flat_map(|column| column.fields().to_vec()).collect();
        let lines = csv(&traced);
        assert_eq!(lines.lines().next(), Some(fields.join(",").as_str()));
        assert_eq!(lines.lines().count(), 1 + traced.calls.len());
        let document = serde_json::to_value(TracedCommand::of(&traced)).expect("JSON");
        let row = document["calls"][0].as_object().expect("an object");
        assert!(row.len() == fields.len() && fields.iter().all(|field| row.contains_key(*field)), "{row:?}");
        let table = anstream::adapter::strip_str(&calls::table(&traced, 1, 1, 200).render(200)).to_string();
        let heads: Vec<&str> = table.lines().next().expect("heads").split_whitespace().collect();
        let all = columns();
        assert!(
            heads.len() > 9 && heads.iter().all(|head| all.iter().any(|column| column.head == *head)),
            "{heads:?}"
        );
    }
}
