//! The bill of a machine: what sits on its boundaries, how its cost can be known, and what it costs each of a few calls.

use serde::Serialize;
use tollgate_inspect::bpf::Program;
use tollgate_model::compare::Verdict;
use tollgate_model::text::{clean, listed};
use tollgate_model::{Fact, FactValue, Facts, Reach, Unit, Unknown};
use tollgate_output::figures;
use tollgate_output::table::{Look, Table, paragraph};
use tollgate_output::value::NONE;

use crate::burdens;
use crate::comparison::{ComparedRow, Comparison};
use crate::session::Session;
use crate::session::json::SessionDocument;

/// The cases whose cost is divided, and how the table calls them.
pub const CALLS: [(&str, &str); 6] = [
    ("entry/syscall-getpid", "getpid"),
    ("files/open{timed=batches}", "open"),
    ("files/read{block=4k, state=cached, timed=batches}", "read"),
    ("ipc/connect{by=unix}", "connect"),
    ("processes/fork{dirty_mib=0, until=return}", "fork"),
    ("traps/minor-fault{page=4k}", "fault"),
];

/// The parameter of a guest without this machine's audit rules.
pub const WITHOUT_AUDIT: &str = "audit=0";

/// Something that sits on boundaries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Charge {
    /// The state, as a phrase.
    pub name: String,
    /// The fact that says so.
    pub fact: String,
    /// The boundaries that it is on; none if it affects everything.
    pub boundaries: Vec<&'static str>,
    /// How its cost can be known.
    #[serde(flatten)]
    pub way: Way,
}

/// How the cost of something can be known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "way", rename_all = "snake_case")]
pub enum Way {
    /// One command takes it away and another brings it back, in turns.
    Measured {
        /// The command that takes it away.
        without: String,
        /// The command that brings it back.
        with: String,
        /// The kernel parameter without it, for guests that count instructions as well.
        parameter: Option<&'static str>,
    },
    /// A parameter of the kernel decides: a guest counts instructions with and without it.
    Counted {
        /// The parameter that takes it away.
        parameter: &'static str,
    },
    /// The kernel times each run of the program.
    Statistics,
    /// It cannot be taken away here.
    NotKnown {
        /// The reason, and what would show it.
        why: &'static str,
    },
}

impl Way {
    /// The parameter that takes it away from a guest.
    pub fn parameter(&self) -> Option<&'static str> {
        match self {
            Self::Measured { parameter, .. } => *parameter,
            Self::Counted { parameter } => Some(parameter),
            Self::Statistics | Self::NotKnown { .. } => None,
        }
    }
}

/// Lists what is on, by the facts of a machine, the heaviest first.
pub fn charges(facts: &Facts) -> Vec<Charge> {
    let charge = |burden: burdens::Burden| {
        let effect = tollgate_inspect::effect(&burden.fact).map(|effect| effect.reach);
        let boundaries = match effect {
            Some(Reach::Boundaries(all)) => all.iter().map(|boundary| boundary.name()).collect(),
            Some(Reach::Everything) | None => Vec::new(),
        };
        let way = way(&burden.fact, facts);
        Charge { name: burden.state, fact: burden.fact, boundaries, way }
    };
    let mut all: Vec<Charge> = burdens::all(facts)
        .into_iter()
        .filter(|burden| !burden.fact.starts_with("memory."))
        .map(charge)
        .collect();
    // Rules of audit and its state are one thing: the first is the heavier.
    let mut seen = Vec::new();
    all.retain(|charge| {
        let is_new = !charge.fact.starts_with("audit.") || !seen.contains(&charge.way);
        seen.push(charge.way.clone());
        is_new
    });
    all
}

