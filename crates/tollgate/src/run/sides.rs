//! The environments of `tollgate run --in`, as requested and as prepared.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use tollgate_engine::session::{Life, Side};
use tollgate_engine::{Architecture, Extent, Group, Selection, Topology, interrupt};
use tollgate_environments::{
    Cleanup, Environment, EnvironmentError, Kernels, KnobSetting, OnRam, Spec, SpecError, Switch,
};
use tollgate_model::run::Switched;
use tollgate_model::text::{excerpt, listed};
use tollgate_model::{Fact, Facts, Part, RunId};
use tollgate_suites::Size;
use tollgate_view::facts;

use crate::args::RunArgs;
use crate::args::compare::Quantity;
use crate::failure::{Failure, go_on};
pub use crate::named::named;
use crate::{say, storage};

/// More environments than a page can compare are too many for one session.
const MOST: usize = tollgate_view::page::MAX_ENVIRONMENTS;

pub fn is_asked(args: &RunArgs) -> bool {
    let session = &args.session;
    !session.environments.is_empty() || session.knob.is_some() || !session.switches.0.is_empty()
}

pub fn expect_none(args: &RunArgs) -> Result<(), Failure> {
    let session = &args.session;
    let given = [
        ("--fail-on", "fail_on", !session.fail_on.is_empty()),
        ("--by", "by", session.by != Quantity::Real),
        ("--threshold", "threshold", session.threshold.is_some()),
    ];
    match given.into_iter().find(|(_, id, is_given)| *is_given && !args.is_configured(id)) {
        None => Ok(()),
        Some((option, ..)) => Err(Failure::input(format!(
            "{option} needs several environments, such as --in host --in container; for kept runs use `tollgate compare`"
        ))),
    }
}

pub struct Asked {
    named: Vec<(String, Spec)>,
    alternated: Alternated,
    /// Whether a case needs the kernel module of a guest.
    needs_module: bool,
}

impl Asked {
    /// Checks everything that can be checked before anything is made: names, the setting, conflicting options.
    pub fn new(args: &RunArgs, selection: &Selection) -> Result<Self, Failure> {
        let mut named: Vec<(String, Spec)> =
            args.session.environments.iter().map(|name| parse(name)).collect::<Result<_, Failure>>()?;
        if let Some(directory) = &args.session.kernels {
            named = of_kernels(&named, directory)?;
        }
        let alternated = Alternated::of(args, named.len())?;
        if named.is_empty() {
            named = if selection.groups.iter().any(Group::is_of_environments) && alternated.number() == 1 {
                working()?
            } else {
                vec![(Spec::default().to_string(), Spec::default())]
            };
        }
        let needs_module = selection.cases().any(|case| tollgate_suites::needs_kernel_module(&case));
        let asked = Self { named, alternated, needs_module };
        match asked.number() {
            1 => expect_none(args)?,
            number if number > MOST => {
                let why =
                    format!("--in: {number} environments are too many for one session; name at most {MOST}");
                return Err(Failure::input(why));
            }
            _ => {}
        }
        asked.with_directory(args, selection)
    }

    /// Environments by their names, for the user's commands. Fails for wrong names, and for more than a page can compare.
    pub fn named(names: &[String]) -> Result<Self, Failure> {
        if names.len() > MOST {
            let number = names.len();
            return Err(Failure::input(format!(
                "--in: {number} environments are too many; name at most {MOST}"
            )));
        }
        let named = names.iter().map(|name| parse(name)).collect::<Result<_, _>>()?;
        Ok(Self { named, alternated: Alternated::Nothing, needs_module: false })
    }

    pub fn number(&self) -> usize {
        self.named.len() * self.alternated.number()
    }

    /// The lock of the setting, which the cleanup process holds as well.
    pub fn lock(&self) -> Option<BorrowedFd<'_>> {
        match &self.alternated {
            Alternated::Knob(knob) => Some(knob.lock()),
            _ => None,
        }
    }
}

impl Asked {
    /// Gives `--dir` to the environments of the kind host that name no directory of their own.
    fn with_directory(mut self, args: &RunArgs, selection: &Selection) -> Result<Self, Failure> {
        let (dir, on) = args.place(selection);
        if let Some(on) = on {
            return self.on_ram(on, selection);
        }
        let Some(directory) = dir else { return Ok(self) };
        if !selection.uses_files() {
            return Err(storage::unneeded("--dir"));
        }
        let mut is_used = false;
        for (_, spec) in &mut self.named {
            if let Some(there) = spec.in_directory(directory) {
                *spec = there.map_err(|error| Failure::input(format!("--dir: {error}")))?;
                is_used = true;
            }
        }
        if is_used {
            Ok(self)
        } else {
            Err(Failure::input(
                "--dir names a directory of this machine, so it needs an environment of kind host without dir=",
            ))
        }
    }
}

