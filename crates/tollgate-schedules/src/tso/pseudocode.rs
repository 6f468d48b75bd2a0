//! Algorithms as papers print them, in the style of Algol, Pascal and C: `<y := i>; if <x ≠ i> then … fi`,
//! `<y=i>; if (<x!=i>) { … }`.
//!
//! Each access is a step, like Lamport's angle brackets ("A fast mutual exclusion algorithm", 1987). A statement becomes
//! the equivalent sentence of `text.rs`, and an `if` becomes a jump around its body.

use super::text_error::TextError;
use super::x86;

/// The most nested statements.
const DEEPEST: usize = 16;

/// Returns whether a text is pseudocode. No other accepted form has such an assignment, or one in Lamport's brackets,
/// except that `MOV [x]←1` is an instruction.
pub(crate) fn is_pseudocode(text: &str) -> bool {
    let is_instruction = |line: &str| {
        let code = line.rsplit(':').next().unwrap_or(line);
        code.split_whitespace().next().is_some_and(x86::is_mnemonic)
    };
    let is_in_brackets = |statement: &str| {
        let statement = statement.trim();
        let has_brackets = statement.starts_with(['<', '⟨', '〈']) && statement.ends_with(['>', '⟩', '〉']);
        has_brackets && statement.contains('=')
    };
    text.lines().any(|line| {
        [":=", "≔"].iter().any(|sign| line.contains(sign))
            || line.contains('←') && !is_instruction(line)
            || line.split([';', ':']).any(is_in_brackets)
    })
}

/// Returns the sentences for a line of `text.rs`; each comparison in a condition with *or*, *and* and *not* is a step.
/// `labels` counts the labels made.
///
/// # Errors
/// A condition is invalid; with a correct one.
pub(super) fn expanded(number: usize, line: &str, labels: &mut usize) -> Result<Vec<String>, TextError> {
    let (before, sentence) = line.rsplit_once(':').map_or(("", line), |(labels, rest)| (labels, rest.trim()));
    let signs = [" or ", " and ", "||", "&&", "∨", "∧", "≠", "¬", "not "];
    let is_condition = ["if ", "wait "].iter().any(|word| sentence.starts_with(word));
    if !is_condition || !signs.iter().any(|sign| sentence.contains(sign)) {
        return Ok(vec![line.to_owned()]);
    }
    let tokens: Vec<Token> = tokens_of(sentence).map(|text| Token { line: number, text }).collect();
    let mut reader = Reader { tokens: &tokens, at: 0, is_closed: false, labels: *labels, sentences: vec![] };
    reader.statements(&[], 0)?;
    *labels = reader.labels;
    let before = (!before.is_empty()).then(|| format!("{before}:"));
    Ok(before.into_iter().chain(reader.sentences.into_iter().map(|(_, sentence)| sentence)).collect())
}

/// Returns the sentences of a text, each with its line. The other lines are directives.
///
/// # Errors
/// The first invalid statement, and a correct one.
pub(super) fn sentences(text: &str) -> Result<Vec<(usize, String)>, TextError> {
    let (tokens, directives) = tokens(text);
    let is_closed = tokens.iter().any(|token| matches!(token.text.as_str(), "fi" | "endif"));
    let mut reader = Reader { tokens: &tokens, at: 0, is_closed, labels: 0, sentences: directives };
    reader.statements(&[], 0)?;
    Ok(reader.sentences)
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    line: usize,
    text: String,
}

/// Returns the tokens of a text, and its directives unchanged.
fn tokens(text: &str) -> (Vec<Token>, Vec<(usize, String)>) {
    let (mut tokens, mut directives) = (Vec::new(), Vec::new());
    let mut in_comment = false;
    for (line, written) in (1..).zip(text.lines()) {
        if written.trim_start().starts_with('.') {
            directives.push((line, written.trim().to_owned()));
            continue;
        }
        let code = without_comments(written, &mut in_comment);
        let forms = [("⟨", "<"), ("⟩", ">"), ("〈", "<"), ("〉", ">"), ("$", " ")];
        let code = forms.iter().fold(code, |code, (bracket, plain)| code.replace(bracket, plain));
        let words = tokens_of(&code).map(|text| Token { line, text: text.to_ascii_lowercase() });
        tokens.extend(words.collect::<Vec<_>>());
    }
    (tokens, directives)
}

/// Returns the tokens of a line, with one spelling for each operator.
fn tokens_of(line: &str) -> impl Iterator<Item = String> {
    let signs = [
        ("≠", "!="),
        ("≔", ":="),
        ("←", ":="),
        ("¬", " not "),
        ("∨", " or "),
        ("||", " or "),
        ("∧", " and "),
        ("&&", " and "),
        ("{", " begin "),
        ("}", " end "),
    ];
    let mut code = signs.iter().fold(line.to_owned(), |code, (sign, word)| code.replace(sign, word));
    std::iter::from_fn(move || {
        let rest = code.trim_start();
        let length = token(rest);
        let text = rest.get(..length).filter(|text| !text.is_empty())?.to_owned();
        code = rest[length..].to_owned();
        Some(if text == "!" { "not".to_owned() } else { text })
    })
}

