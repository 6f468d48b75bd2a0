//! The options of configuration files, which come before those of the command line.
//!
//! A file has a table for each verb, whose keys are the verb's options, as the definition of the arguments lists them. The values
//! for the called verb become words of its command line, so that they are checked like typed ones. Typed options win: an option
//! that conflicts with them is left out.

mod environments;
mod files;
mod found;
mod toml;

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, Command, ValueHint};

use self::environments::ENVIRONMENTS;
pub use self::environments::{Named, say_used, with_names};
pub use self::files::{File, Origin};
use self::toml::Entry;
pub use self::toml::Value;
use crate::failure::Failure;
use crate::say;

/// The options that make the exit status depend on what was measured.
const GATES: [&str; 3] = ["budget", "fail_on", "until_decided"];

#[derive(Debug, Default)]
pub struct Configuration {
    /// The files that were looked for, the one with precedence first.
    pub files: Vec<File>,
    /// Options, in the order in which the files are read, including those that do not count.
    settings: Vec<Setting>,
    pub environments: Vec<Named>,
}

#[derive(Debug, Clone)]
pub struct Setting {
    /// The words of its verb; none for all verbs.
    pub verb: Vec<String>,
    pub key: String,
    /// clap's name of it.
    pub id: String,
    pub value: Value,
    pub file: usize,
    pub line: usize,
    words: Vec<OsString>,
}

/// Reads the named file, or else the project's and the user's.
///
/// # Errors
/// A file that cannot be read, that is not TOML, or that has a key or value that no verb takes.
pub fn read(command: &Command, named: Option<&Path>) -> Result<Configuration, Failure> {
    let mut read = Configuration::default();
    for (mut file, text) in files::all(named)? {
        let path = file.path.clone();
        let fault = |line: usize, why: String| Failure::input(format!("{}:{line}: {why}", path.display()));
        let place = read.files.len();
        let entries =
            toml::read(&text.unwrap_or_default()).map_err(|toml::Fault { line, why }| fault(line, why))?;
        let origin = file.origin;
        file.entries = entries.len();
        read.files.push(file);
        for entry in with_tables_of_options(command, entries) {
            let line = entry.line;
            if entry.table == [ENVIRONMENTS] {
                let from = format!("{}:{line}", path.display());
                let one = environments::read(entry, from, origin).map_err(|why| fault(line, why))?;
                // The user's file is the last one: a project cannot redefine a name of the user's.
                match read.environments.iter_mut().find(|known| known.name == one.name) {
                    Some(known) => *known = one,
                    None => read.environments.push(one),
                }
                continue;
            }
            let setting = setting(command, entry, place).map_err(|why| fault(line, why))?;
            setting.check(command).map_err(|why| fault(line, why))?;
            read.settings.push(setting);
        }
    }
    Ok(read)
}