impl Asked {
    /// Gives `--on ram` to guests, each of which has a Linux of its own.
    fn on_ram(mut self, on: &OnRam, selection: &Selection) -> Result<Self, Failure> {
        if !selection.uses_files() {
            return Err(storage::unneeded("--on"));
        }
        for (_, spec) in &mut self.named {
            *spec = spec.on_ram(on).ok_or_else(|| {
                Failure::input(
                    "--on with --in needs environments of kind vm, which run their own Linux; for this machine omit --in and --knob",
                )
            })?;
        }
        Ok(self)
    }
}

/// The environments that work on this machine without naming another one.
fn working() -> Result<Vec<(String, Spec)>, Failure> {
    say::say("trying which environments work here (`tollgate environments` says why others do not)");
    let found = tollgate_environments::survey().into_iter().filter(|one| one.found.is_ok());
    let parsed = |name: String| {
        let spec = name.parse().map_err(|error: SpecError| Failure::input(error.to_string()))?;
        Ok((name, spec))
    };
    found.flat_map(|one| one.names).map(parsed).collect()
}

/// The names of an environment with each kernel of a directory, which is called by its release.
///
/// # Errors
/// As for `--kernels` of a run.
pub fn names_of_kernels(names: &[String], directory: &Path) -> Result<Vec<String>, Failure> {
    let named: Vec<(String, Spec)> = names.iter().map(|name| parse(name)).collect::<Result<_, _>>()?;
    let all = of_kernels(&named, directory)?;
    Ok(all.into_iter().map(|(release, spec)| format!("{release}={spec}")).collect())
}

/// The environment with each kernel of a directory, by its release.
/// Fails for more than one environment, or one without a kernel to choose; without any kernel it names the ones left out.
fn of_kernels(named: &[(String, Spec)], directory: &Path) -> Result<Vec<(String, Spec)>, Failure> {
    let fails = |why: String| Failure::input(format!("--kernels {}: {why}", directory.display()));
    let wrong = || fails("give one environment of kind vm without kernel=, such as --in vm:exact".to_owned());
    let [(_, spec)] = named else { return Err(wrong()) };
    let Kernels { found, left_out } = spec.with_kernels(directory).ok_or_else(wrong)?.map_err(fails)?;
    if found.is_empty() {
        let why = if left_out.is_empty() {
            "it has no kernel; unpack packages into it with dpkg -x".to_owned()
        } else {
            left_out.join("; ")
        };
        return Err(fails(why));
    }
    left_out.iter().for_each(|why| say::say(&format!("left out: {why}")));
    Ok(found)
}

pub fn parse(name: &str) -> Result<(String, Spec), Failure> {
    let (shown, name) = named(name);
    let spec = name.parse().map_err(|error: SpecError| Failure::input(format!("--in {error}")));
    Ok((shown.to_owned(), spec?))
}

/// This machine, with the architecture that all these environments have: cases depend on it. Environments of several architectures have
/// the cases of this program's.
///
/// # Errors
/// A name is wrong.
pub fn machine(environments: &[String]) -> Result<Topology, Failure> {
    let all = environments.iter().map(|name| Ok(parse(name)?.1.architecture()));
    let all = all.collect::<Result<Vec<Architecture>, Failure>>()?;
    let shared = all.first().filter(|first| all.iter().all(|one| one == *first));
    Ok(Topology { architecture: shared.copied().unwrap_or_default(), ..Topology::here() })
}

pub fn reason(name: &str, why: &str) -> String {
    // The name says the kind as well.
    let kind = name.split(':').next().unwrap_or(name);
    let why = why.strip_prefix(kind).and_then(|why| why.strip_prefix(": ")).unwrap_or(why);
    if why.starts_with(name) { why.to_owned() } else { format!("{name}: {why}") }
}

fn prepare(spec: &Spec, cleanup: &Cleanup, needs_module: bool) -> Result<Environment, EnvironmentError> {
    let stop = || interrupt::requested().is_some();
    let mut environment = Environment::prepare(spec, cleanup, &stop)?;
    if needs_module {
        environment.bring_module(&stop)?;
    }
    Ok(environment)
}