/// Returns the length of the first token in bytes.
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

/// Removes `(* … *)`, and comments after `//` and `#`.
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

#[derive(Clone)]
struct Comparison {
    place: String,
    equal: bool,
    value: String,
}

enum Condition {
    Is(Comparison),
    Both(Box<Condition>, Box<Condition>),
    Either(Box<Condition>, Box<Condition>),
}

impl Condition {
    fn negated(self) -> Self {
        let negated = |of: Box<Self>| Box::new(of.negated());
        match self {
            Self::Is(asked) => Self::Is(Comparison { equal: !asked.equal, ..asked }),
            Self::Both(one, other) => Self::Either(negated(one), negated(other)),
            Self::Either(one, other) => Self::Both(negated(one), negated(other)),
        }
    }
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    /// Whether `fi` ends an `if`. Otherwise it guards one statement, or those between `begin` and `end`.
    is_closed: bool,
    labels: usize,
    sentences: Vec<(usize, String)>,
}

impl Reader<'_> {
    /// Reads statements up to one of these words, or to the end.
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
        let is_in_brackets = self
            .at
            .checked_sub(1)
            .and_then(|at| self.tokens.get(at))
            .is_some_and(|before| before.text == "<");
        let first = self.next();
        match first.as_str() {
            // Separators, and Lamport's brackets around a step.
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
            "skip" => {}
            "mfence" => self.say(first),
            "await" | "wait" => {
                self.take("until");
                match self.condition(0)? {
                    Condition::Is(Comparison { place, equal, value }) => {
                        self.say(format!("wait until {place} {} {value}", sign(equal)));
                    }
                    asked => {
                        let again = self.named("await");
                        self.jump(asked.negated(), &again);
                    }
                }
            }
            "while" => self.repeated(depth)?,
            "for" => self.wait_for_all()?,
            "if" => self.guarded(depth)?,
            _ if self.peek() == Some(":") => {
                self.take(":");
                self.say(format!("{first}:"));
            }
            "begin" => self.block(depth)?,
            // In Lamport's brackets `=` is an assignment too.
            _ if self.peek() == Some(":=") || self.peek() == Some("=") && is_in_brackets => {
                self.at += 1;
                let value = value(&self.next());
                self.say(format!("{first} = {value}"));
            }
            _ => return Err(self.wrong(&format!("`{first}` does not begin a statement"))),
        }
        Ok(())
    }

    /// `if x ≠ i then … fi` becomes a jump past it if the condition is false.
    fn guarded(&mut self, depth: usize) -> Result<(), TextError> {
        if depth == DEEPEST {
            return Err(self.wrong(&format!("`if` is nested more than {DEEPEST} deep")));
        }
        let asked = self.condition(0)?;
        if self.peek() == Some("goto") {
            self.at += 1;
            let label = self.next();
            self.jump(asked, &label);
            return Ok(());
        }
        let behind = self.label("fi");
        self.jump(asked.negated(), &behind);
        self.take("then");
        if self.is_closed {
            self.take("begin");
            self.statements(&["fi", "endif"], depth + 1)?;
            self.at += 1;
        } else {
            self.skip_brackets();
            self.statement(depth + 1)?;
        }
        self.say(format!("{behind}:"));
        Ok(())
    }

    /// Reads `… end` after its `begin`.
    fn block(&mut self, depth: usize) -> Result<(), TextError> {
        if depth == DEEPEST {
            return Err(self.wrong(&format!("`begin` is nested more than {DEEPEST} deep")));
        }
        self.statements(&["end"], depth + 1)?;
        self.at += 1;
        Ok(())
    }

    /// `while x = 1 do … od` becomes a jump past it if the condition is false, and one back at its end.
    fn repeated(&mut self, depth: usize) -> Result<(), TextError> {
        if depth == DEEPEST {
            return Err(self.wrong(&format!("`while` is nested more than {DEEPEST} deep")));
        }
        let again = self.named("while");
        let behind = self.label("od");
        let asked = self.condition(0)?;
        self.jump(asked.negated(), &behind);
        if self.peek() == Some("do") && self.tokens.iter().any(|token| token.text == "od") {
            self.at += 1;
            self.statements(&["od"], depth + 1)?;
            self.at += 1;
        } else {
            self.take("do");
            self.statement(depth + 1)?;
        }
        self.say(format!("goto {again}"));
        self.say(format!("{behind}:"));
        Ok(())
    }

    /// `for j := 1 to N do await ¬b[j] od`, `for (j = 1; j <= N; j++) { await <!b[j]>; }`.
    fn wait_for_all(&mut self) -> Result<(), TextError> {
        self.skip_brackets();
        let head: Vec<String> = (0..6).map(|_| self.next()).collect();
        let is_begun = head[0] == "j" && matches!(head[1].as_str(), ":=" | "=");
        let is_one = is_begun && head[3] == "to" && head[5] == "do";
        let is_of_c = is_begun && head[3] == ";";
        while is_of_c && !matches!(self.next().as_str(), ")" | "") {}
        let is_block = self.peek() == Some("begin");
        self.take("begin");
        self.skip_brackets();
        self.take("await");
        let asked = self.condition(0)?;
        let is_one = is_one || is_of_c;
        match asked {
            Condition::Is(Comparison { place, equal: true, value })
                if is_one && place.ends_with("[j]") && value == "0" =>
            {
                self.say(format!("wait until {place} == 0 for each j"));
            }
            _ => return Err(self.wrong("the only known loop is `for j := 1 to N do await ¬b[j] od`")),
        }
        while is_block && self.peek() == Some(";") {
            self.at += 1;
        }
        self.take(if is_block { "end" } else { "od" });
        Ok(())
    }

    /// Jumps if a condition is true. Each comparison is a step, and is skipped once the earlier ones decide the result.
    fn jump(&mut self, asked: Condition, to: &str) {
        match asked {
            Condition::Is(Comparison { place, equal, value }) => {
                self.say(format!("if {place} {} {value} goto {to}", sign(equal)));
            }
            Condition::Either(one, other) => {
                self.jump(*one, to);
                self.jump(*other, to);
            }
            Condition::Both(one, other) => {
                let behind = self.label("and");
                self.jump(one.negated(), &behind);
                self.jump(*other, to);
                self.say(format!("{behind}:"));
            }
        }
    }

    /// Makes a new label.
    fn label(&mut self, word: &str) -> String {
        self.labels += 1;
        format!("{word}{}", self.labels)
    }

    /// Places a new label before the next statement.
    fn named(&mut self, word: &str) -> String {
        let label = self.label(word);
        self.say(format!("{label}:"));
        label
    }

    /// `x = 1 or y = 0 and ¬b[j]`: *and* binds more tightly.
    fn condition(&mut self, depth: usize) -> Result<Condition, TextError> {
        let mut asked = self.both(depth)?;
        while self.peek() == Some("or") {
            self.at += 1;
            asked = Condition::Either(Box::new(asked), Box::new(self.both(depth)?));
        }
        Ok(asked)
    }

    fn both(&mut self, depth: usize) -> Result<Condition, TextError> {
        let mut asked = self.one(depth)?;
        while self.peek() == Some("and") {
            self.at += 1;
            asked = Condition::Both(Box::new(asked), Box::new(self.one(depth)?));
        }
        Ok(asked)
    }

    fn one(&mut self, depth: usize) -> Result<Condition, TextError> {
        if depth == DEEPEST {
            return Err(self.wrong(&format!("a condition is nested more than {DEEPEST} deep")));
        }
        let first = self.next();
        match first.as_str() {
            "not" => return Ok(self.one(depth + 1)?.negated()),
            "<" | "(" => {
                let asked = self.condition(depth + 1)?;
                if matches!(self.peek(), Some(">" | ")")) {
                    self.at += 1;
                }
                return Ok(asked);
            }
            place
                if place.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && !["or", "and", "then", "do"].contains(&place) => {}
            _ => return Err(self.wrong(&format!("`{first}` does not begin a condition"))),
        }
        let asked = match self.peek() {
            Some("=" | "==") => Some(true),
            Some("!=" | "<>") => Some(false),
            _ => None,
        };
        let (equal, value) = match asked {
            Some(equal) => {
                self.at += 1;
                (equal, value(&self.next()))
            }
            None => (false, "0".to_owned()),
        };
        Ok(Condition::Is(Comparison { place: first, equal, value }))
    }

    fn skip_brackets(&mut self) {
        while matches!(self.peek(), Some("<" | "(")) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(|token| token.text.as_str())
    }

    /// Takes the next token; empty at the end.
    fn next(&mut self) -> String {
        let token = self.peek().unwrap_or_default().to_owned();
        self.at += 1;
        token
    }

    /// Skips a token, if it is the next one.
    fn take(&mut self, text: &str) {
        self.at += usize::from(self.peek() == Some(text));
    }

    fn say(&mut self, sentence: String) {
        let line = self.line();
        self.sentences.push((line, sentence));
    }

    /// Returns the line of the last token taken.
    fn line(&self) -> usize {
        let last = self.at.min(self.tokens.len()).saturating_sub(1);
        self.tokens.get(last).map_or(1, |token| token.line)
    }

    fn wrong(&self, what: &str) -> TextError {
        let right = "write `x := 1`, `if x = 1 then … fi`, `await x = 0 or y ≠ i`, `while x = 1 do skip od`, `for j := 1 to N do await ¬b[j] od`, `goto label` or \
                     `critical section`";
        TextError { line: self.line(), problem: format!("{what}; {right}") }
    }
}

fn sign(equal: bool) -> &'static str {
    if equal { "==" } else { "!=" }
}

fn value(text: &str) -> String {
    match text {
        "true" => "1".to_owned(),
        "false" => "0".to_owned(),
        other => other.to_owned(),
    }
}
