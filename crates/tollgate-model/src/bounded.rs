//! Bounds that hold while a run document is read, so that a hostile document is refused before it fills memory.
//!
//! [`Bounded`] counts the bytes of the stream and the length of each text; the functions here count the entries of lists.
//! Counts that apply to the whole document are in a thread-local variable of its reader, since serde passes no context. Without
//! that reader only single lists are bounded.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::marker::PhantomData;
use std::rc::Rc;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Largest run document that is read, in bytes. A thorough run of every suite stays well below.
pub const MAX_BYTES: u64 = 256 << 20;

/// Bytes of the longest text in a document. The longest is an argument of a command: at most 128 KiB (`MAX_ARG_STRLEN` of
/// execve(2)), and up to six times as much in JSON.
pub const MAX_TEXT: usize = 1 << 20;

/// Most measurements of a run: many times the number of cases.
pub const MAX_MEASUREMENTS: usize = 4096;

/// Most facts of a run: ten times the number of known facts.
pub const MAX_FACTS: usize = 4096;

/// Most different calls, processes or files of an execution.
pub const MOST_ENTRIES: usize = 65_536;

/// Most parameters of a case.
pub const MAX_PARAMS: usize = 16;

/// Most samples of a run: with all of their digits they fill [`MAX_BYTES`].
pub const MAX_SAMPLES: u64 = 16 << 20;

const SHORT_SAMPLES: u64 = 1 << 20;

const LEAST_SAMPLE: u64 = 4;

/// Most processes of all measurements of a run together.
pub const MAX_PROCESSES: u64 = 1 << 20;

/// Most entries of all lists of texts of a run together: arguments of commands, notes, and facts that are lists.
pub const MAX_TEXTS: u64 = 1 << 18;

/// Reads all bytes of a source; `None` if it has more than `most`: one byte more than that is read to find out.
///
/// # Errors
/// Those of the source.
pub fn whole(source: impl Read, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    source.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    TooLarge,
    LongText,
    /// It has this schema, which is not [`SCHEMA`](crate::run::SCHEMA).
    Schema(u64),
}

#[derive(Debug, Default)]
pub(crate) struct Account {
    bytes: Cell<u64>,
    samples: Cell<u64>,
    processes: Cell<u64>,
    texts: Cell<u64>,
    fault: Cell<Option<Fault>>,
}

thread_local! {
    static OPEN: RefCell<Option<Rc<Account>>> = const { RefCell::new(None) };
}

impl Account {
    pub fn during<T>(self: &Rc<Self>, read: impl FnOnce() -> T) -> T {
        struct Reopen(Option<Rc<Account>>);
        impl Drop for Reopen {
            fn drop(&mut self) {
                OPEN.set(self.0.take());
            }
        }
        let _reopen = Reopen(OPEN.replace(Some(Rc::clone(self))));
        read()
    }

    pub fn fault(&self) -> Option<Fault> {
        self.fault.get()
    }

    fn take_sample(&self) -> Result<(), String> {
        let samples = self.samples.get() + 1;
        self.samples.set(samples);
        if samples > MAX_SAMPLES {
            return Err(format!("it has more than {MAX_SAMPLES} samples"));
        }
        if samples > SHORT_SAMPLES && samples * LEAST_SAMPLE > self.bytes.get() {
            return Err(format!(
                "it has more than {SHORT_SAMPLES} samples of less than {LEAST_SAMPLE} bytes; write them as 1.0, with a point"
            ));
        }
        Ok(())
    }
}

fn take(count: impl Fn(&Account) -> &Cell<u64>, most: u64, what: &str) -> Result<(), String> {
    let taken = OPEN.with_borrow(|account| {
        account.as_ref().map(|account| {
            let cell = count(account);
            cell.set(cell.get() + 1);
            cell.get()
        })
    });
    match taken {
        Some(taken) if taken > most => Err(format!("it has more than {most} {what}")),
        _ => Ok(()),
    }
}

/// A stream of JSON that fails after [`MAX_BYTES`] or in a text of more than [`MAX_TEXT`] bytes.
#[derive(Debug)]
pub struct Bounded<R> {
    source: R,
    most: u64,
    account: Rc<Account>,
    scanner: Scanner,
}

#[derive(Debug, Default)]
struct Scanner {
    in_text: bool,
    after_backslash: bool,
    bytes: usize,
}

impl Scanner {
    fn has_long_text(&mut self, bytes: &[u8]) -> bool {
        for &byte in bytes {
            if !self.in_text {
                self.in_text = byte == b'"';
                self.bytes = 0;
                continue;
            }
            match byte {
                _ if self.after_backslash => self.after_backslash = false,
                b'\\' => self.after_backslash = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            self.bytes += 1;
            if self.bytes > MAX_TEXT + 1 {
                return true;
            }
        }
        false
    }
}

pub(crate) fn has_long_text(document: &[u8]) -> bool {
    Scanner::default().has_long_text(document)
}

impl<R: Read> Bounded<R> {
    /// Wraps `source`.
    pub fn new(source: R) -> Self {
        Self::with(source, MAX_BYTES, Rc::default())
    }

