//! Checks of an environment, from the facts and figures of a run that was made there: `doctor` shows every check, a
//! run's warnings are the poor ones.

use serde::Serialize;
use tollgate_model::{Fact, FactValue, Facts, Run, Unknown};

use crate::summary::{BASELINE, Row, Summary};
use crate::{facts, figures};

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// Its result.
    pub state: State,
    /// The finding, as a clause.
    pub found: String,
    /// The remedy, as a sentence.
    pub remedy: Option<String>,
    /// What root can add, as a sentence.
    pub root: Option<String>,
}

/// The result of a check, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It does no harm.
    Good,
    /// It lowers the precision, or adds to the latencies.
    Fair,
    /// Figures are unreliable until it is fixed.
    Poor,
    /// This environment has no such thing.
    Absent,
    /// It exists, and reading it is not permitted.
    Refused,
    /// Reading it failed.
    Unreadable,
}

impl State {
    /// As the table shows it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Poor => "poor",
            Self::Absent => "absent",
            Self::Refused => "refused",
            Self::Unreadable => "unreadable",
        }
    }
}

/// The load per processor above which other work disturbs.
const BUSY: f64 = 0.25;
/// Percent of the time in which some task waited, above which measuring waits too.
const PRESSED: f64 = 5.0;
/// A share of all processors' time that a hypervisor gave to others.
const STOLEN: f64 = 0.01;
/// A trap that takes more than this multiple of a system call is emulated.
const EMULATED_TRAP: f64 = 10.0;
/// A VM exit that takes longer, in nanoseconds, goes through more than one hypervisor.
const NESTED_EXIT: f64 = 1000.0;
/// Ticks a second in /proc/stat: USER_HZ, which x86-64 Linux fixes.
const TICKS: f64 = 100.0;

/// Every check, in reading order.
pub fn checks(summary: &Summary) -> Vec<Check> {
    let mut checks = of_moment(summary.run);
    checks.extend(of_environment(summary));
    checks
}

/// Disturbances of the moment.
pub fn of_moment(run: &Run) -> Vec<Check> {
    let facts = &run.facts;
    vec![
        processors(facts),
        pinning(facts),
        load(facts),
        pressure(facts),
        throttling(facts),
        steal(run),
        clock(facts),
        tracer(facts),
    ]
}

/// Properties of the environment, which are part of its latencies.
fn of_environment(summary: &Summary) -> Vec<Check> {
    let facts = &summary.run.facts;
    vec![
        clocksource(facts),
        governor(facts),
        boost(facts),
        siblings(facts),
        isolation(facts),
        hypervisor(facts),
        nesting(facts),
        traps(summary),
        exits(summary),
        filters(facts),
        privilege(facts),
    ]
}

impl Check {
    fn new(name: &'static str, state: State, found: impl Into<String>) -> Self {
        Self { name, state, found: found.into(), remedy: None, root: None }
    }

    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, State::Good, found)
    }

    fn fair(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, State::Fair, found)
    }

    fn poor(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, State::Poor, found)
    }

    /// Poor with a remedy where it `is_poor`, else good.
    fn poor_where(is_poor: bool, name: &'static str, found: String, remedy: &str) -> Self {
        if is_poor { Self::poor(name, found).remedy(remedy) } else { Self::good(name, found) }
    }

    fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    fn root(self, root: impl Into<String>) -> Self {
        Self { root: Some(root.into()), ..self }
    }

    /// Judges a known value; an unknown one is passed on with its reason.
    fn of(name: &'static str, facts: &Facts, fact: &str, judge: impl FnOnce(&FactValue) -> Self) -> Self {
        match facts.get(fact) {
            None => Self::new(name, State::Unreadable, format!("{fact} was not recorded")),
            Some(Fact::Known { value, .. }) => judge(value),
            Some(Fact::Unknown { why: Unknown::Absent(why) }) => Self::new(name, State::Absent, why.clone()),
            Some(Fact::Unknown { why: Unknown::Unreadable(why) }) => {
                Self::new(name, State::Unreadable, why.clone())
            }
            Some(Fact::Unknown { why: Unknown::Refused(why) }) => {
                Self::new(name, State::Refused, why.clone()).root(format!("Root would show {fact}."))
            }
        }
    }

    /// [`Check::of`] a number.
    fn of_number(name: &'static str, facts: &Facts, fact: &str, judge: impl FnOnce(f64) -> Self) -> Self {
        Self::of(name, facts, fact, |value| match value.as_f64() {
            Some(number) => judge(number),
            None => Self::new(name, State::Unreadable, format!("{fact} is not a number")),
        })
    }
}

