//! The chosen programs: built-in ones by name, and the user's own in files.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use tollgate_model::bounded;
use tollgate_model::text::shorten;
use tollgate_schedules::{COMPARISONS, Subject, methods};
use tollgate_suites::selection::near;

use crate::failure::{Failure, plainly};

const MAX_BYTES: u64 = 1 << 20;

pub enum Chosen {
    Known(&'static dyn Subject),
    Own(Box<dyn Subject>),
}

impl Chosen {
    pub fn get(&self) -> &dyn Subject {
        match self {
            Self::Known(subject) => *subject,
            Self::Own(subject) => subject.as_ref(),
        }
    }
}

/// The programs with these names or in these files; all built-in ones if none is named.
pub fn chosen(meant: &[String]) -> Result<Vec<Chosen>, Failure> {
    match meant {
        [] => Ok(tollgate_schedules::subjects().map(Chosen::Known).collect()),
        _ => {
            let each: Vec<Vec<Chosen>> = meant.iter().map(|meant| choose(meant)).collect::<Result<_, _>>()?;
            Ok(each.into_iter().flatten().collect())
        }
    }
}

fn choose(meant: &str) -> Result<Vec<Chosen>, Failure> {
    if COMPARISONS.contains(&meant) {
        return Ok(methods().map(|(_, subject)| Chosen::Known(subject)).collect());
    }
    Ok(vec![choose_one(meant)?])
}

fn choose_one(meant: &str) -> Result<Chosen, Failure> {
    if let Some(subject) = tollgate_schedules::subjects().find(|subject| subject.name() == meant) {
        return Ok(Chosen::Known(subject));
    }
    let from = |name: &str, read: Result<String, String>| {
        let own = read.and_then(|text| tollgate_schedules::from_text(name, &text).map_err(in_brief));
        own.map(Chosen::Own).map_err(|why| Failure::input(format!("{meant}: {why}")))
    };
    if meant == "-" {
        return from("standard input", text_of(io::stdin().lock()));
    }
    let path = Path::new(meant);
    if !meant.contains(['/', '.']) && !path.exists() {
        return Err(Failure::input(unknown(meant)));
    }
    let name = path.file_name().map_or(meant.into(), |name| name.to_string_lossy());
    from(&name, read(path))
}

fn in_brief(error: impl ToString) -> String {
    shorten(&error.to_string()).into_owned()
}

fn unknown(meant: &str) -> String {
    let names = tollgate_schedules::subjects().map(|subject| subject.name()).chain(COMPARISONS);
    let tip = match near(meant, names).as_slice() {
        [] => "`tollgate schedules` lists the programs".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    format!("{meant:?} is neither a program nor a file; {tip}")
}

fn read(path: &Path) -> Result<String, String> {
    if path.is_dir() {
        return Err("is a directory; a program is a file".to_owned());
    }
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "does not exist".to_owned(),
        _ => cannot(&error),
    })?;
    text_of(file)
}

fn cannot(error: &io::Error) -> String {
    format!("cannot be read: {}", plainly(error))
}

fn text_of(input: impl Read) -> Result<String, String> {
    let bytes = bounded::whole(input, MAX_BYTES)
        .map_err(|error| cannot(&error))?
        .ok_or("is larger than 1 MiB, the limit for a program")?;
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..good].iter().filter(|&&byte| byte == b'\n').count() + 1;
        format!("line {line}: it is not UTF-8 text")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_near() {
        assert!(unknown("lamprt").contains("did you mean lamport"), "{}", unknown("lamprt"));
        assert!(unknown("no-x").contains("lamport-no-x-fence"), "{}", unknown("no-x"));
        let far = unknown("entirely different");
        assert!(far.contains("`tollgate schedules` lists"), "{far}");
    }

    #[test]
    fn every_program_is_found_by_its_name_and_no_name_looks_like_a_file() {
        let mut names: Vec<&str> = tollgate_schedules::subjects().map(|subject| subject.name()).collect();
        for name in &names {
            assert!(!name.contains(['/', '.']), "{name}");
            assert!(matches!(choose_one(name), Ok(Chosen::Known(_))), "{name}");
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "a name twice");
    }
}
