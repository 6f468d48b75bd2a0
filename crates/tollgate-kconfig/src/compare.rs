use std::collections::BTreeMap;

use crate::areas::{AREAS, Area, Entry, identity};
use crate::text::Configuration;
use crate::value::Value;

/// The number of options with each kind of value. If no option is set twice, they agree with `grep -c '=y$'` and `grep -c '=m$'`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CountsOfOptions"))]
pub struct Counts {
    /// Options with `=y`.
    pub built_in: usize,
    /// Options with `=m`.
    pub modules: usize,
    /// Options with `# CONFIG_… is not set`.
    pub off: usize,
    /// Options with a number or a text.
    pub valued: usize,
}

impl Counts {
    /// Counts the options of a configuration.
    pub fn of(configuration: &Configuration) -> Self {
        let mut counts = Self::default();
        configuration.options.values().for_each(|value| counts.add(value));
        counts
    }

    fn add(&mut self, value: &Value) {
        *match value {
            Value::BuiltIn => &mut self.built_in,
            Value::Module => &mut self.modules,
            Value::Off => &mut self.off,
            Value::Number(_) | Value::Text(_) => &mut self.valued,
        } += 1;
    }

    /// Returns the number of options.
    pub fn all(self) -> usize {
        self.built_in + self.modules + self.off + self.valued
    }
}

/// The counts of one area.
#[derive(Debug)]
pub struct Counter {
    /// The area that was counted.
    pub area: &'static Area,
    /// The number of its options with each kind of value.
    pub counts: Counts,
}

/// Counts the options of each area, in the order of [`AREAS`].
pub fn counter(configuration: &Configuration) -> Vec<Counter> {
    let mut counters: Vec<Counter> =
        AREAS.iter().map(|area| Counter { area, counts: Counts::default() }).collect();
    for (name, value) in &configuration.options {
        let area = identity(name).area;
        if let Some(counter) = counters.iter_mut().find(|counter| std::ptr::eq(counter.area, area)) {
            counter.counts.add(value);
        }
    }
    counters
}

/// How configurations differ in an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// In what is built, or in a number or text.
    Set,
    /// Some do not offer it and the others have it off, so no kernel has it.
    Offered,
}

/// An option in which configurations differ.
#[derive(Debug)]
pub struct Difference<'a> {
    /// The current name, without `CONFIG_`.
    pub name: &'a str,
    /// The area of the option.
    pub area: &'static Area,
    /// The entry for exactly this option.
    pub entry: Option<&'static Entry>,
    /// Whether a value differs, or only whether the option is offered.
    pub kind: DifferenceKind,
    /// The value in each configuration, in their order; `None` if it does not offer the option.
    pub values: Vec<Option<&'a Value>>,
    /// The former name under which each configuration has the option, if it uses one.
    pub formerly: Vec<Option<&'a str>>,
}

impl Difference<'_> {
    /// Returns how the first kernel with a feature but not its option behaves; `None` if all of them simply lack the feature.
    pub fn without(&self, configurations: &[&Configuration]) -> Option<&'static str> {
        let entry = self.entry?;
        let lacking = self.values.iter().zip(configurations).filter(|(value, _)| value.is_none());
        lacking.filter_map(|(_, configuration)| entry.without_in(configuration)).next()
    }
}

/// Returns the differences by area, as in [`AREAS`]; in an area, options that affect latencies first, then the others by name.
pub fn compare<'a>(configurations: &[&'a Configuration]) -> Vec<Difference<'a>> {
    let number = configurations.len();
    let mut rows: BTreeMap<&'a str, Difference<'a>> = BTreeMap::new();
    for (at, configuration) in configurations.iter().enumerate() {
        for (name, value) in &configuration.options {
            let who = identity(name);
            let row = rows.entry(who.name).or_insert_with(|| Difference {
                name: who.name,
                area: who.area,
                entry: who.entry,
                kind: DifferenceKind::Set,
                values: vec![None; number],
                formerly: vec![None; number],
            });
            let renamed = name != who.name;
            // If a configuration has both names, the current one counts.
            if renamed && row.values[at].is_some() {
                continue;
            }
            row.values[at] = Some(value);
            row.formerly[at] = renamed.then_some(name.as_str());
        }
    }
    let mut differences: Vec<Difference<'a>> = rows.into_values().filter_map(differing).collect();
    differences.sort_by_key(|difference| (position(difference), difference.name));
    differences
}