fn processors(facts: &Facts) -> Check {
    const NAME: &str = "processors";
    Check::of_number(NAME, facts, "cpu.allowed", |allowed| match allowed {
        one if one < 2.0 => Check::poor(NAME, "only one processor is allowed, which other work shares")
            .remedy("Allow a second one (taskset, cpuset, the virtual machine's size)."),
        several => Check::good(NAME, format!("{several} allowed")),
    })
}

fn pinning(facts: &Facts) -> Check {
    const NAME: &str = "pinning";
    Check::of_number(NAME, facts, facts::CPU, |cpu| Check::good(NAME, format!("stays on processor {cpu}")))
}

fn load(facts: &Facts) -> Check {
    const NAME: &str = "load";
    Check::of_number(NAME, facts, "load.before", |load| {
        let processors = online(facts);
        let found = match processors {
            Some(processors) => format!("{load:.2} tasks on average, processors {processors}"),
            None => format!("{load:.2} tasks on average"),
        };
        // The average includes the last minutes, and our own last run: it counts only where other tasks run now.
        let others = facts::number(facts, "running.before").is_none_or(|running| running > 1.0);
        let is_poor = others && load > BUSY * processors.unwrap_or(1.0);
        Check::poor_where(is_poor, NAME, found, "Stop what else runs, and wait a minute.")
    })
}

/// The number of processors; where that is hidden, the number of allowed ones.
fn online(facts: &Facts) -> Option<f64> {
    facts::number(facts, "cpu.online").or_else(|| facts::number(facts, "cpu.allowed"))
}

fn pressure(facts: &Facts) -> Check {
    const NAME: &str = "pressure";
    Check::of_number(NAME, facts, "pressure.cpu.before", |percent| {
        let found = format!("some task waited for a processor {percent:.1} % of the last ten seconds");
        const REMEDY: &str = "Stop what else runs, or choose a quieter processor with --cpu.";
        Check::poor_where(percent > PRESSED, NAME, found, REMEDY)
    })
}

fn throttling(facts: &Facts) -> Check {
    const NAME: &str = "quota";
    match grown(facts, "throttled") {
        Some(times) if times > 0.0 => {
            Check::poor(NAME, format!("the control group used up its processor time {times} times meanwhile"))
                .remedy("Raise the group's cpu.max (docker run --cpus).")
        }
        _ => Check::of_number(NAME, facts, "throttled.after", |_| Check::good(NAME, "not used up meanwhile")),
    }
}

fn steal(run: &Run) -> Check {
    const NAME: &str = "steal";
    let facts = &run.facts;
    let stolen = grown(facts, "steal").zip(processor_ticks(run));
    Check::of_number(NAME, facts, "steal.after", |_| match stolen {
        None => Check::new(NAME, State::Unreadable, "steal was not recorded before and after"),
        Some((ticks, all)) => {
            let share = ticks / all;
            let found =
                format!("{} of the processors' time went to other guests meanwhile", figures::percent(share));
            const REMEDY: &str = "Measure when the host is quieter, or on one of your own.";
            Check::poor_where(share > STOLEN, NAME, found, REMEDY)
        }
    })
}

/// All processors' ticks between the beginning and the end of a run.
fn processor_ticks(run: &Run) -> Option<f64> {
    let time = |text: &str| humantime::parse_rfc3339(text).ok();
    let seconds = time(&run.finished)?.duration_since(time(&run.started)?).ok()?.as_secs_f64();
    Some(seconds.max(1.0) * TICKS * online(&run.facts)?.max(1.0))
}

