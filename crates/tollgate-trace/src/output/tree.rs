//! The processes as a tree. Siblings that executed the same program share a line, such as `cc1 ×62`.

use std::collections::BTreeMap;

use tollgate_model::Traced;
use tollgate_model::traced::{Call, Parts, Process};
use tollgate_output::table::{Look, Table, paragraph};

use super::columns::Known;
use super::{processes, text};

/// Processes below this depth are only counted.
const DEEPEST: usize = 12;
const LONGEST_NAME: usize = 20;

/// Renders the tree with at most `top` lines below each process; empty if no process is known.
pub(crate) fn text(traced: &Traced, top: usize, width: usize) -> String {
    let forest = Forest::of(traced);
    let header = [&["process", "real"], processes::time_columns(traced), &["top call"]].concat();
    let mut table = Table::new(&header).with_words(&["top call"]).with_dispensable(1);
    let roots: Vec<usize> = (0..traced.tree.len()).filter(|&at| traced.tree[at].parent.is_none()).collect();
    let level = Level { top: top.max(1), before: String::new(), depth: 0 };
    forest.put(&mut table, &roots, &level);
    let columns = match processes::time_columns(traced) {
        [] => String::new(),
        columns => format!(
            "; {}: all threads of that line's processes, without their children",
            columns.join(" and ")
        ),
    };
    let legend = format!("real: from the first's beginning to the last's end{columns}.");
    format!("{}{}", table.render(width), paragraph(&legend, width, ""))
}

struct Forest<'a> {
    traced: &'a Traced,
    processes: &'a [Process],
    children: Vec<Vec<usize>>,
    /// Time on processors of each process with its descendants, by which lines are sorted.
    weights: Vec<u64>,
}

struct Level {
    top: usize,
    before: String,
    depth: usize,
}