/// Sets the kind of difference; returns `None` if all values are equal.
fn differing(row: Difference<'_>) -> Option<Difference<'_>> {
    let same = |one: &Option<&Value>, two: &Option<&Value>| match (one, two) {
        (Some(one), Some(two)) => one.is_same(two),
        (one, two) => one.is_none() && two.is_none(),
    };
    let first = row.values.first()?;
    if row.values.iter().all(|value| same(value, first)) {
        return None;
    }
    let nothing_on = !row.values.iter().flatten().any(|value| value.is_on());
    Some(Difference { kind: if nothing_on { DifferenceKind::Offered } else { DifferenceKind::Set }, ..row })
}

/// The sort key: the index of the area, then of the entry if it affects latencies.
fn position(difference: &Difference) -> (usize, usize) {
    let area = AREAS.iter().position(|area| std::ptr::eq(area, difference.area));
    let affecting = difference.entry.filter(|entry| entry.affects.is_some());
    let entry =
        affecting.and_then(|entry| difference.area.entries.iter().position(|it| std::ptr::eq(it, entry)));
    (area.unwrap_or(usize::MAX), entry.unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::parse;

    fn read(text: &str) -> Configuration {
        parse(text.as_bytes()).expect("a configuration")
    }

    fn shown<'a>(differences: &'a [Difference]) -> Vec<(&'a str, String, DifferenceKind)> {
        let show = |value: &Option<&Value>| value.map_or("-".to_owned(), ToString::to_string);
        let all = |it: &Difference| it.values.iter().map(show).collect::<Vec<_>>().join(" ");
        differences.iter().map(|it| (it.name, all(it), it.kind)).collect()
    }

    #[test]
    fn a_renamed_option_is_compared_under_one_name() {
        let old = read("CONFIG_PAGE_TABLE_ISOLATION=y\nCONFIG_RETPOLINE=y\n");
        let new =
            read("CONFIG_MITIGATION_PAGE_TABLE_ISOLATION=y\n# CONFIG_MITIGATION_RETPOLINE is not set\n");
        let differences = compare(&[&old, &new]);
        assert_eq!(shown(&differences), [("MITIGATION_RETPOLINE", "y n".to_owned(), DifferenceKind::Set)]);
        assert_eq!(differences[0].formerly, [Some("RETPOLINE"), None]);
    }

    #[test]
    fn where_both_names_stand_the_new_one_counts() {
        let both = read("CONFIG_RETPOLINE=y\n# CONFIG_MITIGATION_RETPOLINE is not set\n");
        let off = read("# CONFIG_MITIGATION_RETPOLINE is not set\n");
        assert!(compare(&[&both, &off]).is_empty() && compare(&[&off, &both]).is_empty());
    }

    #[test]
    fn off_is_not_the_same_as_not_offered() {
        let one = read("# CONFIG_A is not set\nCONFIG_B=y\nCONFIG_C=m\n");
        let two = read("CONFIG_C=y\nCONFIG_D=7\n");
        let differences = compare(&[&one, &two]);
        assert_eq!(
            shown(&differences),
            [
                ("A", "n -".to_owned(), DifferenceKind::Offered),
                ("B", "y -".to_owned(), DifferenceKind::Set),
                ("C", "m y".to_owned(), DifferenceKind::Set),
                ("D", "- 7".to_owned(), DifferenceKind::Set),
            ]
        );
    }

    #[test]
    fn what_affects_latencies_comes_first() {
        let one = read("CONFIG_HZ=250\nCONFIG_SCHED_A=y\nCONFIG_PREEMPT=y\nCONFIG_SND=y\n");
        let two = read("CONFIG_HZ=1000\nCONFIG_SECCOMP=y\n");
        let differences = compare(&[&one, &two]);
        let names: Vec<&str> = differences.iter().map(|it| it.name).collect();
        assert_eq!(names, ["SECCOMP", "PREEMPT", "HZ", "SCHED_A", "SND"]);
    }

    fn any_configuration() -> impl Strategy<Value = Configuration> {
        let line = "CONFIG_(A|B|RETPOLINE|MITIGATION_RETPOLINE|HZ)=[ymn12]|# CONFIG_[A-D] is not set";
        prop::collection::vec(line, 1..12).prop_map(|lines| read(&lines.join("\n")))
    }

    proptest! {
        #[test]
        fn areas_add_up(configuration in any_configuration()) {
            let all: usize = counter(&configuration).iter().map(|counter| counter.counts.all()).sum();
            prop_assert_eq!(all, configuration.options.len());
            prop_assert_eq!(Counts::of(&configuration).all(), all);
        }

        #[test]
        fn nothing_differs_from_itself(one in any_configuration(), two in any_configuration()) {
            prop_assert!(compare(&[&one, &one]).is_empty());
            let (there, back) = (compare(&[&one, &two]), compare(&[&two, &one]));
            prop_assert_eq!(there.len(), back.len());
            for (there, back) in there.iter().zip(&back) {
                prop_assert_eq!(there.name, back.name);
                prop_assert_eq!(there.values[0], back.values[1]);
            }
        }
    }
}
