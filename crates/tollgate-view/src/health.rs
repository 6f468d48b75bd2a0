//! Checks of an environment, from the facts and figures of a run made there: `doctor` shows every check, a run's warnings are the
//! poor ones.

use serde::Serialize;
use tollgate_model::{Environment, Fact, FactValue, Facts, Run, Unknown};
use tollgate_output::figures;

use crate::facts;
use crate::summary::{BASELINE, CaseRow, Figures, Summary};

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// The check, such as `load`.
    pub name: &'static str,
    #[serde(flatten)]
    pub judged: Judged,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judged {
    /// The verdict.
    pub state: State,
    /// The finding, or why it is unknown.
    pub found: String,
    /// The remedy, as a sentence.
    pub remedy: Option<String>,
    /// The difference that root would make, as a sentence.
    pub root: Option<String>,
    /// The remedy as commands for a shell; None if this machine has none.
    pub fix: Option<Fix>,
    /// Whether it is a property of this environment, which cannot be changed here.
    pub given: bool,
    /// The finding in a few words, if it disturbs figures at the moment, which lowers the quality of a run.
    #[serde(skip)]
    pub disturbance: Option<String>,
}

/// A command that changes a setting, and the one that undoes that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fix {
    /// Where to run them, such as ` (outside of the container)`, or None for here.
    pub at: Option<&'static str>,
    /// The remedy.
    pub command: String,
    /// The command that undoes it.
    pub undo: String,
}

impl Fix {
    fn write(run: &Run, value: &str, old: &str, file: &str) -> Option<Self> {
        // A made-up value of a document must not reach a shell.
        let is_plain =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let is_root = is_root(&run.facts);
        let is_contained = matches!(run.environment, Environment::Container | Environment::Sandbox);
        let tee = if is_root && !is_contained { "tee" } else { "sudo tee" };
        let line = |value: &str| format!("echo {value} | {tee} {file}");
        (is_plain(value) && is_plain(old)).then(|| Self {
            at: is_contained.then_some(" (outside of the container)"),
            command: line(value),
            undo: line(old),
        })
    }
}

/// The result of a check, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// It exists, but reading it is not permitted.
    Refused,
    /// Reading it failed.
    Unreadable,
}

/// The load per processor above which other work disturbs.
const BUSY: f64 = 0.25;
/// Percent of the time in which some task waited, above which measuring waits too.
const PRESSED: f64 = 5.0;
/// A share of all processors' time that a hypervisor gave to others.
const STOLEN: f64 = 0.01;
/// An INT 80h that takes more than this multiple of a system call includes a VM exit, or is emulated.
const SLOW_INT80: f64 = 10.0;
/// A VM exit that takes longer, in nanoseconds, goes through more than one hypervisor.
const NESTED_EXIT: f64 = 1000.0;
/// Ticks per second in /proc/stat: USER_HZ, which x86-64 Linux fixes.
const TICKS: f64 = 100.0;

pub fn checks(summary: &Summary) -> Vec<Check> {
    let mut checks = of_moment(summary.run);
    checks.extend(of_environment(summary));
    checks
}

impl Judged {
    fn new(state: State, found: impl Into<String>) -> Self {
        Self {
            state,
            found: found.into(),
            remedy: None,
            root: None,
            fix: None,
            given: false,
            disturbance: None,
        }
    }

    /// Its disturbance of figures, unless it is good.
    fn disturbs(self, words: impl Into<String>) -> Self {
        let disturbance = matches!(self.state, State::Fair | State::Poor).then(|| words.into());
        Self { disturbance, ..self }
    }

    fn given(self) -> Self {
        Self { given: true, ..self }
    }

    fn remedy(self, remedy: &str) -> Self {
        Self { remedy: Some(remedy.to_owned()), ..self }
    }

    fn fix(self, fix: Option<Fix>) -> Self {
        Self { fix, ..self }
    }

    fn root(self, root: impl Into<String>) -> Self {
        Self { root: Some(root.into()), ..self }
    }
}

fn good(found: impl Into<String>) -> Judged {
    Judged::new(State::Good, found)
}

fn fair(found: impl Into<String>) -> Judged {
    Judged::new(State::Fair, found)
}

fn poor(found: impl Into<String>) -> Judged {
    Judged::new(State::Poor, found)
}

fn good_unless(is_so: bool, state: State, found: String, remedy: &str) -> Judged {
    if is_so { Judged::new(state, found).remedy(remedy) } else { good(found) }
}

