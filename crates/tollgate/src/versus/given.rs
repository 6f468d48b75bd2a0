//! The commands of `tollgate versus` as given: with a shell, parameters, names, and what is executed around them.

use std::path::PathBuf;

use tollgate_engine::versus::{Accepts, Given, Input, Order, Output};
use tollgate_model::versus::{Command, MAX_LINE};
use tollgate_os::words;
use tollgate_output::figures;

use super::parameters::{Values, combinations, filled};
use super::revisions::{DIRECTORY, REVISION, Side};
use crate::args::versus::VersusArgs;
use crate::failure::Failure;

const SHELL: &str = "sh";
/// More commands in more environments do not fit in a session.
const MOST: usize = tollgate_model::run::MAX_ENVIRONMENTS as usize;

pub struct Commands {
    /// Each as it is executed, and as a run keeps it.
    pub all: Vec<(Given, Command)>,
    pub start: Order,
    pub accepts: Accepts,
}

impl Commands {
    /// # Errors
    /// Conflicting options, lines that are not commands, wrong parameters.
    pub fn of(args: &VersusArgs, revisions: Option<&[Side]>) -> Result<Self, Failure> {
        let shell = shell(args)?;
        let output = if args.conditions.show_output { Output::Inherit } else { Output::Null };
        let executed = Executed { args, shell, output };
        let combinations = match revisions {
            Some(sides) => sides.iter().map(of_revision).collect(),
            None => combinations(&args.parameters)?,
        };
        let lines: Vec<(&String, Values)> = combinations
            .into_iter()
            .flat_map(|values| args.commands.iter().map(move |line| (line, values.clone())))
            .collect();
        let reference = args.parameters.reference.as_ref().map(|line| (line, Values::new()));
        let of_reference = usize::from(reference.is_some());
        let lines: Vec<(&String, Values)> = reference.into_iter().chain(lines).collect();
        let places = args.environments.len().max(1);
        if lines.len().saturating_mul(places) > MOST {
            let number = lines.len();
            return Err(Failure::input(format!(
                "{number} commands in {places} environments are too many for one comparison; the limit is {MOST} in all"
            )));
        }
        let number = lines.len() - of_reference;
        once_or_each("--prepare", args.around.prepare.len(), [number, lines.len()])?;
        once_or_each("--conclude", args.around.conclude.len(), [number, lines.len()])?;
        once_or_each("--output", args.conditions.output.len(), [number, lines.len()])?;
        let names = &args.parameters.command_name;
        let has_parameters = revisions.is_none() && lines.iter().any(|(_, values)| !values.is_empty());
        if has_parameters {
            once_or_each("--command-name", names.len(), [number; 2])?;
        } else if names.len() > number {
            let given = names.len();
            let commands = figures::count(number, "command", "commands");
            return Err(Failure::input(format!("--command-name is given {given} times for {commands}")));
        }
        let mut all = Vec::new();
        let layouts =
            |at: usize| revisions.and_then(|sides| sides.get(at)).map_or(&[][..], |side| &side.layouts);
        for (at, (line, values)) in lines.iter().enumerate() {
            // If nothing is given for the reference, it uses the first value given for each.
            let own = at.saturating_sub(of_reference);
            let is_reference = at < of_reference;
            let number = Number { at, own, all: lines.len() };
            let name = if is_reference {
                args.parameters.reference_name.clone()
            } else if has_parameters {
                number.pick(names).map(|name| filled(name, values))
            } else {
                names.get(own).or_else(|| values.get(REVISION)).cloned()
            };
            all.push(executed.command(line, name, values, layouts(at), &number)?);
        }
        let start = executed.start();
        Ok(Self { all, start, accepts: accepts(args)? })
    }
}

fn of_revision(side: &Side) -> Values {
    let directory = side.directory.display().to_string();
    Values::from([(REVISION.to_owned(), side.name.clone()), (DIRECTORY.to_owned(), directory)])
}

struct Executed<'a> {
    args: &'a VersusArgs,
    /// The shell's words; `None` for no shell.
    shell: Option<Vec<String>>,
    output: Output,
}

