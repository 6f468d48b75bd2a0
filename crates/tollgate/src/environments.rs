//! `tollgate environments`: what `run --in` can measure on this machine, and what the rest needs; with `--time` how long each
//! takes to start, and the size of what makes it.

use serde::Serialize;
use tollgate_engine::interrupt;
use tollgate_engine::session::{Answered, first_answers};
use tollgate_environments::{Cleanup, Environment, EnvironmentError, Installed, Possibility, Spec, survey};
use tollgate_model::{Unit, stats};
use tollgate_output::figures;
use tollgate_output::table::{Look, Table};

use crate::args::Format;
use crate::args::session::EnvironmentsArgs;
use crate::failure::{Failure, plainly};
use crate::out;

/// Starts of each environment: the median counts.
const STARTS: usize = 3;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Environments {
    /// One object for each kind.
    environments: Vec<KindOfEnvironment>,
}

/// An environment, and whether it works here.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct KindOfEnvironment {
    /// As `--in` takes it.
    environment: String,
    /// Whether it can be made here.
    works: bool,
    /// The version of its maker, and the like; or None.
    detail: Option<String>,
    /// Why it does not work, or None.
    why: Option<String>,
    /// With `--time` its start and size; otherwise None, also if it does not work or has to name something else.
    cost: Option<Cost>,
    #[serde(skip)]
    name: Option<String>,
}

/// The size of an environment, and the time of its start.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "CostOfEnvironment"))]
struct Cost {
    /// Packages or files that make it, without their dependencies. Empty for this machine.
    installed: Vec<Part>,
    /// From fork(2) of its first process to the first answer of this program in it: the median of three starts. None if it did
    /// not start.
    start_ns: Option<f64>,
    /// The time to the first byte of `/bin/sh -c echo` in this program's place. None if it has no shell.
    shell_ns: Option<f64>,
    /// Why a time is None, or None.
    why: Option<String>,
}

/// Something that was installed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "InstalledPart"))]
struct Part {
    /// The Debian package with its version, or the path of a file that belongs to none.
    name: String,
    /// Whether it is a package.
    is_package: bool,
    /// For a package its Installed-Size, for a file its size.
    bytes: u64,
}

impl KindOfEnvironment {
    fn of(found: Possibility) -> Self {
        let Possibility { environment, names, found } = found;
        let (detail, why) = found.map_or_else(|why| (None, Some(why)), |detail| (Some(detail), None));
        let name = names.into_iter().next().filter(|_| why.is_none());
        Self { environment, works: why.is_none(), detail, why, cost: None, name }
    }

    fn remarks(&self) -> Vec<String> {
        let cost = self.cost.iter().flat_map(|cost| {
            let part = |part: &Part| format!("{} {}", part.name, figures::bytes(part.bytes as f64));
            cost.installed.iter().map(part).chain(cost.why.clone())
        });
        self.detail.iter().chain(&self.why).cloned().chain(cost).collect()
    }
}

impl EnvironmentsArgs {
    pub fn execute(&self) -> Result<(), Failure> {
        let mut environments: Vec<KindOfEnvironment> =
            survey().into_iter().map(KindOfEnvironment::of).collect();
        if self.time {
            take_times(&mut environments)?;
        }
        match self.format {
            Format::Json => out::print_json(&Environments { environments }),
            Format::Table => out::print(&table(&environments, self.time).render(out::width())),
        }
    }
}

fn take_times(environments: &mut [KindOfEnvironment]) -> Result<(), Failure> {
    interrupt::install();
    let refused =
        |error| Failure::input(format!("the cleanup process could not be started: {}", plainly(&error)));
    let cleanup = Cleanup::begin().map_err(refused)?;
    for record in environments {
        record.cost =
            record.name.as_deref().and_then(|name| name.parse().ok()).map(|spec| cost_of(&spec, &cleanup));
        interrupt::check(Failure::Interrupted)?;
    }
    Ok(())
}

fn cost_of(spec: &Spec, cleanup: &Cleanup) -> Cost {
    let part = |Installed { name, is_package, bytes }| Part { name, is_package, bytes };
    let installed = spec.installed(None).into_iter().map(part).collect();
    let (start_ns, shell_ns, why) = match answers(spec, cleanup) {
        Ok(all) => {
            let why = all.iter().find_map(|one| one.shell_ns.as_ref().err().cloned());
            let agents: Vec<f64> = all.iter().map(|one| one.agent_ns).collect();
            let shells: Vec<f64> = all.iter().filter_map(|one| one.shell_ns.as_ref().ok().copied()).collect();
            (stats::median(&agents), stats::median(&shells), why)
        }
        Err(why) => (None, None, Some(why)),
    };
    Cost { installed, start_ns, shell_ns, why }
}

fn answers(spec: &Spec, cleanup: &Cleanup) -> Result<Vec<Answered>, String> {
    let plain = |error: EnvironmentError| error.to_string();
    let is_asked = || interrupt::requested().is_some();
    let mut environment = Environment::prepare(spec, cleanup, &is_asked).map_err(plain)?;
    (0..STARTS).map(|_| first_answers(&mut environment)).collect()
}

fn table(environments: &[KindOfEnvironment], is_timed: bool) -> Table {
    const HEADS: [&str; 5] = ["environment", "works", "size", "start", "shell"];
    let heads = if is_timed { &HEADS[..] } else { &HEADS[..2] };
    let mut table = Table::new(heads).with_words(&HEADS[..2]);
    for one in environments {
        let works = if one.works { "yes" } else { "no" };
        let mut cells = vec![one.environment.clone(), works.to_owned()];
        if is_timed {
            cells.extend(costs(one.cost.as_ref()));
        }
        table.row(Look::Plain, &cells, &one.remarks());
    }
    table
}

fn costs(cost: Option<&Cost>) -> [String; 3] {
    let none = || "–".to_owned();
    let time = |ns: Option<f64>| ns.map_or_else(none, |ns| figures::estimate(ns, Unit::Nanoseconds));
    let bytes = cost.map(|cost| cost.installed.iter().map(|part| part.bytes).fold(0, u64::saturating_add));
    let size = bytes.filter(|bytes| *bytes > 0).map_or_else(none, |bytes| figures::bytes(bytes as f64));
    [size, time(cost.and_then(|cost| cost.start_ns)), time(cost.and_then(|cost| cost.shell_ns))]
}