/// The increase of a count during a run.
fn grown(facts: &Facts, count: &str) -> Option<f64> {
    let at = |when: &str| facts::number(facts, &format!("{count}.{when}"));
    Some(at("after")? - at("before")?)
}

fn clock(facts: &Facts) -> Check {
    const NAME: &str = "clock";
    let source = facts::source(facts, facts::CLOCK).unwrap_or_default().to_owned();
    Check::of(NAME, facts, facts::CLOCK, |_| match facts::clock_is_tsc(facts) {
        false => Check::poor(NAME, format!("the kernel's clock; {source}"))
            .remedy("The detection limit is higher; measure where the TSC can be read."),
        true if facts::flag(facts, "hypervisor.present") == Some(true) => {
            Check::fair(NAME, format!("a virtual TSC ({source}): the hypervisor may scale or shift it"))
                .remedy("Do not let the virtual machine be moved while it is measured.")
        }
        true => Check::good(NAME, format!("the TSC ({source})")),
    })
}

fn clocksource(facts: &Facts) -> Check {
    const NAME: &str = "clocksource";
    const IN_USER_MODE: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "pvclock"];
    Check::of(NAME, facts, "clocksource.current", |source| {
        match source.as_text().is_some_and(|source| IN_USER_MODE.contains(&source)) {
            true => Check::good(NAME, source.to_string()),
            false => Check::fair(NAME, format!("{source}: every clock reading enters the kernel"))
                .remedy("It adds to the latency of clocks here; clocksource.available lists others.")
                .root("Root can write another to current_clocksource."),
        }
    })
}

fn governor(facts: &Facts) -> Check {
    const NAME: &str = "governor";
    Check::of(NAME, facts, "power.governor", |governor| match governor.as_text() {
        Some("performance") => Check::good(NAME, "performance"),
        _ => Check::fair(NAME, format!("{governor}: the frequency follows the load"))
            .remedy("Use the governor performance.")
            .root("Root can set it: cpupower frequency-set -g performance."),
    })
}

fn boost(facts: &Facts) -> Check {
    const NAME: &str = "turbo";
    const SWITCH: &str =
        "Root can: write 0 to cpufreq/boost, or 1 to intel_pstate/no_turbo, in /sys/devices/system/cpu.";
    Check::of(NAME, facts, "power.boost", |boost| match boost.as_flag() {
        Some(false) => Check::good(NAME, "off"),
        _ => Check::fair(NAME, "on: the frequency depends on heat and on the other cores")
            .remedy("Switch it off while comparing.")
            .root(SWITCH),
    })
}

fn siblings(facts: &Facts) -> Check {
    const NAME: &str = "smt";
    Check::of(NAME, facts, "cpu.smt_active", |active| match active.as_flag() {
        Some(false) => Check::good(NAME, "no processors share a core"),
        _ => Check::fair(NAME, "processors share cores: a busy sibling slows what is measured")
            .remedy("Keep the sibling of the processor that is measured idle; cpu.siblings names it.")
            .root("Root can take it offline."),
    })
}

fn isolation(facts: &Facts) -> Check {
    const NAME: &str = "isolation";
    Check::of(NAME, facts, "cpu.isolated", |isolated| match isolated.as_text() {
        Some("" | "none") | None => Check::fair(NAME, "no processor is isolated from the scheduler")
            .remedy("Start the kernel with isolcpus=N nohz_full=N and measure with --cpu N.")
            .root("Root can change the kernel's command line."),
        Some(list) => Check::good(NAME, format!("processors {list} are isolated: measure there with --cpu")),
    })
}