impl Executed<'_> {
    fn command(
        &self,
        given: &str,
        name: Option<String>,
        values: &Values,
        layouts: &[PathBuf],
        number: &Number,
    ) -> Result<(Given, Command), Failure> {
        let (args, line) = (self.args, filled(given, values));
        let output = number.pick(&args.conditions.output).map_or("null", String::as_str);
        let output = match (args.conditions.show_output, output) {
            (true, _) | (_, "inherit") => Output::Inherit,
            (_, "null") => Output::Null,
            (_, "pipe") => Output::Pipe,
            (_, file) => Output::File(output_file(&filled(file, values))?),
        };
        let is_shown = output == Output::Inherit && !args.environments.is_empty();
        if is_shown {
            let option = if args.conditions.show_output { "--show-output" } else { "--output inherit" };
            return Err(Failure::input(format!(
                "{option}: in an environment standard output belongs to its agent; use --output with pipe, null or a file"
            )));
        }
        let with_output = |order: Order| Order { output: output.clone(), ..order };
        let order = with_output(self.order(&line, false)?);
        let of_layout = |directory: &PathBuf| {
            let directory = (DIRECTORY.to_owned(), directory.display().to_string());
            let values = values.clone().into_iter().chain([directory]).collect();
            self.order(&filled(given, &values), false).map(with_output)
        };
        let layouts = layouts.iter().map(of_layout).collect::<Result<_, _>>()?;
        let around = |line: Option<&String>, keeps: bool| {
            line.map(|line| self.order(&filled(line, values), keeps)).transpose()
        };
        let executed = Given {
            name: name.clone().unwrap_or_else(|| tollgate_model::text::excerpt(&line).into_owned()),
            order,
            layouts,
            setup: around(args.around.setup.as_ref(), true)?,
            prepare: around(number.pick(&args.around.prepare), true)?,
            conclude: around(number.pick(&args.around.conclude), true)?,
            cleanup: around(args.around.cleanup.as_ref(), false)?,
        };
        // The directory of a build exists only on this machine, and only for now.
        let parameters: Values = values.clone().into_iter().filter(|(name, _)| name != DIRECTORY).collect();
        let kept = Command {
            line: if values.contains_key(DIRECTORY) { given.to_owned() } else { line },
            name,
            parameters,
            shell: self.shell.as_ref().map(|words| format!("{} -c", words.join(" "))),
            is_corrected: false,
            failed: Vec::new(),
            cold: None,
            harness: None,
        };
        Ok((executed, kept))
    }

    fn order(&self, line: &str, keeps: bool) -> Result<Order, Failure> {
        let excerpt = tollgate_model::text::excerpt(line);
        if line.len() >= MAX_LINE || line.contains('\0') {
            return Err(Failure::input(format!(
                "the command {excerpt} is longer than {} KiB or has a NUL",
                MAX_LINE >> 10
            )));
        }
        if line.trim().is_empty() {
            return Err(Failure::input("a command is empty"));
        }
        let words = match &self.shell {
            Some(shell) => shell.iter().cloned().chain(["-c".to_owned(), line.to_owned()]).collect(),
            None => {
                words::split(line).map_err(|why| Failure::input(format!("the command {excerpt}: {why}")))?
            }
        };
        if words.is_empty() {
            return Err(Failure::input("a command is empty; without a shell it begins with a program"));
        }
        Ok(self.of_words(words, keeps))
    }

    fn of_words(&self, words: Vec<String>, keeps: bool) -> Order {
        let conditions = &self.args.conditions;
        let input = match conditions.input.as_str() {
            "null" => Input::Null,
            file => Input::File(PathBuf::from(file)),
        };
        Order {
            words,
            input: if keeps { Input::Null } else { input },
            output: self.output.clone(),
            processors: conditions.processor.clone(),
            cgroup: conditions.cgroup.clone(),
            keeps,
            ..Order::default()
        }
    }

    /// A shell that does nothing, or a process that ends at once.
    fn start(&self) -> Order {
        let words = self.shell.iter().flatten().cloned();
        let words: Vec<String> = match self.shell {
            Some(_) => words.chain(["-c".to_owned(), String::new()]).collect(),
            None => Vec::new(),
        };
        Order { input: Input::Null, output: Output::Null, ..self.of_words(words, false) }
    }
}

fn shell(args: &VersusArgs) -> Result<Option<Vec<String>>, Failure> {
    if args.around.no_shell {
        return Ok(None);
    }
    match args.around.shell.as_str() {
        "none" => Ok(None),
        "default" => Ok(Some(vec![SHELL.to_owned()])),
        shell => {
            let words =
                words::split(shell).map_err(|why| Failure::input(format!("--shell {shell}: {why}")))?;
            if words.is_empty() {
                Err(Failure::input("--shell is empty; use `none` for no shell"))
            } else {
                Ok(Some(words))
            }
        }
    }
}

fn accepts(args: &VersusArgs) -> Result<Accepts, Failure> {
    let wrong = |text: &str| {
        Failure::input(format!(
            "--ignore-failure={text}: it is neither `all-non-zero` nor a list of exit statuses, such as 1,2"
        ))
    };
    match args.around.ignore_failure.as_deref() {
        None => Ok(Accepts::Success),
        Some("all-non-zero") => Ok(Accepts::All),
        Some(list) => {
            let statuses = list.split(',').map(|status| status.trim().parse().map_err(|_| wrong(list)));
            Ok(Accepts::Statuses(statuses.collect::<Result<_, _>>()?))
        }
    }
}

/// A file by its path: a single word may be a mistyped `pipe`.
fn output_file(file: &str) -> Result<PathBuf, Failure> {
    let path = PathBuf::from(file);
    if file.contains('/') || path.is_file() {
        Ok(path)
    } else {
        Err(Failure::input(format!(
            "--output {file}: it is not null, pipe or inherit; for a file in this directory write ./{file}"
        )))
    }
}

fn once_or_each(option: &str, given: usize, commands: [usize; 2]) -> Result<(), Failure> {
    match given {
        0 | 1 => Ok(()),
        given if commands.contains(&given) => Ok(()),
        given => Err(Failure::input(format!(
            "{option} is given {given} times; give it once, or once for each of the {} commands",
            commands[1]
        ))),
    }
}

/// The number of a command among all, and among those that are not the reference.
struct Number {
    at: usize,
    own: usize,
    all: usize,
}

impl Number {
    /// The value given for all, or for this command.
    fn pick<'g>(&self, given: &'g [String]) -> Option<&'g String> {
        match given {
            [one] => Some(one),
            each if each.len() == self.all => each.get(self.at),
            each => each.get(self.own),
        }
    }
}