fn check_of(
    facts: &Facts,
    name: &'static str,
    fact: &str,
    judge: impl FnOnce(&FactValue) -> Judged,
) -> Check {
    let judged = match facts.get(fact) {
        None => Judged::new(State::Unreadable, format!("{fact} was not recorded")),
        Some(Fact::Known { value, .. }) => judge(value),
        Some(Fact::Unknown { why: Unknown::Absent(why) }) => Judged::new(State::Absent, why),
        Some(Fact::Unknown { why: Unknown::Unreadable(why) }) => Judged::new(State::Unreadable, why),
        Some(Fact::Unknown { why: Unknown::Refused(why) }) => {
            Judged::new(State::Refused, why).root(format!("Root would show {fact}."))
        }
    };
    Check { name, judged }
}

fn of_number(facts: &Facts, name: &'static str, fact: &str, judge: impl FnOnce(f64) -> Judged) -> Check {
    check_of(facts, name, fact, |value| match value.as_f64() {
        Some(number) => judge(number),
        None => Judged::new(State::Unreadable, format!("{fact} is not a number")),
    })
}

pub fn of_moment(run: &Run) -> Vec<Check> {
    let facts = &run.facts;
    vec![
        of_number(facts, "processors", "cpu.allowed", |allowed| match allowed {
            one if one < 2.0 => poor("only one processor is allowed, and other work shares it")
                .remedy("Allow a second one (taskset, cpuset, the virtual machine's size).")
                .disturbs("only one CPU, shared with other work"),
            several => good(format!("{several} allowed")),
        }),
        of_number(facts, "pinning", facts::CPU, |cpu| good(format!("stays on processor {cpu}"))),
        of_number(facts, "load", "load.before", |load| {
            let processors = online(facts);
            let beside = processors.map(|processors| format!(", processors {processors}"));
            let found = format!("{load:.2} tasks on average{}", beside.unwrap_or_default());
            // The average includes the last minutes, and our own last run: it counts only if other tasks run now.
            let others = facts::number(facts, "running.before").is_none_or(|running| running > 1.0);
            let is_busy = others && load > BUSY * processors.unwrap_or(1.0);
            // Disturbed batches are discarded, and disturbed processes left out.
            let among = figures::count(processors.unwrap_or(1.0) as usize, "CPU", "CPUs");
            good_unless(is_busy, State::Fair, found, "Stop other programs, and wait a minute.")
                .disturbs(format!("load {load:.1} on {among}"))
        }),
        of_number(facts, "pressure", "pressure.cpu.before", |percent| {
            let found = format!("some task waited for a processor {percent:.1} % of the last ten seconds");
            let remedy = "Stop other programs, or choose a quieter processor with --cpu.";
            good_unless(percent > PRESSED, State::Fair, found, remedy)
                .disturbs(format!("tasks waited for a CPU {percent:.0} % of the time"))
        }),
        of_number(facts, "quota", "throttled.after", |_| match used_up(facts) {
            Some(found) => poor(found)
                .remedy("Raise the group's cpu.max (docker run --cpus).")
                .disturbs("the CPU quota ran out"),
            None => good("not used up meanwhile"),
        }),
        of_number(facts, "steal", "steal.after", |_| match stolen(run) {
            None => Judged::new(State::Unreadable, "steal was not recorded before and after"),
            Some(stolen) => {
                let share = figures::percent(stolen);
                let found = format!("{share} of the processors' time went to other guests meanwhile");
                let remedy = "Measure when the host is quieter, or on one of your own.";
                good_unless(stolen > STOLEN, State::Poor, found, remedy).disturbs(format!("steal {share}"))
            }
        }),
        check_of(facts, "clock", facts::CLOCK, |_| {
            let source = facts::source(facts, facts::CLOCK).unwrap_or_default();
            let counter = if facts::is_arm64(facts) { "virtual counter" } else { "TSC" };
            if facts::text(facts, facts::CLOCK) == Some("cntvct") {
                // A hypervisor may shift it, and does not scale it (Arm ARM, CNTVOFF_EL2).
                good(format!("the {counter} ({source})"))
            } else if !facts::clock_is_tsc(facts) {
                poor(format!("the kernel's clock; {source}"))
                    .remedy(&format!(
                        "The detection limit is higher; measure where the {counter} can be read."
                    ))
                    .disturbs(format!("timed by the kernel's clock, not the {counter}"))
            } else if facts::flag(facts, "hypervisor.present") == Some(true) {
                fair(format!("a virtual TSC ({source}): the hypervisor may scale or shift it"))
                    .remedy("Do not let the virtual machine be moved while it is measured.")
                    .given()
            } else {
                good(format!("the TSC ({source})"))
            }
        }),
        of_number(facts, "tracer", "process.tracer", |tracer| match tracer {
            0.0 => good("no process traces this one"),
            tracer => poor(format!("process {tracer} traces this one and may stop each system call"))
                .remedy("Run without strace or a debugger.")
                .disturbs("a tracer is attached"),
        }),
    ]
}