fn hypervisor(facts: &Facts) -> Check {
    const NAME: &str = "hypervisor";
    if facts::emulated(facts) {
        return Check::poor(NAME, "QEMU TCG emulates this processor: times are the emulator's")
            .remedy("Measure under KVM or on the machine itself.");
    }
    Check::of(NAME, facts, "hypervisor.layers", |layers| match layers {
        FactValue::List(layers) if layers.is_empty() => Check::good(NAME, "none visible"),
        layers => Check::fair(NAME, format!("{layers}: intercepted instructions cause a VM exit"))
            .remedy("It is part of every latency here; compare with a run made outside."),
    })
}

fn nesting(facts: &Facts) -> Check {
    const NAME: &str = "nesting";
    Check::of(NAME, facts, "hypervisor.nesting", |hints| match hints {
        FactValue::List(hints) if hints.is_empty() => {
            Check::good(NAME, "no hint of a hypervisor in a virtual machine")
        }
        hints => Check::fair(NAME, format!("{hints}: a VM exit goes through two hypervisors"))
            .remedy("It is part of every latency here; compare with a run made one layer further out."),
    })
}

fn traps(summary: &Summary) -> Check {
    const NAME: &str = "traps";
    let multiple = summary
        .measured()
        .find(|(case, _)| case.benchmark == "entry/int80")
        .and_then(|(_, int80)| int80.multiple);
    match multiple {
        None => Check::new(NAME, State::Absent, reason(summary, "entry/int80")),
        Some(multiple) if multiple > EMULATED_TRAP => Check::poor(
            NAME,
            format!("int 0x80 takes {} × syscall: software delivers interrupts here", figures::significant(multiple, 2)),
        )
        .remedy("Latencies of traps and interrupts are this hypervisor's, not the processor's; compare only with such."),
        Some(multiple) => {
            Check::good(NAME, format!("int 0x80 takes {} × syscall", figures::significant(multiple, 2)))
        }
    }
}

fn exits(summary: &Summary) -> Check {
    const NAME: &str = "exits";
    match summary.measured().find(|(case, _)| case.benchmark == "entry/vm-exit") {
        None => Check::new(NAME, State::Absent, reason(summary, "entry/vm-exit")),
        Some((_, exit)) => {
            let found = format!("cpuid takes {}", exit.in_words());
            match exit.estimate.median > NESTED_EXIT {
                false => Check::good(NAME, found),
                true => Check::poor(
                    NAME,
                    format!("{found}, a slow VM exit: emulated, or forwarded by a nested hypervisor"),
                )
                .remedy("Page faults, devices and timers that trap are as slow here."),
            }
        }
    }
}

/// Why a benchmark was not measured.
fn reason(summary: &Summary, benchmark: &str) -> String {
    let mut rows = summary.rows.iter().filter(|row| row.case.benchmark == benchmark);
    let why = rows.find_map(Row::why).map(str::to_owned);
    why.unwrap_or_else(|| format!("{benchmark} and {BASELINE} were not measured"))
}

fn tracer(facts: &Facts) -> Check {
    const NAME: &str = "tracer";
    Check::of_number(NAME, facts, "process.tracer", |tracer| match tracer {
        0.0 => Check::good(NAME, "no process traces this one"),
        tracer => {
            Check::poor(NAME, format!("process {tracer} traces this one and may stop each system call"))
                .remedy("Run without strace or a debugger.")
        }
    })
}

fn filters(facts: &Facts) -> Check {
    const NAME: &str = "seccomp";
    Check::of(NAME, facts, "seccomp.mode", |mode| match mode.as_text() {
        Some("disabled") => Check::good(NAME, "system calls are not filtered"),
        _ => {
            let filters = facts.get("seccomp.filters").and_then(Fact::value);
            let count = filters.map(|filters| format!(", {filters} of them")).unwrap_or_default();
            Check::fair(
                NAME,
                format!("system calls run filters{count}: part of the latency of every system call"),
            )
            .remedy("Measure outside of the container or sandbox as well, and compare.")
        }
    })
}

