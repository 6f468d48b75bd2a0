//! Keys of environments and their values, and messages about wrong ones.

use tollgate_model::text::{excerpt, listed};

/// Why a name does not name an environment: one sentence that begins with the name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(String);

impl SpecError {
    pub(crate) fn new(given: &str, why: &str) -> Self {
        match given {
            "" => Self(why.to_owned()),
            _ => Self(format!("{}: {why}", excerpt(given))),
        }
    }
}

/// The effect of another value of a key on an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// One setting, shown by the facts whose names begin with one of these; empty if no fact shows it.
    Facts(&'static [&'static str]),
    /// One setting, which any fact may show.
    AnyFact,
    /// More than one setting: another runtime makes another container.
    More,
}

/// A key in `key=value` after the name of a kind.
#[derive(Debug)]
pub(crate) struct Key {
    /// A name that ends with `.` stands for all keys that begin with it, and may be repeated.
    pub name: &'static str,
    pub values: &'static [&'static str],
    /// Placeholder for a value that the user chooses, such as `N`. A key without values stands alone.
    pub own: Option<&'static str>,
    /// Whether the user's value names nothing outside: no program, host, file, directory or variable.
    is_plain: bool,
    pub changes: Changes,
}

impl Key {
    pub const fn own(name: &'static str, own: &'static str) -> Self {
        Self { own: Some(own), ..Self::alone(name) }
    }

    pub const fn one_of(name: &'static str, values: &'static [&'static str]) -> Self {
        Self { values, ..Self::alone(name) }
    }

    /// A key without a value.
    pub const fn alone(name: &'static str) -> Self {
        Self { name, values: &[], own: None, is_plain: false, changes: Changes::More }
    }

    /// Also accepts a value that the user chooses.
    pub const fn or(self, own: &'static str) -> Self {
        Self { own: Some(own), ..self }
    }

    /// Marks the user's values as numbers or words that name nothing outside.
    pub const fn plain(self) -> Self {
        Self { is_plain: true, ..self }
    }

    pub const fn changes(self, changes: Changes) -> Self {
        Self { changes, ..self }
    }

    pub fn is_alone(&self) -> bool {
        self.values.is_empty() && self.own.is_none()
    }

    /// Returns whether a value names nothing outside.
    pub fn is_inside(&self, value: &str) -> bool {
        self.is_alone() || self.values.contains(&value) || self.is_plain && !value.contains('/')
    }

    /// Returns whether `key` is this key, or one that it stands for.
    pub fn is_of(&self, key: &str) -> bool {
        key == self.name || self.name.ends_with('.') && key.starts_with(self.name)
    }

    /// As it is typed: with each of its values, or up to where the user's value begins.
    pub fn typed(&self) -> Vec<String> {
        match (self.values, self.own) {
            ([], Some(_)) if self.name.ends_with('.') => vec![self.name.to_owned()],
            ([], Some(_)) => vec![format!("{}=", self.name)],
            ([], None) => vec![self.name.to_owned()],
            (values, _) => values.iter().map(|value| format!("{}={value}", self.name)).collect(),
        }
    }
}

/// Suggests similar names, as ` (did you mean X?)`.
pub(crate) fn near(given: &str, names: &[&str]) -> String {
    // Longer words resemble none of them, and the distance takes quadratic time.
    if given.len() > 32 {
        return String::new();
    }
    let given = given.to_lowercase();
    let is_near = |name: &str| {
        let begins = given.len() >= 2 && (name.starts_with(&given) || given.starts_with(name));
        begins || strsim::osa_distance(&given, name) <= 2 && given.len() >= 3
    };
    let names: Vec<&str> = names.iter().copied().filter(|name| is_near(name)).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!(" (did you mean {}?)", names.join(" or ")),
    }
}

pub(crate) fn one_of(key: &str, value: &str, values: &[&str]) -> String {
    format!("{key} is one of {}, not `{}`{}", listed(values), excerpt(value), near(value, values))
}

/// Splits `key=value,…` into pairs. A key without a value gets an empty one.
pub(crate) fn pairs<'a>(
    kind: &str,
    keys: &[Key],
    rest: Option<&'a str>,
) -> Result<Vec<(&'a str, &'a str)>, String> {
    let Some(rest) = rest else { return Ok(Vec::new()) };
    let mut found: Vec<(&str, &str)> = Vec::new();
    for pair in rest.split(',') {
        let (key, value) = pair.split_once('=').map_or((pair, None), |(key, value)| (key, Some(value)));
        let value = match (keys.iter().find(|known| known.is_of(key)), value) {
            (Some(known), None) if known.is_alone() => "",
            (Some(known), Some(value)) if !known.is_alone() => value,
            (known, _) => return Err(wrong(kind, keys, key, known)),
        };
        if found.iter().any(|(before, _)| *before == key) {
            return Err(format!("the key {} is given twice", excerpt(key)));
        }
        found.push((key, value));
    }
    Ok(found)
}

fn wrong(kind: &str, keys: &[Key], key: &str, known: Option<&Key>) -> String {
    let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
    let shown: Vec<String> = names
        .iter()
        .map(|name| if name.ends_with('.') { format!("{name}NAME") } else { (*name).to_owned() })
        .collect();
    let has = match shown.as_slice() {
        [one] => format!("its key is {one}"),
        shown => format!("its keys are {}", listed(shown)),
    };
    match known {
        Some(known) if known.is_alone() => format!("the key {key} has no value: write {key} alone"),
        Some(_) => format!("the key {} has no value: write {}=VALUE", excerpt(key), excerpt(key)),
        None if key.is_empty() => {
            format!("{kind}: is followed by key=value pairs separated by commas; {has}")
        }
        None => format!("{kind} has no key {}{}; {has}", excerpt(key), near(key, &names)),
    }
}

/// Declares a type whose variants are the values of a key.
macro_rules! words {
    ($(#[$doc:meta])* $type:ident: $($(#[$of:meta])* $name:ident = $word:literal),+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $type { $($(#[$of])* $name),+ }

        impl $type {
            /// All variants, in the order in which they are listed.
            pub const ALL: [Self; Self::WORDS.len()] = [$(Self::$name),+];

            pub const WORDS: &'static [&'static str] = &[$($word),+];

            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            pub fn parse(key: &str, value: &str) -> Result<Self, String> {
                let known = Self::ALL.into_iter().find(|one| one.name() == value);
                known.ok_or_else(|| $crate::pairs::one_of(key, value, Self::WORDS))
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub(crate) use words;