impl Configuration {
    pub fn counting(&self) -> (Vec<&Setting>, Vec<(&Setting, &'static str)>) {
        self.counting_of(|_| true, false)
    }

    /// Likewise for those that `is_asked` accepts; `is_gated` if the exit status depends on measurements.
    fn counting_of(
        &self,
        is_asked: impl Fn(&Setting) -> bool,
        is_gated: bool,
    ) -> (Vec<&Setting>, Vec<(&Setting, &'static str)>) {
        let (mut counting, mut refused): (Vec<&Setting>, Vec<_>) = (Vec::new(), Vec::new());
        for one in self.settings.iter().filter(|one| is_asked(one)) {
            let is_found = self.files[one.file].origin == Origin::Found;
            let is_known = |known: &&Setting| known.verb == one.verb && known.id == one.id;
            match is_found.then(|| found::refusal(one, is_gated)).flatten() {
                Some(why) => refused.push((one, why)),
                None if counting.iter().any(is_known) => {}
                None => counting.push(one),
            }
        }
        (counting, refused)
    }
}

/// With one list for each table of an option whose values are `COUNT=N`: `[versus.budget]` with `calls = 400` is `budget =
/// ["calls=400"]` of `[versus]`.
fn with_tables_of_options(command: &Command, entries: Vec<Entry>) -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    for entry in entries {
        let Some((key, table)) = entry.table.split_last() else {
            all.push(entry);
            continue;
        };
        let verb = table.iter().try_fold(command, |verb, name| verb.find_subcommand(name));
        let option = verb.and_then(|verb| options(verb).find(|(known, _)| known == key)).map(|(_, it)| it);
        if !option.is_some_and(is_of_pairs) {
            all.push(entry);
            continue;
        }
        // Another value is refused as one of the option.
        let pair = entry.value.text().map(|value| Value::Text(format!("{}={value}", entry.key)));
        let pair = pair.unwrap_or(entry.value);
        match all.iter_mut().find(|known| known.table == table && known.key == *key) {
            Some(Entry { value: Value::List(pairs), .. }) => pairs.push(pair),
            _ => all.push(Entry {
                table: table.to_vec(),
                key: key.clone(),
                value: Value::List(vec![pair]),
                line: entry.line,
            }),
        }
    }
    all
}

fn is_of_pairs(option: &Arg) -> bool {
    let has_pairs = |names: &[clap::builder::Str]| names.iter().any(|name| name.contains('='));
    matches!(option.get_action(), ArgAction::Append) && option.get_value_names().is_some_and(has_pairs)
}

fn setting(command: &Command, entry: Entry, file: usize) -> Result<Setting, String> {
    let mut verb = command;
    for (depth, name) in entry.table.iter().enumerate() {
        let table = |name: &str| {
            let above = entry.table[..depth].iter().map(String::as_str);
            format!("[{}]", above.chain([name]).collect::<Vec<_>>().join("."))
        };
        let verbs = || verb.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
        let known = verb.find_subcommand(name).filter(|verb| !verb.is_hide_set());
        verb = known.ok_or_else(|| {
            let what = format!("there is no table [{}]", entry.table.join("."));
            let tables = verbs().chain([ENVIRONMENTS]).map(table);
            let usual = "tables are named by the verbs, such as [run] or [store.list]";
            format!("{what}; {}", nearest(&table(name), tables, usual))
        })?;
    }
    let Entry { table, key, value, line } = entry;
    let keys = || options(verb).map(|(key, _)| key);
    let Some((_, option)) = options(verb).find(|(known, _)| *known == key) else {
        let of = if table.is_empty() {
            "before the first table".to_owned()
        } else {
            format!("of [{}]", table.join("."))
        };
        let all = keys().collect::<Vec<_>>().join(", ");
        let usual = if all.is_empty() { "it has none".to_owned() } else { format!("its keys: {all}") };
        return Err(format!("there is no key {key} {of}; {}", nearest(&key, keys(), &usual)));
    };
    let words = words(option, &key, &value)?;
    let id = option.get_id().to_string();
    Ok(Setting { verb: table, key, id, value, file, line, words })
}

fn nearest<T: AsRef<str>>(word: &str, known: impl Iterator<Item = T>, otherwise: &str) -> String {
    let likely = known.map(|known| (strsim::osa_distance(word, known.as_ref()), known));
    match likely.min_by_key(|(distance, _)| *distance) {
        Some((distance, known)) if distance <= 1 + word.len() / 4 => {
            format!("did you mean {}?", known.as_ref())
        }
        _ => otherwise.to_owned(),
    }
}

/// The options of a verb that a file can give, by their keys: those with a long form, and the first argument, unless it begins a
/// command line.
///
/// `--json` is `format = "json"`, and the files themselves are named on the command line.
fn options(verb: &Command) -> impl Iterator<Item = (String, &Arg)> {
    let first = verb.get_positionals().next().map(Arg::get_id);
    verb.get_arguments().filter_map(move |option| {
        let is_typed = matches!(option.get_id().as_str(), "json" | "config_file" | "no_config");
        let is_line = option.get_value_hint() == ValueHint::CommandWithArguments;
        match option.get_long() {
            _ if is_typed => None,
            Some(long) => Some((long.to_owned(), option)),
            None if option.is_positional() && !is_line && Some(option.get_id()) == first => {
                Some((option.get_id().as_str().replace('_', "-"), option))
            }
            None => None,
        }
    })
}

fn words(option: &Arg, key: &str, value: &Value) -> Result<Vec<OsString>, String> {
    let is_flag = !option.get_action().takes_values();
    if is_flag {
        return match value {
            Value::Truth(true) => Ok(vec![format!("--{key}").into()]),
            Value::Truth(false) => Ok(Vec::new()),
            _ => Err(format!("{key} is true or false")),
        };
    }
    let texts: Vec<&str> = match value {
        Value::List(values) => values.iter().map(Value::text).collect::<Option<_>>(),
        value => value.text().map(|text| vec![text]),
    }
    .ok_or_else(|| format!("{key} takes text and numbers"))?;
    let together = option
        .get_num_args()
        .filter(|number| number.max_values() > 1 && !option.is_positional() && number.min_values() > 1);
    let takes_many = matches!(option.get_action(), ArgAction::Append) || together.is_some();
    if matches!(value, Value::List(_)) && !takes_many {
        return Err(format!("{key} takes one value, not a list"));
    }
    let is_word = option.is_positional() || together.is_some();
    if is_word && texts.iter().any(|text| text.starts_with('-')) && !option.is_allow_hyphen_values_set() {
        return Err(format!("a value of {key} does not begin with `-`"));
    }
    Ok(match together {
        // `--parameter-list VAR VALUES`, once per pair.
        Some(number) => texts
            .chunks(number.max_values())
            .flat_map(|part| std::iter::once(format!("--{key}")).chain(part.iter().map(ToString::to_string)))
            .map(OsString::from)
            .collect(),
        None if is_word => texts.into_iter().map(OsString::from).collect(),
        None => texts.into_iter().map(|text| format!("--{key}={text}").into()).collect(),
    })
}

impl Setting {
    /// Checks the value like the parser of the command line. Options that it requires may come from elsewhere.
    fn check(&self, command: &Command) -> Result<(), String> {
        let some_verb = self.verb.is_empty().then_some("list");
        let words = std::iter::once("tollgate").chain(self.verb.iter().map(String::as_str)).chain(some_verb);
        let words = words.map(OsString::from).chain(self.words.iter().cloned());
        match command.clone().try_get_matches_from(words) {
            Err(error) if !depends_on_others(error.kind()) => {
                Err(crate::args::wrong::one_line(&error.render().to_string()))
            }
            _ => Ok(()),
        }
    }
}

fn depends_on_others(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::MissingRequiredArgument
            | ErrorKind::ArgumentConflict
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// The words of the command line with those of the files before what follows its verb, and the options that these give.
///
/// A word is left out if it conflicts with typed ones, or needs another option that is missing.
pub fn applied(
    command: &Command,
    typed: &[OsString],
    configuration: &Configuration,
) -> (Vec<OsString>, Vec<String>) {
    let (verb, at) = verb_of(command, typed);
    let is_of_it = |one: &Setting| one.verb == verb || one.verb.is_empty();
    let matches = command.clone().ignore_errors(true).try_get_matches_from(typed).ok();
    let Some(matches) = matches else { return (typed.to_vec(), Vec::new()) };
    let of_verb = verb.iter().try_fold(&matches, |matches, name| matches.subcommand_matches(name));
    // The options of all verbs are known to each.
    let is_given = |id: &str| {
        of_verb.is_some_and(|matches| {
            matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine)
        })
    };
    // A file that was found rather than named may not give one of these.
    let is_gate = |one: &Setting| GATES.contains(&one.id.as_str()) && is_of_it(one) && !one.words.is_empty();
    let is_gated = GATES.iter().any(|id| is_given(id)) || configuration.counting().0.into_iter().any(is_gate);
    let (mut left, refused) = configuration.counting_of(|one| is_of_it(one) && !is_given(&one.id), is_gated);
    say_refused(configuration, &refused);
    let with = |chosen: &[&Setting]| {
        let words = chosen.iter().flat_map(|one| one.words.iter().cloned());
        typed[..at].iter().cloned().chain(words).chain(typed[at..].iter().cloned()).collect::<Vec<OsString>>()
    };
    let tried = |chosen: &[&Setting]| {
        let error = command.clone().try_get_matches_from(with(chosen)).err();
        error.filter(|error| depends_on_others(error.kind())).map(|error| error.to_string())
    };
    let mut chosen: Vec<&Setting> = Vec::new();
    let mut fault = tried(&chosen);
    // An option may need another one that comes later.
    loop {
        let before = chosen.len();
        left.retain(|one| {
            let more: Vec<&Setting> = chosen.iter().copied().chain([*one]).collect();
            let found = tried(&more);
            let fits = found.is_none() || found == fault;
            if fits {
                (chosen, fault) = (more, found);
            }
            !fits
        });
        if chosen.len() == before {
            return (with(&chosen), chosen.iter().map(|one| one.id.clone()).collect());
        }
    }
}

/// The words of the called verb, and the number of words up to its end. Options of the program itself may come before it.
fn verb_of(command: &Command, words: &[OsString]) -> (Vec<String>, usize) {
    let with_value = |word: &str| {
        let long = word.strip_prefix("--");
        let mut options = command.get_arguments().filter(|option| option.get_action().takes_values());
        long.is_some_and(|long| options.any(|option| option.get_long() == Some(long)))
    };
    let (mut verb, mut inner) = (Vec::new(), command);
    let (mut at, mut end) = (1, words.len().min(1));
    while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
        if let Some(found) = inner.find_subcommand(word) {
            verb.push(found.get_name().to_owned());
            (inner, end) = (found, at + 1);
        } else if !word.starts_with('-') {
            break;
        } else if with_value(word) {
            at += 1;
        }
        at += 1;
    }
    (verb, end)
}

fn say_refused(configuration: &Configuration, refused: &[(&Setting, &str)]) {
    let Some((first, _)) = refused.first() else { return };
    let key = |(one, why): &(&Setting, &str)| match *why {
        "" => one.key.clone(),
        why => format!("{} ({why})", one.key),
    };
    let keys = refused.iter().map(key).collect::<Vec<_>>().join(", ");
    let path = configuration.files[first.file].path.display();
    say::say(&format!(
        "not taken from {path}, which was found, not named: {keys}; `--config FILE` takes everything from a file"
    ));
}
