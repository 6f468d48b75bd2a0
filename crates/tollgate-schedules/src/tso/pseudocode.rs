//! Algorithms as papers print them, in the manner of Algol and Pascal: `<y := i>; if <x ≠ i> then … fi`.
//!
//! Each access is a step, as Lamport's angle brackets have it ("A fast mutual exclusion algorithm", 1987). A statement becomes the
//! sentence of `text.rs` that says the same, and an `if` a jump around what it guards.

use super::text_error::TextError;

/// Statements within each other.
const DEEPEST: usize = 16;

/// Is a text written so? Nothing else that is read here has such an assignment.
pub(crate) fn is_pseudocode(text: &str) -> bool {
    [":=", "≔", "←"].iter().any(|sign| text.contains(sign))
}

/// The sentences of a text, each with its line. Lines without one are those of a directive.
///
/// # Errors
/// The first statement that is none, and what would be one.
pub(super) fn sentences(text: &str) -> Result<Vec<(usize, String)>, TextError> {
    let (tokens, directives) = tokens(text);
    let is_closed = tokens.iter().any(|token| matches!(token.text.as_str(), "fi" | "endif"));
    let mut reader = Reader { tokens: &tokens, at: 0, is_closed, ifs: 0, sentences: directives };
    reader.statements(&[], 0)?;
    Ok(reader.sentences)
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    line: usize,
    text: String,
}

/// The tokens of a text, and its directives as they stand.
fn tokens(text: &str) -> (Vec<Token>, Vec<(usize, String)>) {
    let (mut tokens, mut directives) = (Vec::new(), Vec::new());
    let mut in_comment = false;
    for (line, written) in (1..).zip(text.lines()) {
        if written.trim_start().starts_with('.') {
            directives.push((line, written.trim().to_owned()));
            continue;
        }
        let code = without_comments(written, &mut in_comment);
        let code = ["⟨", "⟩", "〈", "〉", "$"].iter().fold(code, |code, bracket| code.replace(bracket, " "));
        let code = code.replace('≠', "!=").replace(['≔', '←'], ":=").replace('¬', " not ");
        let mut rest = code.trim();
        while !rest.is_empty() {
            let length = token(rest);
            let text = rest[..length].to_ascii_lowercase();
            tokens.push(Token { line, text });
            rest = rest[length..].trim_start();
        }
    }
    (tokens, directives)
}

/// How many bytes the first token has.
fn token(text: &str) -> usize {
    if let Some(sign) = [":=", "!=", "<>", "=="].iter().find(|sign| text.starts_with(**sign)) {
        return sign.len();
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '[' | ']');
    match text.find(|c: char| !is_word(c)).unwrap_or(text.len()) {
        0 => text.chars().next().map_or(0, char::len_utf8),
        length => length,
    }
}

/// A line without `(* … *)`, and without what is behind `//` and `#`.
fn without_comments(line: &str, in_comment: &mut bool) -> String {
    let (mut code, mut rest) = (String::new(), line);
    loop {
        let (mark, length) = if *in_comment { ("*)", 2) } else { ("(*", 2) };
        let Some(at) = rest.find(mark) else { break };
        if !*in_comment {
            code.push_str(&rest[..at]);
        }
        *in_comment = !*in_comment;
        rest = &rest[at + length..];
    }
    if !*in_comment {
        code.push_str(rest);
    }
    let end = ["//", "#"].iter().filter_map(|mark| code.find(mark)).min().unwrap_or(code.len());
    code.truncate(end);
    code
}

/// `y = 0`, `x ≠ i`, `b[j]` or `¬b[j]`.
struct Condition {
    place: String,
    equal: bool,
    value: String,
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    /// Does `fi` end what an `if` guards? Else it guards one statement, or those between `begin` and `end`.
    is_closed: bool,
    ifs: usize,
    sentences: Vec<(usize, String)>,
}