/// The state of the machine that differs between the turns of one environment. State 0 is that of the base.
enum Alternated {
    Nothing,
    /// The setting has its previous value, or the other one.
    Knob(KnobSetting),
    /// All switches are off, one of them is on, or all are.
    Switches(Vec<Switch>),
}

impl Alternated {
    fn of(args: &RunArgs, environments: usize) -> Result<Self, Failure> {
        let session = &args.session;
        let (option, this) = match (&session.knob, session.switches.0.as_slice()) {
            (None, []) => return Ok(Self::Nothing),
            (Some(knob), _) => ("--knob", KnobSetting::claim(knob).map(Self::Knob)),
            (None, switches) => {
                let (machine, every) = (Topology::here(), Extent::Thorough);
                let chosen = |one: &&Switched| {
                    tollgate_suites::select(&machine, std::slice::from_ref(&one.name), every, Size::Small)
                        .is_ok()
                };
                if let Some(one) = switches.iter().find(chosen) {
                    return Err(Failure::input(format!(
                        "--switch: {} selects benchmarks; write it before --switch, or give the state another name",
                        one.name
                    )));
                }
                let is_again = |at: &usize| switches[..*at].iter().any(|one| one.name == switches[*at].name);
                if let Some(at) = (0..switches.len()).find(is_again) {
                    return Err(Failure::input(format!(
                        "--switch: two states are called {}; give each a NAME of its own",
                        excerpt(&switches[at].name)
                    )));
                }
                let all = switches.iter().map(|switched| Switch::new(switched.clone()));
                ("--switch", all.collect::<Result<_, _>>().map(Self::Switches))
            }
        };
        if environments > 1 {
            return Err(Failure::input(format!(
                "{option} compares one environment in several states of the machine; name at most one with --in"
            )));
        }
        this.map_err(|error| Failure::input(format!("{option} {error}")))
    }

    /// How many states there are.
    fn number(&self) -> usize {
        match self {
            Self::Nothing => 1,
            Self::Knob(_) => 2,
            Self::Switches(one) if one.len() == 1 => 2,
            Self::Switches(all) => all.len() + 2,
        }
    }

    fn promise(&mut self, cleanup: &Cleanup) -> Result<(), Failure> {
        match self {
            Self::Nothing => Ok(()),
            Self::Knob(knob) => {
                say::say(&knob.sentence());
                knob.promise(cleanup).map_err(|error| Failure::input(format!("--knob {error}")))
            }
            Self::Switches(all) => all.iter_mut().try_for_each(|switch| {
                say::say(&switch.sentence());
                let fault = |error| Failure::input(format!("--switch {error}"));
                switch.promise(cleanup).map_err(|error| go_on().err().unwrap_or_else(|| fault(error)))
            }),
        }
    }

    fn switch(&mut self, state: usize) -> Result<(), EnvironmentError> {
        match self {
            Self::Nothing => Ok(()),
            Self::Knob(knob) => knob.switch(state == 1),
            Self::Switches(all) => {
                let number = all.len();
                if all.iter().enumerate().all(|(at, switch)| switch.is_on() == is_on(at, state, number)) {
                    return Ok(());
                }
                // An OFF may take back what another ON did, as `auditctl -D` does: each state begins with none on.
                all.iter_mut().try_for_each(|switch| switch.switch(false))?;
                let those = all.iter_mut().enumerate().filter(|(at, _)| is_on(*at, state, number));
                those.map(|(_, switch)| switch).try_for_each(|switch| switch.switch(true))
            }
        }
    }

    /// The least time of a turn, which is long compared with the time that the slowest switch takes.
    fn turn(&self) -> Duration {
        const LEAST: Duration = Duration::from_millis(100);
        const TIMES: u32 = 10;
        match self {
            Self::Switches(all) => LEAST.max(TIMES * all.iter().map(Switch::took).max().unwrap_or_default()),
            _ => Duration::ZERO,
        }
    }

    /// The switches that are on in a state.
    fn switched(&self, state: usize) -> Vec<Switched> {
        let Self::Switches(all) = self else { return Vec::new() };
        let on = all.iter().enumerate().filter(|(at, _)| is_on(*at, state, all.len()));
        on.map(|(_, switch)| switch.switched().clone()).collect()
    }

    /// Switches each off, also after another one failed. Returns a sentence for each that failed.
    fn end(self) -> Vec<String> {
        let Self::Switches(all) = self else { return Vec::new() };
        all.into_iter()
            .filter_map(|switch| switch.end().err())
            .map(|error| format!("--switch {error}"))
            .collect()
    }
}