fn way(fact: &str, facts: &Facts) -> Way {
    let known = |name: &str| facts.get(name)?.value();
    let not_known = |why| Way::NotKnown { why };
    let measured =
        |without: &str, with: String| Way::Measured { without: without.to_owned(), with, parameter: None };
    match fact {
        "audit.rules" | "audit.enabled" => match known("audit.enabled").and_then(|value| value.as_f64()) {
            Some(1.0) => Way::Measured {
                without: "auditctl -e 0".to_owned(),
                with: "auditctl -e 1".to_owned(),
                parameter: Some(WITHOUT_AUDIT),
            },
            Some(2.0) => Way::Counted { parameter: WITHOUT_AUDIT },
            _ => not_known("auditing is off, or its state is unknown: nothing may be switched on"),
        },
        "kernel.tracer" => match known(fact).and_then(|value| value.as_text()).filter(|name| is_word(name)) {
            Some(name) => {
                const FILE: &str = "/sys/kernel/tracing/current_tracer";
                measured(&format!("echo nop > {FILE}"), format!("echo {name} > {FILE}"))
            }
            None => not_known("its name is not one that a shell can be given"),
        },
        "kernel.trace_events" => match known(fact) {
            Some(FactValue::List(events)) if events.iter().all(|event| is_word(event)) => {
                const FILE: &str = "/sys/kernel/tracing/set_event";
                measured(&format!("echo > {FILE}"), format!("printf '%s\\n' {} > {FILE}", events.join(" ")))
            }
            _ => not_known("its events have names that a shell cannot be given"),
        },
        "kernel.traced_system_calls" => not_known("it is part of the traced events of the kernel"),
        "kernel.kprobes" => {
            not_known("if they are armed, run --switch with 0 and 1 in /sys/kernel/debug/kprobes/enabled")
        }
        "kernel.lsm" => Way::Counted { parameter: "lsm=" },
        _ if fact.starts_with("mitigation.") => Way::Counted { parameter: "mitigations=off" },
        _ if fact.starts_with("bpf.") => Way::Statistics,
        _ if fact.starts_with("hypervisor.") => {
            not_known("it is below this system; measure the same hardware without it, and compare the runs")
        }
        "sandbox.kernel" | "seccomp.filters" => {
            not_known("a process cannot leave it; measure outside of it, and compare the runs")
        }
        "process.tracer" => not_known("only the tracer can detach; run it without, and compare the runs"),
        "cgroup.depth" => not_known("start tollgate in the root group, and compare the runs"),
        "kernel.live_patches" => not_known("to take a patch back brings the fault back that it mends"),
        "kernel.sched_ext" => not_known("end the program of the scheduler, and compare the runs"),
        _ => not_known("nothing takes it away while the system runs"),
    }
}

/// The facts about what may be on that this user may not read.
pub fn hidden(facts: &Facts) -> Vec<String> {
    const STARTS: [&str; 5] = ["audit.", "bpf.", "kernel.tracer", "kernel.trace_events", "kernel.kprobes"];
    let is_refused = |fact: &Fact| matches!(fact, Fact::Unknown { why: Unknown::Refused(_) });
    let about = |name: &str| STARTS.iter().any(|start| name.starts_with(start));
    facts
        .iter()
        .filter(|(name, fact)| about(name) && is_refused(fact))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Whether a shell takes it as one word, and as nothing else.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-:.".contains(c))
}

/// Runs of a BPF program while the kernel timed them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Runs {
    /// The program, with its hook.
    pub program: String,
    /// How often it ran.
    pub runs: u64,
    /// Nanoseconds of a run; none if it did not run.
    pub ns_per_run: Option<f64>,
}

/// The runs of programs between two moments.
pub fn runs(before: &[Program], after: &[Program]) -> Vec<Runs> {
    let of = |program: &Program| {
        let is_same = |known: &&Program| known.id == program.id;
        let (runs, ns) = before.iter().find(is_same).map_or((0, 0), |known| (known.runs, known.nanoseconds));
        let runs = program.runs.saturating_sub(runs);
        let ns_per_run = (runs > 0).then(|| program.nanoseconds.saturating_sub(ns) as f64 / runs as f64);
        Runs { program: program.label(), runs, ns_per_run }
    };
    after.iter().map(of).collect()
}

