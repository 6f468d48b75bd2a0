//! `tollgate list`: what can be measured, from the registry.

use std::collections::HashSet;

use tollgate_engine::Topology;
use tollgate_suites::{Benchmark, Extent, Size};
use tollgate_view::benchmarks;

use crate::args::{Format, ListArgs};
use crate::failure::Failure;
use crate::out;

impl ListArgs {
    pub fn execute(&self) -> Result<(), Failure> {
        // Includes suites that are measured only on request.
        let everything = ["*".to_owned()];
        let patterns = if self.pattern.is_empty() { everything.as_slice() } else { &self.pattern };
        let machine = Topology::here();
        let selection = tollgate_suites::select(&machine, patterns, Extent::Thorough, Size::Small)
            .map_err(|unknown| Failure::input(unknown.to_string()))?;
        let chosen: HashSet<String> = selection.cases().map(|case| case.benchmark).collect();
        let is_chosen = |benchmark: &Benchmark| chosen.contains(benchmark.name);
        match self.format {
            Format::Json => out::print_json(&benchmarks::List::new(&machine, is_chosen)),
            Format::Table => out::print(&benchmarks::text(&machine, is_chosen, out::width())),
        }
    }
}