    pub(crate) fn with(source: R, most: u64, account: Rc<Account>) -> Self {
        Self { source, most, account, scanner: Scanner::default() }
    }

    fn refuse(&self, fault: Fault) -> io::Error {
        self.account.fault.set(Some(fault));
        io::Error::other(match fault {
            Fault::LongText => format!("it has a text of more than {} KiB", MAX_TEXT >> 10),
            _ => format!("it is larger than {} MiB", self.most >> 20),
        })
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        let bytes = self.account.bytes.get() + read as u64;
        self.account.bytes.set(bytes);
        if bytes > self.most {
            return Err(self.refuse(Fault::TooLarge));
        }
        if self.scanner.has_long_text(&buffer[..read]) { Err(self.refuse(Fault::LongText)) } else { Ok(read) }
    }
}

pub(crate) fn stop(fault: Fault) {
    OPEN.with_borrow(|account| account.iter().for_each(|account| account.fault.set(Some(fault))));
}

struct List<T, F> {
    admit: F,
    what: &'static str,
    entries: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>, F: FnMut(usize) -> Result<(), String>> Visitor<'de> for List<T, F> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut entries: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element()? {
            (self.admit)(list.len() + 1).map_err(A::Error::custom)?;
            list.push(entry);
        }
        // The smallest capacity of a growing list is four entries, and many lists have one.
        if list.len() < 4 {
            list.shrink_to_fit();
        }
        Ok(list)
    }
}

pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    admit: impl FnMut(usize) -> Result<(), String>,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(List { admit, what: "a list", entries: PhantomData })
}

pub(crate) fn at_most(most: usize, what: &str) -> impl Fn(usize) -> Result<(), String> {
    move |number| if number > most { Err(format!("it has more than {most} {what}")) } else { Ok(()) }
}

/// The measurements of a run, or a part of each; for `deserialize_with` of serde.
///
/// # Errors
/// More than [`MAX_MEASUREMENTS`], or an entry of another form.
pub fn measurements<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    list(deserializer, at_most(MAX_MEASUREMENTS, "measurements"))
}

/// Calls, processes, files or other things of an execution.
pub fn entries<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    list(deserializer, at_most(MOST_ENTRIES, "entries of a kind"))
}

pub(crate) fn processes<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    list(deserializer, |_| take(|account| &account.processes, MAX_PROCESSES, "processes")).map(Some)
}

pub(crate) fn samples<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<f64>>, D::Error> {
    let account = OPEN.with_borrow(Clone::clone);
    list(deserializer, |_| account.as_ref().map_or(Ok(()), |account| account.take_sample())).map(Some)
}

fn text_list() -> List<String, impl FnMut(usize) -> Result<(), String>> {
    let admit = |_| take(|account| &account.texts, MAX_TEXTS, "texts in lists");
    List { admit, what: "a list of texts", entries: PhantomData }
}

/// A list of texts.
pub fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    deserializer.deserialize_seq(text_list())
}

pub(crate) fn texts_of<'de, A: SeqAccess<'de>>(entries: A) -> Result<Vec<String>, A::Error> {
    text_list().visit_seq(entries)
}

struct Map<T> {
    most: usize,
    what: &'static str,
    values: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Map<T> {
    type Value = BTreeMap<String, T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} by name", self.what)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        let admit = at_most(self.most, self.what);
        let mut number = 0;
        while let Some((name, value)) = entries.next_entry()? {
            number += 1;
            admit(number).map_err(A::Error::custom)?;
            map.insert(name, value);
        }
        Ok(map)
    }
}

pub(crate) fn facts<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    deserializer.deserialize_map(Map { most: MAX_FACTS, what: "facts", values: PhantomData })
}

pub(crate) fn params<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    deserializer.deserialize_map(Map { most: MAX_PARAMS, what: "parameters", values: PhantomData })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: impl Read, most: u64) -> (io::Result<usize>, Option<Fault>) {
        let account = Rc::<Account>::default();
        let mut bounded = Bounded::with(text, most, Rc::clone(&account));
        let read = io::copy(&mut bounded, &mut io::sink()).map(|bytes| bytes as usize);
        (read, account.fault())
    }

    #[test]
    fn a_stream_without_end_is_refused() {
        let (read, fault) = read(io::repeat(b' '), 1 << 20);
        assert!(read.is_err_and(|error| error.to_string().contains("larger than 1 MiB")));
        assert_eq!(fault, Some(Fault::TooLarge));
    }

    #[test]
    fn texts_are_measured_between_their_quotes() {
        let most = "x".repeat(MAX_TEXT);
        let whole = |text: &str| read(text.as_bytes(), MAX_BYTES).1;
        assert_eq!(whole(&format!("[\"{most}\",\"{most}\"]")), None);
        assert_eq!(whole(&format!("[\"{most}x\"]")), Some(Fault::LongText));
        assert_eq!(whole(&format!("\"{}\"", "\\\"".repeat(MAX_TEXT / 2))), None);
        assert_eq!(whole(&format!("\"{}x\"", "\\\"".repeat(MAX_TEXT / 2))), Some(Fault::LongText));
        assert_eq!(whole(&"1,".repeat(MAX_TEXT)), None);
    }
}