impl Reader<'_> {
    /// Statements up to one of these words, or to the end.
    fn statements(&mut self, ends: &[&str], depth: usize) -> Result<(), TextError> {
        while let Some(token) = self.peek() {
            if ends.contains(&token) {
                return Ok(());
            }
            self.statement(depth)?;
        }
        match ends {
            [] => Ok(()),
            [end, ..] => Err(self.wrong(&format!("`{end}` is missing"))),
        }
    }

    fn statement(&mut self, depth: usize) -> Result<(), TextError> {
        let first = self.next();
        match first.as_str() {
            // Signs between statements, and Lamport's brackets around a step.
            ";" | "<" | ">" => {}
            "critical" => {
                self.take("section");
                self.say("critical section".to_owned());
            }
            "noncritical" => self.take("section"),
            "goto" => {
                let label = self.next();
                self.say(format!("goto {label}"));
            }
            "await" => {
                let Condition { place, equal, value } = self.condition();
                self.say(format!("wait until {place} {} {value}", sign(equal)));
            }
            "for" => self.wait_for_all()?,
            "if" => self.guarded(depth)?,
            _ if self.peek() == Some(":") => {
                self.take(":");
                self.say(format!("{first}:"));
            }
            _ if self.peek() == Some(":=") => {
                self.take(":=");
                let value = value(&self.next());
                self.say(format!("{first} = {value}"));
            }
            _ => return Err(self.wrong(&format!("`{first}` begins no statement"))),
        }
        Ok(())
    }

    /// `if x ≠ i then … fi`: a jump behind it where the condition is not met.
    fn guarded(&mut self, depth: usize) -> Result<(), TextError> {
        if depth == DEEPEST {
            return Err(self.wrong(&format!("more than {DEEPEST} `if` are within each other")));
        }
        let Condition { place, equal, value } = self.condition();
        self.ifs += 1;
        let behind = format!("fi{}", self.ifs);
        self.say(format!("if {place} {} {value} goto {behind}", sign(!equal)));
        self.take("then");
        let ends: &[&str] = if self.is_closed { &["fi", "endif"] } else { &["end"] };
        if self.is_closed || self.peek() == Some("begin") {
            self.take("begin");
            self.statements(ends, depth + 1)?;
            self.at += 1;
        } else {
            self.skip_brackets();
            self.statement(depth + 1)?;
        }
        self.say(format!("{behind}:"));
        Ok(())
    }

    /// `for j := 1 to N do await ¬b[j] od`.
    fn wait_for_all(&mut self) -> Result<(), TextError> {
        let head: Vec<String> = (0..6).map(|_| self.next()).collect();
        self.skip_brackets();
        self.take("await");
        let Condition { place, equal, value } = self.condition();
        let is_one = head[0] == "j" && head[1] == ":=" && head[3] == "to" && head[5] == "do";
        if !is_one || !place.ends_with("[j]") || (equal, value.as_str()) != (true, "0") {
            return Err(self.wrong("of loops `for j := 1 to N do await ¬b[j] od` is read"));
        }
        self.say(format!("wait until {place} == 0 for each j"));
        self.take("od");
        Ok(())
    }

    fn condition(&mut self) -> Condition {
        self.skip_brackets();
        let not = self.peek() == Some("not");
        self.take("not");
        self.take("(");
        let place = self.next();
        let asked = match self.peek() {
            Some("=" | "==") => Some(true),
            Some("!=" | "<>") => Some(false),
            _ => None,
        };
        let (equal, value) = match asked {
            Some(equal) => {
                self.at += 1;
                (equal != not, value(&self.next()))
            }
            None => (not, "0".to_owned()),
        };
        self.close();
        Condition { place, equal, value }
    }

    fn skip_brackets(&mut self) {
        while matches!(self.peek(), Some("<" | "(")) {
            self.at += 1;
        }
    }

    fn close(&mut self) {
        while matches!(self.peek(), Some(">" | ")")) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(|token| token.text.as_str())
    }

    /// The next token, which is gone then; nothing at the end.
    fn next(&mut self) -> String {
        let token = self.peek().unwrap_or_default().to_owned();
        self.at += 1;
        token
    }

    /// Goes on behind a token, if it is the next one.
    fn take(&mut self, text: &str) {
        self.at += usize::from(self.peek() == Some(text));
    }

    fn say(&mut self, sentence: String) {
        let line = self.line();
        self.sentences.push((line, sentence));
    }

    /// The line of the token that was taken last.
    fn line(&self) -> usize {
        let last = self.at.min(self.tokens.len()).saturating_sub(1);
        self.tokens.get(last).map_or(1, |token| token.line)
    }

    fn wrong(&self, what: &str) -> TextError {
        let right = "write `x := 1`, `if x = 1 then … fi`, `await x = 0`, `for j := 1 to N do await ¬b[j] od`, `goto label` or \
                     `critical section`";
        TextError { line: self.line(), problem: format!("{what}; {right}") }
    }
}

fn sign(equal: bool) -> &'static str {
    if equal { "==" } else { "!=" }
}

/// `true` is 1, `false` is 0.
fn value(text: &str) -> String {
    match text {
        "true" => "1".to_owned(),
        "false" => "0".to_owned(),
        other => other.to_owned(),
    }
}
