//! Parses the condition of a litmus test: `0:EAX=0 /\ (x=1 \/ ~y=2)`.

use super::super::formula::{Formula, Term};
use super::super::x86::byte;

const MOST: usize = 100;
const DEEPEST: usize = 50;

pub(super) struct Reader<'a, F> {
    tokens: Vec<&'a str>,
    at: usize,
    depth: usize,
    comparisons: usize,
    term: F,
}

/// Parses a condition, with a function that resolves its terms.
///
/// # Errors
/// The error, and a correct form.
pub(super) fn formula(text: &str, term: impl FnMut(&str) -> Result<Term, String>) -> Result<Formula, String> {
    let mut reader = Reader { tokens: tokens(text), at: 0, depth: 0, comparisons: 0, term };
    let formula = reader.implication()?;
    match reader.peek() {
        None => Ok(formula),
        Some(more) => {
            Err(format!("`{more}` does not belong to the condition; join comparisons with /\\ or \\/"))
        }
    }
}

fn tokens(text: &str) -> Vec<&str> {
    const SIGNS: &[&str] = &["/\\", "\\/", "=>", "<>", "!=", "(", ")", "~", "="];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).map(|sign| sign.len());
        let ends = |rest: &str| {
            let end = |at: &usize| {
                let behind = &rest[*at..];
                behind.starts_with(char::is_whitespace) || SIGNS.iter().any(|sign| behind.starts_with(sign))
            };
            rest.char_indices().map(|(at, _)| at).skip(1).find(end).unwrap_or(rest.len())
        };
        let length = sign.unwrap_or_else(|| ends(rest));
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

impl<'a, F: FnMut(&str) -> Result<Term, String>> Reader<'a, F> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).copied()
    }

    fn takes(&mut self, token: &str) -> bool {
        let is = self.peek() == Some(token);
        self.at += usize::from(is);
        is
    }

    fn implication(&mut self) -> Result<Formula, String> {
        let premise = self.either()?;
        if !self.takes("=>") {
            return Ok(premise);
        }
        let then = self.deeper(Self::implication)?;
        Ok(Formula::Or(Box::new(Formula::Not(Box::new(premise))), Box::new(then)))
    }

    fn either(&mut self) -> Result<Formula, String> {
        let mut formula = self.both()?;
        while self.takes("\\/") {
            formula = Formula::Or(Box::new(formula), Box::new(self.both()?));
        }
        Ok(formula)
    }

    fn both(&mut self) -> Result<Formula, String> {
        let mut formula = self.one()?;
        while self.takes("/\\") {
            formula = Formula::And(Box::new(formula), Box::new(self.one()?));
        }
        Ok(formula)
    }

    fn deeper(&mut self, read: fn(&mut Self) -> Result<Formula, String>) -> Result<Formula, String> {
        if self.depth == DEEPEST {
            return Err(format!("the condition is nested more than {DEEPEST} deep"));
        }
        self.depth += 1;
        let formula = read(self);
        self.depth -= 1;
        formula
    }

    fn one(&mut self) -> Result<Formula, String> {
        let ended = || "the condition ends where a comparison such as 0:EAX=0 or x=1 would follow".to_owned();
        let token = self.peek().ok_or_else(ended)?;
        self.at += 1;
        match token {
            "(" => {
                let inner = self.deeper(Self::implication)?;
                if self.takes(")") { Ok(inner) } else { Err("the condition has `(` without `)`".to_owned()) }
            }
            "~" | "not" => Ok(Formula::Not(Box::new(self.deeper(Self::one)?))),
            "true" => Ok(Formula::True),
            "false" => Ok(Formula::Not(Box::new(Formula::True))),
            _ => self.comparison(token),
        }
    }

    fn comparison(&mut self, name: &str) -> Result<Formula, String> {
        self.comparisons += 1;
        if self.comparisons > MOST {
            return Err(format!("the condition has more than {MOST} comparisons"));
        }
        let is_not = match self.peek() {
            Some("=") => false,
            Some("<>" | "!=") => true,
            _ => return Err(format!("`{name}` is not a comparison; write 0:EAX=0 or x=1")),
        };
        self.at += 1;
        let value = self.peek().ok_or_else(|| format!("a number is missing after `{name}=`"))?;
        self.at += 1;
        let formula = Formula::Is((self.term)(name)?, byte(value)?);
        Ok(if is_not { Formula::Not(Box::new(formula)) } else { formula })
    }
}