fn online(facts: &Facts) -> Option<f64> {
    facts::number(facts, "cpu.online").or_else(|| facts::number(facts, "cpu.allowed"))
}

pub(crate) fn used_up(facts: &Facts) -> Option<String> {
    let times = grown(facts, "throttled").filter(|times| *times > 0.0)?;
    Some(format!("the control group used up its processor time {times} times meanwhile"))
}

fn stolen(run: &Run) -> Option<f64> {
    Some(grown(&run.facts, "steal")? / processor_ticks(run)?)
}

fn processor_ticks(run: &Run) -> Option<f64> {
    Some(run.seconds()?.max(1.0) * TICKS * online(&run.facts)?.max(1.0))
}

fn grown(facts: &Facts, count: &str) -> Option<f64> {
    let at = |when: &str| facts::number(facts, &format!("{count}.{when}"));
    Some(at("after")? - at("before")?)
}

fn of_environment(summary: &Summary) -> Vec<Check> {
    const IN_USER_MODE: [&str; 5] =
        ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "pvclock", "arch_sys_counter"];
    const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    const GOVERNOR: &str = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    let run = summary.run;
    let facts = &run.facts;
    let clock = match facts.get("clocksource.available").and_then(Fact::value) {
        Some(FactValue::List(names)) => {
            IN_USER_MODE.iter().find(|clock| names.iter().any(|name| name == *clock))
        }
        _ => None,
    };
    vec![
        check_of(facts, "clocksource", "clocksource.current", |source| {
            if source.as_text().is_some_and(|source| IN_USER_MODE.contains(&source)) {
                good(source.to_string())
            } else {
                fair(format!("{source}: every clock reading enters the kernel"))
                    .remedy(
                        "It adds to the latency of clocks here; clocksource.available lists alternatives.",
                    )
                    .fix(clock.and_then(|clock| Fix::write(run, clock, &source.to_string(), CLOCKSOURCE)))
            }
        }),
        of_host(
            run,
            check_of(facts, "governor", "power.governor", |governor| match governor.as_text() {
                Some("performance") => good("performance"),
                _ => fair(format!("{governor}: the frequency follows the load"))
                    .remedy("Use the governor performance.")
                    .fix(Fix::write(run, "performance", &governor.to_string(), GOVERNOR)),
            }),
        ),
        of_host(
            run,
            check_of(facts, "turbo", "power.boost", |boost| match boost.as_flag() {
                Some(false) => good("off"),
                _ => fair("on: the frequency depends on heat and on the other cores")
                    .remedy("Switch it off while comparing.")
                    .fix(without_turbo(run)),
            }),
        ),
        check_of(facts, "smt", "cpu.smt_active", |active| match active.as_flag() {
            Some(false) => good("no processors share a core"),
            _ => fair("processors share cores: a busy sibling slows what is measured")
                .remedy("Keep the sibling of the processor that is measured idle; cpu.siblings names it.")
                .fix(without_smt(run)),
        }),
        check_of(facts, "isolation", "cpu.isolated", |isolated| match isolated.as_text() {
            Some("" | "none") | None => fair("no processor is isolated from the scheduler")
                .remedy("Start the kernel with isolcpus=N nohz_full=N and measure with --cpu N.")
                .root("Root can change the kernel's command line."),
            Some(list) => good(format!("processors {list} are isolated: measure there with --cpu")),
        }),
        hypervisor(facts),
        check_of(facts, "nesting", "hypervisor.nesting", |hints| match hints {
            FactValue::List(hints) if hints.is_empty() => {
                good("no hint of a hypervisor in a virtual machine")
            }
            hints => fair(format!("{hints}: a VM exit goes through two hypervisors"))
                .remedy("It is part of every latency here; compare with a run one layer further out.")
                .given(),
        }),
        Check { name: "traps", judged: traps(summary) },
        Check { name: "exits", judged: exits(summary) },
        check_of(facts, "seccomp", "seccomp.mode", |mode| match mode.as_text() {
            Some("disabled") => good("system calls are not filtered"),
            _ => {
                let filters = facts.get("seccomp.filters").and_then(Fact::value);
                let count = filters.map(|filters| format!(", {filters} of them")).unwrap_or_default();
                fair(format!("system calls run filters{count}: part of the latency of every system call"))
                    .remedy("Measure outside of the container or sandbox as well, and compare.")
            }
        }),
        Check { name: "privilege", judged: privilege(facts) },
    ]
}