/// Whether the switch at this position is on in a state, if there are this many switches.
fn is_on(at: usize, state: usize, number: usize) -> bool {
    state == at + 1 || state == number + 1
}

/// The prepared environments. All that was made and changed for them is undone when this is dropped.
pub struct Prepared {
    sides: Vec<Own>,
    alternated: RefCell<Alternated>,
}

struct Own {
    name: String,
    /// See [`Part::stands_for`].
    stands_for: Option<String>,
    environment: Environment,
    /// The machine's state in its turns.
    state: usize,
}

impl Prepared {
    /// Prepares each environment; one that cannot be is reported, and the others go on. Also returns the names of those that
    /// cannot be.
    ///
    /// # Errors
    /// None can be prepared, each with its reason; the user stopped it; the setting cannot be changed.
    pub fn all(asked: Asked, cleanup: &Cleanup) -> Result<(Self, Vec<String>), Failure> {
        let Asked { named, mut alternated, needs_module } = asked;
        if let Err(failure) = alternated.promise(cleanup) {
            alternated.end().iter().for_each(|why| say::say(why));
            return Err(failure);
        }
        let (mut sides, mut gone) = (Vec::new(), Vec::new());
        for (name, spec) in &named {
            for state in 0..alternated.number() {
                go_on()?;
                match prepare(spec, cleanup, needs_module) {
                    Ok(environment) => {
                        let stands_for = name.parse::<Spec>().is_err().then(|| spec.to_string());
                        sides.push(Own { name: name.clone(), stands_for, environment, state });
                    }
                    Err(error) => {
                        go_on()?;
                        gone.push((name.clone(), error.to_string()));
                    }
                }
            }
        }
        // Each reason once: several may lack the same.
        let mut lacking: Vec<(Vec<&str>, &str)> = Vec::new();
        for (name, why) in &gone {
            match lacking.iter_mut().find(|(_, known)| known == why) {
                Some((names, _)) if names.contains(&name.as_str()) => {}
                Some((names, _)) => names.push(name),
                None => lacking.push((vec![name], why)),
            }
        }
        let reasons: Vec<String> = lacking.iter().map(|(names, why)| reason(&listed(names), why)).collect();
        if sides.is_empty() {
            return Err(Failure::input(format!("nothing was measured: {}", reasons.join("; "))));
        }
        reasons.iter().for_each(|reason| say::say(reason));
        let gone = gone.into_iter().map(|(name, _)| name).collect();
        Ok((Self { sides, alternated: RefCell::new(alternated) }, gone))
    }

    pub fn number(&self) -> usize {
        self.sides.len()
    }

    pub fn translated(&self) -> usize {
        self.sides.iter().filter(|own| own.environment.is_counting()).count()
    }