impl<'a> Forest<'a> {
    fn of(traced: &'a Traced) -> Self {
        let processes = &traced.tree;
        let knows_cpu = Known::of(traced).cpu;
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); processes.len()];
        let mut weights: Vec<u64> = processes
            .iter()
            .map(processes::parts)
            .map(|parts| if knows_cpu { parts.on_cpu_ns } else { parts.total_ns() })
            .collect();
        // Parents precede their children, so in reverse order each sum is complete when it is added to its parent.
        for (at, process) in processes.iter().enumerate().rev() {
            let Some(parent) = process.parent.map(|parent| parent as usize).filter(|&parent| parent < at)
            else {
                continue;
            };
            children[parent].push(at);
            weights[parent] = weights[parent].saturating_add(weights[at]);
        }
        Self { traced, processes, children, weights }
    }

    fn put(&self, table: &mut Table, members: &[usize], level: &Level) {
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for &at in members {
            by_name.entry(&self.processes[at].name).or_default().push(at);
        }
        let weight = |group: &[usize]| group.iter().map(|&at| self.weights[at]).fold(0, u64::saturating_add);
        let mut groups: Vec<Vec<usize>> = by_name.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(weight(group)));
        let hidden = groups.split_off(groups.len().min(level.top));
        let lines = groups.len() + usize::from(!hidden.is_empty());
        for (line, group) in groups.iter().enumerate() {
            let (branch, below) = level.branches(line + 1 == lines);
            self.put_group(table, group, &branch);
            let beneath: Vec<usize> = group.iter().flat_map(|&at| &self.children[at]).copied().collect();
            if beneath.is_empty() {
                continue;
            }
            let next = Level { top: level.top, before: below, depth: level.depth + 1 };
            if level.depth < DEEPEST {
                self.put(table, &beneath, &next)
            } else {
                let name =
                    format!("{}└ {}", next.before, text::counted(beneath.len() as u64, "more", "more"));
                table.row(Look::Faint, &[name], &[]);
            }
        }
        if !hidden.is_empty() {
            let hidden: Vec<usize> = hidden.concat();
            let parts = self.parts(&hidden);
            let name = format!(
                "{}{}",
                level.branches(true).0,
                text::counted(hidden.len() as u64, "other", "others")
            );
            let mut cells = vec![name, String::new()];
            cells.extend(processes::time_cells(self.traced, parts));
            table.row(Look::Faint, &cells, &[]);
        }
    }

    fn put_group(&self, table: &mut Table, group: &[usize], branch: &str) {
        let members = || group.iter().map(|&at| &self.processes[at]);
        let name = members().next().map_or(String::new(), |first| text::cut(&first.name, LONGEST_NAME));
        let number =
            if group.len() > 1 { format!(" ×{}", text::grouped(group.len() as u64)) } else { String::new() };
        let began = members().map(|process| process.began_ns).min().unwrap_or(0);
        let ended = members().map(|process| process.ended_ns).collect::<Option<Vec<u64>>>();
        let real = ended.and_then(|ended| ended.into_iter().max()).map(|ended| ended.saturating_sub(began));
        let parts = self.parts(group);
        let mut cells =
            vec![format!("{branch}{name}{number}"), real.map_or_else(|| "not ended".to_owned(), text::time)];
        cells.extend(processes::time_cells(self.traced, parts));
        cells.push(
            self.top_call(group).map(|call| processes::in_words(self.traced, &call)).unwrap_or_default(),
        );
        table.row(Look::Plain, &cells, &[]);
    }

    fn parts(&self, group: &[usize]) -> Parts {
        group.iter().fold(Parts::default(), |sum, &at| sum.plus(processes::parts(&self.processes[at])))
    }

    fn top_call(&self, group: &[usize]) -> Option<Call> {
        let mut calls: BTreeMap<&str, Call> = BTreeMap::new();
        for call in group.iter().flat_map(|&at| &self.processes[at].calls) {
            match calls.get_mut(call.name.as_str()) {
                Some(known) => known.total_ns = known.total_ns.saturating_add(call.total_ns),
                None => drop(calls.insert(&call.name, call.clone())),
            }
        }
        processes::top_call(&calls.into_values().collect::<Vec<Call>>()).cloned()
    }
}

impl Level {
    /// Returns the prefix of a line, and that of the lines below it.
    fn branches(&self, is_last: bool) -> (String, String) {
        let before = &self.before;
        match (self.depth, is_last) {
            (0, _) => (String::new(), String::new()),
            (_, true) => (format!("{before}└ "), format!("{before}  ")),
            (_, false) => (format!("{before}├ "), format!("{before}│ ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::examples;

    fn lines(traced: &Traced, top: usize) -> Vec<String> {
        let text = anstream::adapter::strip_str(&text(traced, top, 100)).to_string();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn siblings_of_one_program_are_one_line() {
        let lines = lines(&examples::build(), 12);
        assert!(lines[1].starts_with("make "), "{lines:#?}");
        assert!(lines[2].starts_with("├ cc ×3 ") || lines[2].starts_with("└ cc ×3 "), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("└ cc1 ×3 ")), "{lines:#?}");
    }

    #[test]
    fn what_is_not_shown_is_counted() {
        let lines = lines(&examples::build(), 1);
        assert!(lines.iter().any(|line| line.contains("└ 1 other")), "{lines:#?}");
    }

    #[test]
    fn the_deepest_tree_and_the_widest_end() {
        let mut traced = examples::build();
        let one = traced.tree[0].clone();
        let deep = |id: u32| Process { id, parent: id.checked_sub(1), name: format!("p{id}"), ..one.clone() };
        traced.tree = (0..65_536).map(deep).collect();
        assert!(lines(&traced, 12).len() < 40);
        let wide =
            |id: u32| Process { id, parent: (id > 0).then_some(0), name: format!("p{id}"), ..one.clone() };
        traced.tree = (0..65_536).map(wide).collect();
        assert!(lines(&traced, 12).len() < 40);
    }
}