/// The host of a virtual machine has the setting that the machine itself lacks.
fn of_host(run: &Run, check: Check) -> Check {
    match (check.judged.state, run.environment) {
        (State::Absent, Environment::Vm) => {
            let judged = check.judged.remedy("The host sets it: run `tollgate doctor` there.").given();
            Check { judged, ..check }
        }
        _ => check,
    }
}

/// Two drivers have a switch each, with opposite meanings.
fn without_turbo(run: &Run) -> Option<Fix> {
    let file = facts::source(&run.facts, "power.boost")?;
    match file {
        "/sys/devices/system/cpu/cpufreq/boost" => Fix::write(run, "0", "1", file),
        "/sys/devices/system/cpu/intel_pstate/no_turbo" => Fix::write(run, "1", "0", file),
        _ => None,
    }
}

fn without_smt(run: &Run) -> Option<Fix> {
    let is_on = facts::text(&run.facts, "cpu.smt_control") == Some("on");
    is_on.then(|| Fix::write(run, "off", "on", "/sys/devices/system/cpu/smt/control"))?
}

fn hypervisor(facts: &Facts) -> Check {
    const NAME: &str = "hypervisor";
    if facts::emulated(facts) {
        let judged = poor("QEMU TCG emulates this processor: times are the emulator's");
        return Check {
            name: NAME,
            judged: judged.remedy("Measure under KVM or on the machine itself.").given(),
        };
    }
    check_of(facts, NAME, "hypervisor.layers", |layers| match layers {
        FactValue::List(layers) if layers.is_empty() => good("none visible"),
        layers => fair(format!("{layers}: intercepted instructions cause a VM exit"))
            .remedy("It is part of every latency here; compare with a run made outside.")
            .given(),
    })
}

