//! Parses one line of a log of strace(1), independently of the lines before. Pure.
//!
//! The forms are those of strace 4 to 6 (its manual, and `printleader`, `tprints` and `syscall_exiting_trace` of its
//! source). A call is preceded by its thread (`-f`; with `-Y` and its name), a time stamp (`-r`, `-t`, `-tt`, `-ttt`), its
//! number (`-n`) and the instruction pointer (`-i`).

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::calls;

/// A thread id is at most `PID_MAX_LIMIT` of include/linux/threads.h; a larger number before a call is a time in seconds.
const MOST_THREADS: u64 = 1 << 22;
/// A number above `MAX_ERRNO` of include/linux/err.h is not an error.
const MOST_ERROR: i64 = 4095;
/// Linux's names of calls are shorter.
const LONGEST_NAME: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Line<'a> {
    pub thread: Option<u32>,
    /// The thread's name, with `-Y`.
    pub comm: Option<&'a str>,
    pub stamp: Stamp,
    pub body: Body<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    pub absolute: Option<Absolute>,
    /// Nanoseconds since the previous line.
    pub relative_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Absolute {
    pub ns: u64,
    /// Since midnight, not since 1970.
    pub is_of_day: bool,
    pub is_coarse: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Body<'a> {
    /// A call that returned on the same line.
    Call { name: &'a str, arguments: &'a str, returned: Returned },
    /// A call that has begun.
    Begun { name: &'a str, arguments: &'a str, end: Open },
    /// `<... read resumed>`, with the result if it has one.
    Resumed { name: &'a str, arguments: &'a str, returned: Option<Returned> },
    /// The rest of a call whose line was interrupted by other output.
    Continued { arguments: &'a str, returned: Option<Returned> },
    /// `--- SIGCHLD {…} ---`.
    Signal(&'a str),
    /// `+++ exited with 1 +++`.
    Exited(i32),
    /// `+++ killed by SIGKILL +++`.
    Killed(&'a str),
    /// `+++ superseded by execve in pid 12 +++`.
    Superseded(u32),
    /// `strace: Process 12 attached`.
    Attached(u32),
    /// `[ Process PID=12 runs in 32 bit mode. ]`.
    Mode { thread: u32, is_32_bit: bool },
    /// A line of strace without times, such as one of `-k`.
    Ignored,
    #[default]
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Open {
    /// `<unfinished ...>`: another line has the rest.
    Unfinished,
    /// With strace's message about a new thread.
    Attached(u32),
    /// With other output.
    Broken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Returned {
    /// Whether the call returned: `= ?` stands for a call that its thread did not survive.
    pub is_back: bool,
    /// The result; for an error the negative errno.
    pub result: i64,
    pub is_error: bool,
    /// `<0.000123>`, in nanoseconds.
    pub took_ns: Option<u64>,
}

impl<'a> Line<'a> {
    /// Parses a line without its newline. It may follow output of the command that did not end with a newline.
    pub fn parse(text: &'a str) -> Self {
        let line = Self::at_beginning(text);
        let is_known = match line.body {
            Body::Other => false,
            Body::Call { name, .. } | Body::Begun { name, .. } => line.is_marked() || is_call(name),
            _ => true,
        };
        if is_known { line } else { Self::behind_output(text).unwrap_or(line) }
    }

    /// `doneexit_group(0) = ?`, `done[pid 12] close(3) = 0`.
    fn behind_output(text: &'a str) -> Option<Self> {
        let marks = ["[pid ", "<... ", "+++ exited with ", "+++ killed by ", "--- SIG"];
        let marked = marks.iter().filter_map(|mark| text.find(mark)).chain(time_of_day(text)).min();
        if let Some(line) = marked.and_then(|at| text.get(at..)).map(Self::at_beginning) {
            let is_of_strace = !matches!(line.body, Body::Other | Body::Ignored | Body::Continued { .. });
            return is_of_strace.then_some(line);
        }
        let (before, _) = text.split_once('(')?;
        let from = before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        // The longest name of a call: not the `stat` of `lstat`, and not a part of `arm_fadvise64_64`.
        let is_begun = |&at: &usize| before.as_bytes().get(at.wrapping_sub(1)) != Some(&b'_');
        let from = (from..before.len()).filter(is_begun).find(|&at| before.get(at..).is_some_and(is_call))?;
        let line = Self::at_beginning(text.get(from..)?);
        // A call that the command itself prints has no time.
        let is_call = matches!(line.body, Body::Call { returned, .. } if returned.took_ns.is_some() || !returned.is_back);
        is_call.then_some(line)
    }

    /// Returns whether a thread or a time precedes it. Neither precedes a line of the command's own output.
    fn is_marked(&self) -> bool {
        self.thread.is_some() || self.stamp != Stamp::default()
    }

    fn at_beginning(text: &'a str) -> Self {
        let mut line = Self::default();
        let mut rest = text;
        if let Some((thread, comm, after)) = thread(rest) {
            (line.thread, line.comm, rest) = (Some(thread), comm, after);
        }
        (line.stamp, rest) = stamp(rest);
        rest = without_brackets(rest);
        line.body = body(rest, line.is_marked());
        line
    }
}

/// Parses `[pid 12] `, `12 `, or either with the thread's name; returns the rest as well.
fn thread(text: &str) -> Option<(u32, Option<&str>, &str)> {
    let (inner, is_bracketed) = match text.strip_prefix("[pid") {
        Some(rest) => (rest.trim_start(), true),
        None => (text, false),
    };
    // A quoted log is indented. Seconds (`--relative-timestamps=s`) are in a field of six.
    let unindented = inner.trim_start_matches(' ');
    let digits = unindented.bytes().take_while(u8::is_ascii_digit).count();
    let inner = if inner.len() - unindented.len() + digits == 6 { inner } else { unindented };
    let number: u64 = inner.get(..digits)?.parse().ok()?;
    let mut rest = inner.get(digits..)?;
    let mut comm = None;
    if let Some(named) = rest.strip_prefix('<') {
        let end = named.find(if is_bracketed { ">]" } else { "> " })?;
        comm = named.get(..end);
        rest = named.get(end + 1..)?;
    }
    rest = if is_bracketed { rest.strip_prefix(']')? } else { rest };
    // A time stamp in seconds has more digits.
    let is_thread = rest.starts_with(' ') && number > 0 && number <= MOST_THREADS;
    is_thread.then(|| (number as u32, comm, rest.trim_start_matches(' ')))
}

fn stamp(text: &str) -> (Stamp, &str) {
    let mut stamp = Stamp::default();
    let trimmed = text.trim_start_matches(' ');
    let Some((word, rest)) = trimmed.split_once(' ') else { return (stamp, text) };
    if let Some(time) = of_day(word) {
        stamp.absolute = Some(time);
    } else {
        match seconds(word) {
            // `-r` alone: a wall clock time would be a day long after 1970.
            Some(ns) if ns < MOST_THREADS * 1_000_000_000 => stamp.relative_ns = Some(ns),
            Some(ns) => {
                stamp.absolute = Some(Absolute { ns, is_of_day: false, is_coarse: !word.contains('.') });
            }
            None => return (stamp, text),
        }
    }
    let rest = rest.trim_start_matches(' ');
    let relative = rest.strip_prefix("(+").and_then(|rest| rest.split_once(')'));
    match relative.and_then(|(ns, rest)| Some((seconds(ns.trim())?, rest))) {
        Some((ns, rest)) => {
            stamp.relative_ns = Some(ns);
            (stamp, rest.trim_start_matches(' '))
        }
        None => (stamp, rest),
    }
}

fn of_day(word: &str) -> Option<Absolute> {
    let (hours, rest) = word.split_once(':')?;
    let (minutes, rest) = rest.split_once(':')?;
    let below =
        |text: &str, most: u64| text.parse::<u64>().ok().filter(|&number| text.len() == 2 && number < most);
    let (hours, minutes, ns) = (below(hours, 24)?, below(minutes, 60)?, seconds(rest)?);
    // A leap second is the 61st.
    let ns = (hours * 3600 + minutes * 60) * 1_000_000_000 + Some(ns).filter(|ns| *ns < 61_000_000_000)?;
    Some(Absolute { ns, is_of_day: true, is_coarse: !rest.contains('.') })
}

/// Finds the first time of day after other output.
fn time_of_day(text: &str) -> Option<usize> {
    let colon = text.match_indices(':').map(|(at, _)| at.checked_sub(2)).find(|&at| {
        let word = at.and_then(|at| text.get(at..)).and_then(|rest| rest.split(' ').next());
        word.is_some_and(|word| of_day(word).is_some())
    });
    colon.flatten()
}

/// Parses `12.000123`, with up to nine decimals, as nanoseconds.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let scale = 10_u64.pow(9 - fraction.len() as u32);
    let fraction = fraction.parse::<u64>().ok()? * scale;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// Skips `[ 257] ` and `[00007f487408fad7] `.
fn without_brackets(text: &str) -> &str {
    let mut rest = text;
    while let Some((inner, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        if inner.len() > 20 || !inner.bytes().all(|byte| byte.is_ascii_hexdigit() || b" ?x".contains(&byte)) {
            break;
        }
        rest = after.trim_start_matches(' ');
    }
    rest
}

fn body(text: &str, is_marked: bool) -> Body<'_> {
    let message = text.strip_prefix("strace: ").unwrap_or(text);
    if let Some(thread) = message.strip_prefix("Process ").and_then(|rest| rest.strip_suffix(" attached")) {
        return thread.parse().map_or(Body::Other, Body::Attached);
    }
    if text.starts_with("strace: ") || message.starts_with("Process ") || text.starts_with(" > ") {
        return Body::Ignored;
    }
    if let Some(rest) = text.strip_prefix("[ Process PID=") {
        return mode(rest).unwrap_or(Body::Ignored);
    }
    if let Some(rest) = text.strip_prefix("--- ") {
        return rest.trim_end().strip_suffix(" ---").map_or(Body::Other, signal);
    }
    if let Some(rest) = text.strip_prefix("+++ ") {
        return rest.trim_end().strip_suffix(" +++").map_or(Body::Other, end);
    }
    if let Some(rest) = text.strip_prefix("<... ") {
        let Some((name, rest)) = rest.split_once(" resumed>") else { return Body::Other };
        let (arguments, returned) = returned(rest).map_or((rest, None), |(it, back)| (it, Some(back)));
        return if is_name(name) { Body::Resumed { name, arguments, returned } } else { Body::Other };
    }
    // A line of a dump (`-e read=3`).
    if text.starts_with(" | ") {
        return Body::Ignored;
    }
    if let Some((name, rest)) = text.split_once('(').filter(|(name, _)| is_name(name)) {
        return call(name, rest, is_marked);
    }
    match returned(text) {
        Some((arguments, returned)) if !opens(arguments) => {
            Body::Continued { arguments, returned: Some(returned) }
        }
        _ if text.trim_start().starts_with([')', ',', '<']) => {
            Body::Continued { arguments: text, returned: None }
        }
        _ => Body::Other,
    }
}

/// Returns whether the parenthesis after these arguments closes one within: then they are not the rest of a call.
fn opens(arguments: &str) -> bool {
    let (mut depth, mut in_string, mut bytes) = (0_u32, false, arguments.bytes());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => drop(bytes.next()),
            b'(' if !in_string => depth += 1,
            b')' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth > 0
}

fn call<'a>(name: &'a str, rest: &'a str, is_marked: bool) -> Body<'a> {
    let trimmed = rest.trim_end();
    let is_open =
        ["<unfinished ...>", "<detached ...>"].into_iter().find_map(|mark| trimmed.strip_suffix(mark));
    if let Some(arguments) = is_open {
        return Body::Begun { name, arguments, end: Open::Unfinished };
    }
    if let Some((arguments, returned)) = returned(rest) {
        return Body::Call { name, arguments, returned };
    }
    // A message about a newly attached thread, or the command's own output, is in between.
    let message = trimmed.strip_suffix(" attached").and_then(|rest| rest.rsplit_once("Process "));
    match message.and_then(|(arguments, thread)| Some((arguments, thread.parse().ok()?))) {
        Some((arguments, thread)) => {
            let arguments = arguments.strip_suffix("strace: ").unwrap_or(arguments);
            Body::Begun { name, arguments, end: Open::Attached(thread) }
        }
        None if is_marked || is_call(name) => Body::Begun { name, arguments: rest, end: Open::Broken },
        None => Body::Other,
    }
}

fn is_call(name: &str) -> bool {
    static NAMES: LazyLock<BTreeSet<&str>> = LazyLock::new(|| calls::names().collect());
    NAMES.contains(name)
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    // Calls without a name are `syscall_0x1f4(…)`.
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.bytes().all(fits)
        && !name.as_bytes()[0].is_ascii_digit()
}

/// Splits `…) = -1 ENOENT (No such file or directory) <0.000009>` into the arguments and the result.
fn returned(text: &str) -> Option<(&str, Returned)> {
    let mut text = text.trim_end();
    let mut took_ns = None;
    if let Some((before, time)) = text.strip_suffix('>').and_then(|rest| rest.rsplit_once('<'))
        && let Some(ns) = seconds(time)
    {
        (text, took_ns) = (before.trim_end(), Some(ns));
    }
    // Paths and strings may contain an equals sign: the last one after a parenthesis counts.
    let mut end = text.len();
    loop {
        let at =
            text.get(..end)?.rfind(" = ").or_else(|| text.get(..end)?.ends_with(" =").then(|| end - 2))?;
        let before = text.get(..at)?.trim_end();
        if let Some(arguments) = before.strip_suffix(')') {
            let returned = result(text.get(at + 2..)?.trim_start())?;
            return Some((arguments, Returned { took_ns, ..returned }));
        }
        end = at;
    }
}

fn result(text: &str) -> Option<Returned> {
    let (value, rest) = text.split_once(' ').unwrap_or((text, ""));
    if value == "?" {
        // A call that a signal interrupted returned with a kernel-internal error.
        let is_error = rest.starts_with("ERESTART");
        return Some(Returned { is_back: is_error, result: 0, is_error, took_ns: None });
    }
    // With `-y` a descriptor is followed by its path.
    let value = value.split('<').next().unwrap_or(value);
    let result = match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?.cast_signed(),
        None => value.parse::<i64>().ok().or_else(|| value.parse::<u64>().ok().map(u64::cast_signed))?,
    };
    let error = if result == -1 { error(rest) } else { None };
    Some(Returned {
        is_back: true,
        result: error.map_or(result, |number| -number),
        is_error: error.is_some(),
        took_ns: None,
    })
}

/// Returns the errno; 1 if it is unknown. An error without a name is `(errno 524)`; before strace 4.26 it is
/// `524 (Unknown error 524)`, `ERRNO_524 (Unknown error 524)` or `E??? (errno 524)`.
fn error(text: &str) -> Option<i64> {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    let number = |digits: &str| digits.parse().ok().filter(|number| (1..=MOST_ERROR).contains(number));
    match first {
        "(errno" => number(rest.split(')').next()?),
        "E???" => {
            Some(rest.strip_prefix("(errno ").and_then(|rest| number(rest.split(')').next()?)).unwrap_or(1))
        }
        name if name.starts_with('E') => {
            let known = ERRORS.split(' ').position(|error| error == name).map(|at| 1 + at as i64);
            Some(known.or_else(|| number(name.strip_prefix("ERRNO_")?)).unwrap_or(1))
        }
        digits => number(digits).filter(|_| rest.starts_with('(')),
    }
}

/// Parses the text between `--- ` and ` ---`.
fn signal(text: &str) -> Body<'_> {
    let name = text.split(' ').next().unwrap_or(text);
    match name.starts_with("SIG") {
        true => Body::Signal(name),
        false if text.starts_with("stopped by ") => Body::Ignored,
        false => Body::Other,
    }
}

/// Parses the text between `+++ ` and ` +++`.
fn end(text: &str) -> Body<'_> {
    let known = if let Some(status) = text.strip_prefix("exited with ") {
        status.parse().ok().map(Body::Exited)
    } else if let Some(signal) = text.strip_prefix("killed by ") {
        signal.split(' ').next().map(Body::Killed)
    } else {
        let by = text.strip_prefix("superseded by execve in pid ");
        by.and_then(|by| by.parse().ok()).map(Body::Superseded)
    };
    known.unwrap_or(Body::Ignored)
}

fn mode(text: &str) -> Option<Body<'_>> {
    let (thread, rest) = text.split_once(" runs in ")?;
    Some(Body::Mode { thread: thread.parse().ok()?, is_32_bit: rest.starts_with("32 bit mode") })
}

/// The errors of x86-64 and arm64 from 1 (asm-generic/errno-base.h and errno.h), by strace's names.
const ERRORS: &str = "EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT ENOTBLK EBUSY EEXIST \
    EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK \
    ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP - ENOMSG EIDRM ECHRNG EL2NSYNC EL3HLT EL3RST ELNRNG EUNATCH ENOCSI EL2HLT EBADE EBADR \
    EXFULL ENOANO EBADRQC EBADSLT - EBFONT ENOSTR ENODATA ETIME ENOSR ENONET ENOPKG EREMOTE ENOLINK EADV ESRMNT ECOMM EPROTO EMULTIHOP \
    EDOTDOT EBADMSG EOVERFLOW ENOTUNIQ EBADFD EREMCHG ELIBACC ELIBBAD ELIBSCN ELIBMAX ELIBEXEC EILSEQ ERESTART ESTRPIPE EUSERS ENOTSOCK \
    EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE \
    EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN ESHUTDOWN ETOOMANYREFS ETIMEDOUT \
    ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS ESTALE EUCLEAN ENOTNAM ENAVAIL EISNAM EREMOTEIO EDQUOT ENOMEDIUM EMEDIUMTYPE \
    ECANCELED ENOKEY EKEYEXPIRED EKEYREVOKED EKEYREJECTED EOWNERDEAD ENOTRECOVERABLE ERFKILL EHWPOISON";

#[cfg(test)]
mod tests;
