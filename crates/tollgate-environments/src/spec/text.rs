//! Pairs of key and value, and the sentences for those that are wrong.

use tollgate_model::text::{excerpt, listed};

/// Why a name is no environment's: one sentence that begins with the name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(String);

impl SpecError {
    pub(super) fn of(given: &str, why: &str) -> Self {
        match given {
            "" => Self(why.to_owned()),
            _ => Self(format!("{}: {why}", excerpt(given))),
        }
    }
}

/// The names that may be meant, as ` (did you mean X?)`.
pub(super) fn near(given: &str, names: &[&str]) -> String {
    // Longer words are like none of them, and the distance is quadratic.
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

/// The sentence for a value that is none of `values`.
pub(super) fn one_of(key: &str, value: &str, values: &[&str]) -> String {
    format!("{key} is one of {}, not `{}`{}", listed(values), excerpt(value), near(value, values))
}

/// The pairs of `key=value,…`. A key that ends with `.` stands for all that begin with it, and may come again. One that ends with `!`
/// stands alone, and has an empty value.
pub(super) fn pairs<'a>(
    kind: &str,
    keys: &[&str],
    rest: Option<&'a str>,
) -> Result<Vec<(&'a str, &'a str)>, String> {
    let Some(rest) = rest else { return Ok(Vec::new()) };
    let (flags, keys): (Vec<&str>, Vec<&str>) = keys.iter().partition(|key| key.ends_with('!'));
    let flags: Vec<&str> = flags.into_iter().filter_map(|flag| flag.strip_suffix('!')).collect();
    let names = [&keys[..], &flags].concat();
    let shown: Vec<String> = names
        .iter()
        .map(|key| if key.ends_with('.') { format!("{key}NAME") } else { (*key).to_owned() })
        .collect();
    let has = match shown.as_slice() {
        [one] => format!("its key is {one}"),
        shown => format!("its keys are {}", listed(shown)),
    };
    let mut found: Vec<(&str, &str)> = Vec::new();
    for pair in rest.split(',') {
        let key = pair.split_once('=').map_or(pair, |(key, _)| key);
        let is_known =
            keys.iter().any(|known| key == *known || known.ends_with('.') && key.starts_with(known));
        let is_flag = flags.contains(&key);
        let value = match pair.split_once('=') {
            None if is_flag => Some(""),
            pair => pair.map(|(_, value)| value).filter(|_| is_known),
        };
        let Some(value) = value else {
            return Err(match (key, is_known) {
                _ if is_flag => format!("the key {key} has no value: write {key} alone"),
                ("", _) => format!("after {kind}: stand pairs key=value with commas between them; {has}"),
                (_, true) => format!("the key {} has no value: write {}=VALUE", excerpt(key), excerpt(key)),
                _ => format!("{kind} has no key {}{}; {has}", excerpt(key), near(key, &names)),
            });
        };
        if found.iter().any(|(before, _)| *before == key) {
            return Err(format!("the key {} is given twice", excerpt(key)));
        }
        found.push((key, value));
    }
    Ok(found)
}