/// Facts that were refused: root can read them.
fn privilege(facts: &Facts) -> Check {
    const NAME: &str = "privilege";
    let is_refused = |fact: &Fact| matches!(fact, Fact::Unknown { why: Unknown::Refused(_) });
    let refused: Vec<&str> =
        facts.iter().filter(|(_, fact)| is_refused(fact)).map(|(name, _)| name.as_str()).collect();
    let is_root = facts.get("process.user").and_then(Fact::value).is_some_and(|user| user.to_string() == "0");
    match refused.as_slice() {
        [] => Check::good(NAME, "no fact was refused"),
        names if is_root => Check::fair(NAME, format!("refused even to root: {}", names.join(", "))),
        names => Check::fair(NAME, format!("refused: {}", names.join(", "))).root("Root would show them."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(facts: &[(&str, Fact)]) -> Facts {
        facts.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect()
    }

    #[test]
    fn load_is_judged_by_the_number_of_processors() {
        let state = |load: f64| {
            let online = Fact::known(4_i64, "test");
            load_of(&with(&[("cpu.online", online), ("load.before", Fact::known(load, "test"))]))
        };
        assert_eq!((state(0.9), state(1.1)), (State::Good, State::Poor));
    }

    fn load_of(facts: &Facts) -> State {
        load(facts).state
    }

    #[test]
    fn absent_refused_and_unreadable_differ() {
        let state = |fact: Fact| governor(&with(&[("power.governor", fact)]));
        assert_eq!(state(Fact::absent("no cpufreq")).state, State::Absent);
        assert_eq!(state(Fact::unreadable("garbage")).state, State::Unreadable);
        let refused = state(Fact::refused("Permission denied"));
        assert_eq!((refused.state, refused.root.is_some()), (State::Refused, true));
        assert_eq!(state(Fact::known("performance", "test")).state, State::Good);
        assert_eq!(state(Fact::known("powersave", "test")).state, State::Fair);
        assert_eq!(governor(&Facts::new()).state, State::Unreadable);
    }

    #[test]
    fn the_kernels_clock_is_poor_and_a_virtual_counter_fair() {
        let clock_of = |used: &str, virtual_machine: bool| {
            let present = Fact::known(virtual_machine, "test");
            clock(&with(&[("run.clock", Fact::known(used, "why")), ("hypervisor.present", present)])).state
        };
        assert_eq!(clock_of("CLOCK_MONOTONIC_RAW", false), State::Poor);
        assert_eq!(clock_of("tsc", true), State::Fair);
        assert_eq!(clock_of("tsc", false), State::Good);
    }

    #[test]
    fn an_emulated_processor_is_poor() {
        for (name, value) in [
            ("hypervisor.layers", FactValue::from(vec!["QEMU TCG".to_owned()])),
            ("hypervisor.signatures", FactValue::from(vec!["TCGTCGTCGTCG".to_owned()])),
        ] {
            assert_eq!(hypervisor(&with(&[(name, Fact::known(value, "test"))])).state, State::Poor);
        }
        let kvm = Fact::known(vec!["KVM".to_owned()], "test");
        assert_eq!(hypervisor(&with(&[("hypervisor.layers", kvm)])).state, State::Fair);
    }

    #[test]
    fn time_that_was_taken_away_counts_against_what_there_was() {
        let run = |stolen: i64| Run {
            schema: 2,
            tool: tollgate_model::run::Tool { name: "tollgate".into(), version: "0".into() },
            id: "one".parse().expect("an id"),
            label: None,
            environment: tollgate_model::Environment::Vm,
            started: "2026-11-21T01:54:27Z".into(),
            finished: "2026-11-21T01:54:37Z".into(),
            facts: with(&[
                ("cpu.online", Fact::known(2_i64, "test")),
                ("steal.before", Fact::known(100_i64, "test")),
                ("steal.after", Fact::known(100 + stolen, "test")),
            ]),
            measurements: Vec::new(),
        };
        // Two processors for ten seconds have 2000 ticks.
        assert_eq!(steal(&run(10)).state, State::Good);
        assert_eq!(steal(&run(30)).state, State::Poor);
    }
}
