//! The facts that affect one boundary.

use tollgate_model::{Boundary, Reach};

use super::group::Group;

/// The groups' facts that affect this boundary, and the names of those that affect every latency.
pub fn affecting(groups: Vec<Group>, boundary: Boundary) -> (Vec<Group>, Vec<String>) {
    let reach = |name: &str| tollgate_inspect::effect(name).map(|effect| effect.reach);
    let names = |group: &Group| group.facts.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let general =
        groups.iter().flat_map(names).filter(|name| reach(name) == Some(Reach::Everything)).collect();
    let affects =
        |name: &str| matches!(reach(name), Some(Reach::Boundaries(affected)) if affected.contains(&boundary));
    let kept = groups.into_iter().filter_map(|mut group| {
        group.facts.retain(|(name, _)| affects(name));
        (!group.facts.is_empty()).then_some(group)
    });
    (kept.collect(), general)
}

#[cfg(test)]
mod tests {
    use tollgate_model::Fact;

    use super::*;

    #[test]
    fn only_facts_that_affect_the_boundary_are_kept() {
        let names = ["mitigation.meltdown", "cpu.model", "cpu.family", "memory.thp", "kernel.release"];
        let facts = names.map(|name| (name.to_owned(), Fact::absent("test")));
        let groups = vec![
            Group { subject: "one".to_owned(), facts: facts.to_vec() },
            Group { subject: "other".to_owned(), facts: facts[2..4].to_vec() },
        ];
        let (kept, general) = affecting(groups, Boundary::KernelEntry);
        let kept: Vec<&str> =
            kept.iter().flat_map(|group| &group.facts).map(|(name, _)| name.as_str()).collect();
        assert_eq!(kept, ["mitigation.meltdown", "kernel.release"]);
        assert_eq!(general, ["cpu.model"]);
    }
}