    pub fn sides(&mut self) -> Vec<Side<'_>> {
        let alternated = &self.alternated;
        let alternates = alternated.borrow().number() > 1;
        let mut sides = Vec::new();
        for Own { name, environment, state, .. } in &mut self.sides {
            let state = *state;
            let wake = alternates.then(|| {
                let wake = move || alternated.borrow_mut().switch(state).map_err(|error| error.to_string());
                Box::new(wake) as Box<dyn FnMut() -> Result<(), String>>
            });
            let (starts, cpu) = (environment.starts(), environment.cpu());
            let (is_paired, is_counting) = (environment.is_paired(), environment.is_counting());
            let has_disk = environment.has_disk();
            let outside = environment.observer();
            let shared = Rc::new(RefCell::new(environment));
            let life = Some(Box::new(Rc::clone(&shared)) as Box<dyn Life>);
            let start = move || shared.borrow_mut().start().map_err(|error| error.to_string());
            let (name, start) = (name.clone(), Box::new(start));
            sides.push(Side {
                name,
                start,
                starts,
                wake,
                cpu,
                is_paired,
                is_counting,
                has_disk,
                outside,
                life,
            });
        }
        sides
    }

    pub fn remarks(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for remark in self.sides.iter().filter_map(|own| own.environment.remark()) {
            if !all.iter().any(|known| known == remark) {
                all.push(remark.to_owned());
            }
        }
        all
    }

    /// See [`Plan::turn`](tollgate_engine::Plan::turn).
    pub fn turn(&self) -> Duration {
        self.alternated.borrow().turn()
    }

    /// Undoes all that was made and changed. Returns a sentence for each state that could not be switched off.
    pub fn end(self) -> Vec<String> {
        drop(self.sides);
        self.alternated.into_inner().end()
    }

    /// Each line begins with the environment's name.
    pub fn details(&self) -> Result<Vec<String>, Failure> {
        let mut all = Vec::new();
        for Own { name, environment, .. } in &self.sides {
            let lines = environment.details().map_err(|error| Failure::input(error.to_string()))?;
            all.extend(lines.into_iter().map(|line| format!("{name}: {line}")));
        }
        Ok(all)
    }

    /// The known facts about how each was made: its runtime, if there are several of its kind, the origin of its filter of
    /// system calls, and how long it takes to switch.
    pub fn made_of(&self) -> Vec<Facts> {
        let of = |Own { environment, .. }: &Own| {
            let runtime = environment
                .runtime()
                .map(|name| Fact::known(name, "the first that works, or the one asked for"));
            let filter = environment.filter().map(|whose| Fact::known(whose, "the environment's name"));
            let switching = match &*self.alternated.borrow() {
                Alternated::Switches(all) => {
                    let took: Duration = all.iter().map(Switch::took).sum();
                    Some(Fact::known(took.as_secs_f64(), "each on and off once, before the session"))
                }
                _ => None,
            };
            let all = [(facts::RUNTIME, runtime), (facts::FILTER, filter), (facts::SWITCHING, switching)];
            all.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), fact?))).collect()
        };
        self.sides.iter().map(of).collect()
    }

    /// The name of each environment, and its part in the session. A single one is not a session. Starts, if only these are measured,
    /// are paired round by round in every environment.
    pub fn parts(&self, id: &RunId, only_starts: bool) -> Vec<(String, Option<Part>)> {
        let of = u32::try_from(self.sides.len()).unwrap_or(u32::MAX);
        let alternated = self.alternated.borrow();
        let knob = match &*alternated {
            Alternated::Knob(knob) => Some(knob.knob()),
            _ => None,
        };
        let part = |(place, own): (u32, &Own)| {
            let part = Part {
                id: id.clone(),
                environment: own.name.clone(),
                stands_for: own.stands_for.clone(),
                place,
                of,
                paired: only_starts || own.environment.is_paired(),
                knob: knob.clone().filter(|_| own.state == 1),
                switches: alternated.switched(own.state),
                command: None,
            };
            (own.name.clone(), (of > 1).then_some(part))
        };
        (0..of).zip(&self.sides).map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_those_of_the_architecture_that_all_environments_have() {
        let words = |environments: &[&str], name: &str| -> Vec<String> {
            let environments: Vec<String> = environments.iter().map(ToString::to_string).collect();
            let Ok(machine) = machine(&environments) else { panic!("{environments:?}") };
            let selection = tollgate_suites::select(&machine, &[name.to_owned()], Extent::Usual, Size::Small);
            selection.expect("registered").cases().map(|case| case.to_string()).collect()
        };
        let has = |cases: &[String], word: &str| cases.iter().any(|case| case.contains(word));
        let of =
            |architecture: Architecture| words(&[&format!("vm:arch={architecture}")], "memory/bandwidth");
        let [x86, arm64] = Architecture::ALL.map(of);
        assert!(has(&x86, "avx2") && !has(&x86, "neon") && !has(&arm64, "avx2") && has(&arm64, "neon"));
        assert!(has(&words(&["a=vm:exact,arch=arm64"; 2], "memory/atomic"), "add-exclusive"));
        let here = words(&[], "memory/bandwidth");
        for others in [&["vm:arch=x86-64", "vm:arch=arm64"], &["ssh:there", "container"]] {
            assert_eq!(words(others, "memory/bandwidth"), here);
        }
    }

    #[test]
    fn each_state_of_several_switches_begins_with_none_on() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("log");
        let echo = |word: &str| format!("echo {word} >> '{}'", log.display());
        let switch =
            |name: &str| Switch::new(Switched { name: name.to_owned(), on: echo(name), off: echo("off") });
        let mut states = Alternated::Switches(vec![switch("first").unwrap(), switch("second").unwrap()]);
        let cleanup = Cleanup::begin().unwrap();
        assert!(states.promise(&cleanup).is_ok());
        let mut said = |state: usize| {
            std::fs::write(&log, "").unwrap();
            states.switch(state).unwrap();
            std::fs::read_to_string(&log).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        // All together, the first, again, all together, the second, and none.
        assert_eq!(
            [3, 1, 1, 3, 2, 0].map(&mut said),
            ["first second", "off off first", "", "off first second", "off off second", "off"]
        );
        assert_eq!(states.end(), [""; 0]);
    }
}