/// Judges a row: its figure in words, and if that is slow, why and the remedy.
fn of_row(
    summary: &Summary,
    benchmark: &str,
    judge: impl Fn(&Figures) -> Option<(String, Option<[&'static str; 2]>)>,
) -> Judged {
    let row = summary.measured().find(|(case, _)| case.benchmark == benchmark);
    match row.and_then(|(_, figures)| judge(figures)) {
        None => Judged::new(State::Absent, reason(summary, benchmark)),
        Some((found, None)) => good(found),
        Some((found, Some([why, remedy]))) => fair(format!("{found}{why}")).remedy(remedy).given(),
    }
}

fn traps(summary: &Summary) -> Judged {
    const SLOW: [&str; 2] = [
        ": a VM exit in it, or emulated",
        "Its latency is this hypervisor's, not the processor's; traps/breakpoint goes through a gate of the same table.",
    ];
    of_row(summary, "entry/int80", |int80| {
        let multiple = int80.multiple?;
        let found = format!("int 0x80 takes {} × syscall", figures::significant(multiple, 2));
        Some((found, (multiple > SLOW_INT80).then_some(SLOW)))
    })
}

fn exits(summary: &Summary) -> Judged {
    const SLOW: [&str; 2] = [
        ", a slow VM exit: emulated, or forwarded by a nested hypervisor",
        "Page faults, devices and timers that trap are as slow here.",
    ];
    of_row(summary, "entry/vm-exit", |exit| {
        let is_slow = exit.estimate.median > NESTED_EXIT;
        Some((format!("cpuid takes {}", exit.in_words()), is_slow.then_some(SLOW)))
    })
}

fn reason(summary: &Summary, benchmark: &str) -> String {
    let mut rows = summary.rows.iter().filter(|row| row.case.benchmark == benchmark);
    let why = rows.find_map(CaseRow::why).map(str::to_owned);
    why.unwrap_or_else(|| format!("{benchmark} and {BASELINE} were not measured"))
}

fn is_root(facts: &Facts) -> bool {
    facts.get("process.user").and_then(Fact::value).is_some_and(|user| user.to_string() == "0")
}

fn privilege(facts: &Facts) -> Judged {
    let is_refused = |fact: &Fact| matches!(fact, Fact::Unknown { why: Unknown::Refused(_) });
    let refused: Vec<&str> =
        facts.iter().filter(|(_, fact)| is_refused(fact)).map(|(name, _)| name.as_str()).collect();
    match refused.as_slice() {
        [] => good("no fact was refused"),
        names if is_root(facts) => fair(format!("refused even to root: {}", names.join(", "))),
        names => fair(format!("refused: {}", names.join(", "))).root("Root would show them."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(name: &str, facts: &[(&str, Fact)]) -> Judged {
        let run = Run {
            schema: 2,
            tool: tollgate_model::run::Tool { name: "tollgate".into(), version: "0".into() },
            id: "one".parse().expect("an id"),
            label: None,
            environment: tollgate_model::Environment::Vm,
            session: None,
            started: "2026-11-21T01:54:27Z".into(),
            finished: "2026-11-21T01:54:37Z".into(),
            facts: facts.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect(),
            measurements: Vec::new(),
        };
        let mut checks = checks(&Summary::of(&run)).into_iter();
        checks.find(|check| check.name == name).expect("a check").judged
    }

    #[test]
    fn a_remedy_is_a_command_with_its_undo() {
        let smt = |control: &str| {
            let facts =
                [("cpu.smt_active", Fact::known(true, "t")), ("cpu.smt_control", Fact::known(control, "t"))];
            judged("smt", &facts).fix
        };
        let fix = smt("on").expect("a command");
        assert_eq!(fix.command, "echo off | sudo tee /sys/devices/system/cpu/smt/control");
        assert_eq!(fix.undo, "echo on | sudo tee /sys/devices/system/cpu/smt/control");
        assert_eq!((smt("notsupported"), smt("forceoff")), (None, None));
        let governor = |facts: &[(&str, Fact)]| judged("governor", facts);
        let root = ("process.user", Fact::known(0_i64, "t"));
        let fix =
            governor(&[("power.governor", Fact::known("powersave", "t")), root]).fix.expect("a command");
        assert_eq!(fix.undo, "echo powersave | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
        // A document's text must not reach a shell.
        assert_eq!(governor(&[("power.governor", Fact::known("x; rm -r ~", "t"))]).fix, None);
        assert_eq!(governor(&[("power.governor", Fact::known("performance", "t"))]).fix, None);
        // The run of these tests was made in a virtual machine.
        let absent = governor(&[("power.governor", Fact::absent("no cpufreq"))]);
        assert_eq!((absent.fix, absent.remedy.is_some_and(|remedy| remedy.contains("host"))), (None, true));
        let turbo = |source: &str| judged("turbo", &[("power.boost", Fact::known(true, source))]).fix;
        let fix = turbo("/sys/devices/system/cpu/intel_pstate/no_turbo").expect("a command");
        assert!(fix.command.starts_with("echo 1 |") && fix.undo.starts_with("echo 0 |"), "{fix:?}");
        assert_eq!(turbo("elsewhere"), None);
    }

    #[test]
    fn facts_are_judged() {
        let known = |value: f64| Fact::known(value, "test");
        let list = |value: &str| Fact::known(vec![value.to_owned()], "test");
        let clock = |used: &str, is_virtual: bool| {
            vec![
                ("run.clock", Fact::known(used, "why")),
                ("hypervisor.present", Fact::known(is_virtual, "test")),
            ]
        };
        let load = |load: f64| vec![("cpu.online", known(4.0)), ("load.before", known(load))];
        // Two processors for ten seconds have 2000 ticks.
        let steal = |stolen: f64| {
            let after = ("steal.after", known(100.0 + stolen));
            vec![("cpu.online", known(2.0)), ("steal.before", known(100.0)), after]
        };
        let governor = |fact: Fact| vec![("power.governor", fact)];
        for (check, facts, state) in [
            ("load", load(0.9), State::Good),
            ("load", load(1.1), State::Fair),
            ("governor", governor(Fact::absent("no cpufreq")), State::Absent),
            ("governor", governor(Fact::unreadable("garbage")), State::Unreadable),
            ("governor", governor(Fact::refused("Permission denied")), State::Refused),
            ("governor", governor(Fact::known("performance", "test")), State::Good),
            ("governor", governor(Fact::known("powersave", "test")), State::Fair),
            ("governor", vec![], State::Unreadable),
            ("clock", clock("CLOCK_MONOTONIC_RAW", false), State::Poor),
            ("clock", clock("tsc", true), State::Fair),
            ("clock", clock("tsc", false), State::Good),
            ("clock", clock("cntvct", true), State::Good),
            ("hypervisor", vec![("hypervisor.layers", list("QEMU TCG"))], State::Poor),
            ("hypervisor", vec![("hypervisor.signatures", list("TCGTCGTCGTCG"))], State::Poor),
            ("hypervisor", vec![("hypervisor.layers", list("KVM"))], State::Fair),
            ("steal", steal(10.0), State::Good),
            ("steal", steal(30.0), State::Poor),
        ] {
            let judged = judged(check, &facts);
            assert_eq!(judged.state, state, "{check}: {facts:?}");
            assert_eq!(judged.root.is_some(), state == State::Refused, "{check}: {facts:?}");
        }
    }
}
