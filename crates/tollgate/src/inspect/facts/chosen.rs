//! The facts that `--only` chooses.

use tollgate_suites::selection::{near, wildcard};
use tollgate_view::inspect::facts::Group;

use crate::failure::Failure;

/// The facts that any of `patterns` matches: a name, its first parts (`cpu`, `cpu.feature`), a subject, or either with `*` for
/// any run of characters. All without a pattern.
/// Fails with the first pattern that matches nothing.
pub fn chosen(groups: Vec<Group>, patterns: &[String]) -> Result<Vec<Group>, Failure> {
    if patterns.is_empty() {
        return Ok(groups);
    }
    for pattern in patterns {
        let any = |group: &Group| {
            let named = group.facts.iter().any(|(name, _)| matches(pattern, name));
            named || is_subject(pattern, group)
        };
        if !groups.iter().any(any) {
            return Err(Failure::input(unknown(pattern, &groups)));
        }
    }
    let kept = groups.into_iter().filter_map(|mut group| {
        let whole = patterns.iter().any(|pattern| is_subject(pattern, &group));
        group.facts.retain(|(name, _)| whole || patterns.iter().any(|pattern| matches(pattern, name)));
        (!group.facts.is_empty()).then_some(group)
    });
    Ok(kept.collect())
}

fn is_subject(pattern: &str, group: &Group) -> bool {
    wildcard(pattern, &group.subject)
}

fn matches(pattern: &str, name: &str) -> bool {
    let ends = name.match_indices('.').map(|(at, _)| at).chain([name.len()]);
    ends.into_iter().any(|end| wildcard(pattern, &name[..end]))
}

fn unknown(pattern: &str, groups: &[Group]) -> String {
    if tollgate_inspect::spec(pattern).is_some_and(|spec| spec.only().is_some()) {
        return format!("--only: {pattern} is a fact of another architecture");
    }
    let names = groups.iter().flat_map(|group| group.facts.iter().map(|(name, _)| name.as_str()));
    let names = names.chain(groups.iter().map(|group| group.subject.as_str()));
    let tip = match near(pattern, names).as_slice() {
        [] => "`tollgate inspect` lists them".to_owned(),
        names => format!("did you mean {}?", names.join(" or ")),
    };
    format!("--only: no fact or subject matches {pattern:?}; {tip}")
}

#[cfg(test)]
mod tests {
    use tollgate_model::Fact;

    use super::*;

    fn groups() -> Vec<Group> {
        let group = |subject: &str, names: &[&str]| Group {
            subject: subject.to_owned(),
            facts: names.iter().map(|name| ((*name).to_owned(), Fact::absent("test"))).collect(),
        };
        vec![
            group("processor", &["cpu.model", "cpu.feature.pcid", "cpu.features"]),
            group("control groups", &["cgroup.cpu_max"]),
        ]
    }

    fn names(pattern: &str) -> Result<Vec<String>, Failure> {
        let groups = chosen(groups(), &[pattern.to_owned()])?;
        Ok(groups.into_iter().flat_map(|group| group.facts).map(|(name, _)| name).collect())
    }

    #[test]
    fn parts_subjects_and_wildcards() {
        let count = |pattern| names(pattern).map(|names| names.len()).expect(pattern);
        assert_eq!(count("cpu"), 3);
        assert_eq!(count("cpu.feature"), 1, "whole parts only");
        assert_eq!(count("*pcid"), 1);
        assert_eq!(count("control groups"), 1);
        assert_eq!(count("c*"), 4);
        assert_eq!(count("cpu.model"), 1);
    }

    #[test]
    fn a_slip_of_the_finger_is_near() {
        let refused = |pattern: &str| match names(pattern) {
            Err(Failure::Input(sentence)) => sentence,
            other => panic!("{other:?}"),
        };
        assert!(refused("cpu.modle").ends_with("did you mean cpu.model?"), "{}", refused("cpu.modle"));
        assert!(refused("something else").contains("`tollgate inspect` lists"));
        assert!(refused("cpu.midr").ends_with("cpu.midr is a fact of another architecture"));
        assert!(refused(&"x".repeat(100_000)).len() < 200_000);
    }
}
