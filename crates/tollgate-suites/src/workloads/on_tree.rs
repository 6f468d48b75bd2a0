//! Workloads on their fixture: prepared, then executed once at a time, as the engine says.

use std::time::Duration;

use tollgate_model::{Fact, Traced};
use tollgate_trace::Choice;

use super::cache::{Cache, Pages};
use super::fixture::{Tree, go_on};
use super::{WORKLOADS, size_of};
use super::{source::Size, work::Work};
use crate::prelude::*;

/// Groups the cases by size, since they share a tree; the probably fast ones come first.
pub(super) fn by_size(cases: &[Chosen]) -> Vec<Vec<usize>> {
    let of_size = |size: Size| {
        let is_of = |case: &usize| size_of(&cases[*case].1).unwrap_or_default() == size;
        let mut of_size: Vec<usize> = (0..cases.len()).filter(is_of).collect();
        of_size.sort_by_key(|&case| guess(&cases[case]));
        of_size
    };
    Size::ALL.into_iter().map(of_size).filter(|of_size| !of_size.is_empty()).collect()
}

fn guess((benchmark, params): &Chosen) -> (usize, bool) {
    const FAST_FIRST: [&str; 5] = ["grep", "unpack", "checkout", "tags", "build"];
    let is_it = |name: &&str| benchmark.name.ends_with(*name);
    let serial = params.get("jobs").is_some_and(|jobs| *jobs == 1.into());
    (FAST_FIRST.iter().position(is_it).unwrap_or(FAST_FIRST.len()), serial)
}

pub(super) fn make(cases: &[Chosen], context: &mut RunContext) -> Step<Box<dyn Fixture>> {
    let size = cases.first().and_then(|(_, params)| size_of(params)).unwrap_or_default();
    let storage = context.plan.storage.clone().map_err(Refusal::Skip)?;
    check_limit(size, &storage)?;
    go_on(context)?;
    let tree = Tree::make(size, &storage.directory, context)?;
    let pages = Pages::new(&storage, &tree.path_of("page"))?;
    Ok(Box::new(OnTree { tree, pages, cases: cases.iter().map(Case::new).collect() }))
}

fn check_limit(size: Size, storage: &Storage) -> Result<()> {
    let needed = size.bytes_at_most();
    if needed <= storage.limit {
        Ok(())
    } else {
        let (needed, by) = (needed >> 20, &storage.by);
        Err(skip!("{needed} MiB of files would be more than {by}"))
    }
}

struct OnTree {
    cases: Vec<Case>,
    pages: Pages,
    tree: Tree,
}

struct Case {
    benchmark: &'static Benchmark,
    params: Params,
    cache: Cache,
    work: Option<Box<dyn Work>>,
    /// True if the cache had the required state when the input was reset.
    is_certified: bool,
    /// The last execution, until it is checked.
    ran: Option<Traced>,
}

impl Case {
    fn new((benchmark, params): &Chosen) -> Self {
        let cache = if word(params, "cache") == "cold" { Cache::Cold } else { Cache::Warm };
        Self { benchmark, params: params.clone(), cache, work: None, is_certified: false, ran: None }
    }
}

impl Fixture for OnTree {
    fn make_ready(&mut self, case: usize, context: &mut RunContext) -> Step<()> {
        go_on(context)?;
        let case = self.cases.get_mut(case).ok_or_else(unknown)?;
        self.pages.can_be(case.cache)?;
        let workload = WORKLOADS.iter().find(|workload| workload.benchmark.name == case.benchmark.name);
        let workload = workload.ok_or_else(|| fail!("the benchmark has no preparation"))?;
        case.work = Some((workload.ready)(&mut self.tree, &case.params, context)?);
        Ok(())
    }

    fn reset(&mut self, case: usize, context: &mut RunContext) -> Step<()> {
        go_on(context)?;
        let Self { cases, pages, tree } = self;
        let case = cases.get_mut(case).ok_or_else(unknown)?;
        let work = case.work.as_ref().ok_or_else(not_ready)?;
        work.reset(tree, context)?;
        case.is_certified = pages.bring(case.cache, &work.reads(tree))?;
        Ok(())
    }

    fn run(&mut self, case: usize, is_traced: bool, context: &mut RunContext) -> Step<()> {
        go_on(context)?;
        let case = self.cases.get_mut(case).ok_or_else(unknown)?;
        let work = case.work.as_ref().ok_or_else(not_ready)?;
        let by = if is_traced { Choice::Best } else { Choice::Rusage };
        case.ran = Some(self.tree.home.follow(&work.command(&self.tree), by, context.deadline, context)?);
        Ok(())
    }

    fn check(&mut self, case: usize, context: &mut RunContext) -> Step<Repetition> {
        let Self { cases, pages, tree } = self;
        let case = cases.get_mut(case).ok_or_else(unknown)?;
        let work = case.work.as_ref().ok_or_else(not_ready)?;
        let traced = case.ran.take().ok_or_else(not_ready)?;
        let checked = work.check(tree, context)?;
        let notes = vec![pages.note(case.cache), format!("checked after each run: {checked}")];
        Ok(Repetition { traced: (case.is_certified || !pages.certify()).then_some(traced), notes })
    }

    fn facts(&self) -> Vec<(String, Fact)> {
        self.tree.facts.clone()
    }
}

fn not_ready() -> Refusal {
    fail!("a phase before this one was left out")
}

fn unknown() -> Refusal {
    fail!("the fixture was made for fewer cases")
}

/// Returns the default time, from the sizes of the trees.
pub(super) fn usual_time(cases: &[Chosen]) -> Duration {
    let is_chosen = |size: &Size| cases.iter().any(|(_, params)| size_of(params) == Some(*size));
    Size::ALL.into_iter().filter(is_chosen).map(Size::usual_time).sum()
}