/// The bill, as far as it is known.
#[derive(Default)]
pub struct Bill<'a> {
    /// Everything that is on.
    pub charges: Vec<Charge>,
    /// The facts that this user may not read.
    pub hidden: Vec<String>,
    /// The session that took each thing away in turns; if there were several things, its last environment lacks all of them.
    pub measured: Option<Session<'a>>,
    /// The session of guests, each without one thing.
    pub counted: Option<Session<'a>>,
    /// Programs of BPF.
    pub programs: Vec<Runs>,
    /// Why something that was asked for is missing.
    pub missing: Vec<String>,
}

/// The bill as a document.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BillDocument<'a> {
    /// Everything that is on, the heaviest first.
    charges: &'a [Charge],
    /// The facts that this user may not read, which root may.
    hidden: &'a [String],
    /// Its session: the first environment has everything, each other one lacks what its switch names.
    measured: Option<SessionDocument<'a>>,
    /// The session of guests: the first has everything.
    counted: Option<SessionDocument<'a>>,
    /// Runs of BPF programs.
    programs: &'a [Runs],
    /// Why something is missing.
    missing: &'a [String],
}

impl<'a> Bill<'a> {
    /// As a document.
    pub fn document(&'a self) -> BillDocument<'a> {
        let of = |session: &'a Option<Session>| session.as_ref().map(|one| SessionDocument::new(one, &[]));
        BillDocument {
            charges: &self.charges,
            hidden: &self.hidden,
            measured: of(&self.measured),
            counted: of(&self.counted),
            programs: &self.programs,
            missing: &self.missing,
        }
    }

    /// The screen.
    pub fn text(&self, width: usize) -> String {
        let mut text = self.list(width);
        for (session, head) in [
            (&self.measured, "What each costs a call here, measured in turns with and without it:"),
            (&self.counted, "What each costs a call in a guest, in instructions:"),
        ] {
            if let Some(session) = session {
                text.push_str(&format!("\n{}{}", paragraph(head, width, ""), matrix(session).render(width)));
            }
        }
        if !self.programs.is_empty() {
            let rows = self.programs.iter().map(|one| {
                let ns = one.ns_per_run.map(|ns| figures::estimate(ns, Unit::Nanoseconds));
                (one.program.clone(), [Some(one.runs.to_string()), ns])
            });
            let table = Table::of_cells(["BPF program", "runs", "one run"], rows);
            text.push_str(&format!("\n{}", table.render(width)));
        }
        for why in &self.missing {
            text.push_str(&paragraph(&format!("Not known: {why}"), width, ""));
        }
        text
    }

    /// Lists what is on, and how each cost can be known.
    pub fn list(&self, width: usize) -> String {
        let mut text = String::new();
        if self.charges.is_empty() {
            text.push_str("Nothing that tollgate knows of sits on the boundaries of this machine.\n");
        }
        for Charge { name, boundaries, way, .. } in &self.charges {
            let on = if boundaries.is_empty() { "everything".to_owned() } else { boundaries.join(", ") };
            text.push_str(&paragraph(&format!("on {on}"), width, &format!("{}: ", clean(name))));
            let how = match way {
                Way::Measured { without, with, .. } => {
                    Some(format!("measured: `{without}` takes it away, `{with}` brings it back"))
                }
                Way::Counted { .. } => None,
                Way::Statistics => Some("timed by the kernel while kernel.bpf_stats_enabled is 1".to_owned()),
                Way::NotKnown { why } => Some(format!("not known: {why}")),
            };
            let counted =
                way.parameter().map(|parameter| format!("counted: a guest with {parameter} is without it"));
            for how in how.into_iter().chain(counted) {
                text.push_str(&paragraph(&how, width, "    "));
            }
        }
        if !self.hidden.is_empty() {
            let hidden = format!("Only root may see: {}", listed(&self.hidden));
            text.push_str(&paragraph(&hidden, width, ""));
        }
        text
    }
}

/// A row for each thing that was taken away, with the saving. Several things also have rows for the sum of their savings, for the
/// saving with all of them taken away together, and for the part of it that the sum does not explain.
fn matrix(session: &Session) -> Table {
    let heads = std::iter::once("without").chain(CALLS.map(|(_, call)| call));
    let mut table = Table::of_columns(heads.map(Into::into).collect());
    let base: Vec<Option<f64>> = CALLS.iter().map(|(name, _)| figure(session, name)).collect();
    let unit = |at: usize| {
        let rows = session.comparisons.iter().filter_map(|one| row(one, CALLS[at].0));
        rows.filter_map(ComparedRow::unit).next().unwrap_or(Unit::Nanoseconds)
    };
    let shown = |value: f64, at| match unit(at) {
        Unit::Instructions => figures::instructions(value),
        unit => figures::estimate(value, unit),
    };
    let signed =
        |value: f64, at| format!("{}{}", if value < 0.0 { "-" } else { "+" }, shown(value.abs(), at));
    let cells = |of: &dyn Fn(usize) -> String| (0..CALLS.len()).map(of).collect::<Vec<_>>();
    let mut line = |name: &str, cells: Vec<String>, look| {
        table.row(look, &std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>(), &[]);
    };
    let shown_base = |at: usize| base[at].map_or_else(|| NONE.to_owned(), |base| shown(base, at));
    line("nothing", cells(&shown_base), Look::Plain);
    let mut changes = |name: &str, found: Changes| {
        let cell = |at: usize| match found[at] {
            None => NONE.to_owned(),
            Some((_, true)) => "same".to_owned(),
            Some((adds, false)) => signed(adds, at),
        };
        line(name, cells(&cell), Look::Plain);
        let share = |at: usize| match (found[at], base[at]) {
            (Some((adds, false)), Some(base)) if adds.abs() > LEAST_SHARE * base => {
                let sign = if adds < 0.0 { "-" } else { "+" };
                format!("{sign}{}", figures::percent(adds.abs() / base))
            }
            _ => String::new(),
        };
        let shares = cells(&share);
        if shares.iter().any(|share| !share.is_empty()) {
            line("", shares, Look::Faint);
        }
    };
    let found: Vec<Changes> = session.comparisons.iter().map(changes_of).collect();
    // If there are several things, the last environment lacks all of them.
    let singles = if found.len() > 2 { found.len() - 1 } else { found.len() };
    for (found, (member, _)) in found[..singles].iter().zip(session.others()) {
        let one = match member.part.switches.as_slice() {
            [one] => &one.name,
            _ => &member.part.environment,
        };
        changes(&clean(one), *found);
    }
    if let [singles @ .., all] = found.as_slice()
        && singles.len() > 1
    {
        // A sum with something undecided is not known.
        let sum: [Option<f64>; CALLS.len()] =
            std::array::from_fn(|at| singles.iter().map(|one| one[at].map(|(adds, _)| adds)).sum());
        changes("their sum", sum.map(|sum| Some((sum?, false))));
        changes("all", *all);
        let rest = |at: usize| Some((all[at]?.0 - sum[at]?, false));
        changes("unexplained", std::array::from_fn(rest));
    }
    table
}

/// A smaller share of a call is not shown.
const LEAST_SHARE: f64 = 1e-4;

/// The additions to each call, and whether they are too small to differ; `None` if that is not decided.
type Changes = [Option<(f64, bool)>; CALLS.len()];

fn changes_of(comparison: &Comparison) -> Changes {
    CALLS.map(|(name, _)| {
        let row = row(comparison, name).filter(|row| row.result.verdict != Verdict::Inconclusive)?;
        Some((row.adds()?, row.result.verdict == Verdict::Same))
    })
}

fn row<'s, 'a>(comparison: &'s Comparison<'a>, case: &str) -> Option<&'s ComparedRow<'a>> {
    comparison.rows.iter().find(|row| row.case().to_string() == case)
}

/// The estimate of the base.
fn figure(session: &Session, case: &str) -> Option<f64> {
    session.comparisons.iter().filter_map(|comparison| row(comparison, case)?.result.base).next()
}
