//! The pieces of evidence, and how JSON and the table show each.

use serde::Serialize;
use tollgate_model::Unknown;

use crate::kernel_base::{Boot, DirectMap, Evidence, Known, Options, Physical, Symbol, Symbols};

pub(crate) struct Piece<'a> {
    pub(crate) field: &'static str,
    pub(crate) name: &'static str,
    pub(crate) found: Result<FoundValue<'a>, &'a Unknown>,
}

pub(crate) struct FoundValue<'a> {
    pub(crate) value: Value<'a>,
    pub(crate) says: String,
    pub(crate) source: &'a str,
    pub(crate) more: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Evidence"))]
#[serde(untagged)]
pub(crate) enum Value<'a> {
    /// An address or a distance, in hexadecimal; null if it is hidden.
    Address(Option<String>),
    Range {
        /// The first address of the range.
        start: String,
        /// The last address of the range.
        end: String,
    },
    DirectMap {
        /// The address of the direct map.
        base: String,
        /// Whether this is an address that a kernel uses if it does not move the direct map.
        is_usual: bool,
    },
    Boot {
        /// Whether the boot stub chose a random address.
        moved: bool,
        /// Whether there is a header (`HdrS`). Without one, the kernel was entered directly and no stub ran.
        has_header: bool,
    },
    Symbol {
        /// The symbol's name.
        name: &'a str,
        /// Its address at run time.
        now: String,
        /// Its address at link time.
        linked: String,
        /// The distance between these two addresses.
        moved_by: String,
        /// The number of symbols that were moved as far.
        agree: usize,
    },
    /// `kaslr` or `nokaslr`; null if neither is on the command line.
    Word(Option<&'static str>),
    Text(String),
    Options(&'a Options),
}

pub(crate) fn pieces(evidence: &Evidence, link_address: u64) -> Vec<Piece<'_>> {
    const HIDDEN: &str = "zeros: not visible here";
    let address = |address: u64| Value::Address(Some(hexadecimal(address)));
    let mut built = piece("options", "built with", &evidence.options, |options| {
        (Value::Options(options), yes("RANDOMIZE_BASE", options.randomize_base))
    });
    if let (Ok(found), Ok(options)) = (&mut built.found, &evidence.options) {
        found.more = others(&options.value);
    }
    let mut pieces = vec![
        piece("symbol", "one symbol", &evidence.symbol, |symbol| {
            let Symbol { name, now, linked, agree } = symbol;
            let moved_by = signed(symbol.distance());
            let says = match symbol.distance() {
                0 => "as linked".to_owned(),
                _ => moved_by.clone(),
            };
            let (now, linked) = (hexadecimal(*now), hexadecimal(*linked));
            (Value::Symbol { name, now, linked, moved_by, agree: *agree }, says)
        }),
        piece("symbols", "symbols", &evidence.symbols, |symbols| match *symbols {
            Symbols::At(at) if at == link_address => (address(at), format!("{at:x}, as linked")),
            Symbols::At(at) => (address(at), format!("{at:x}, not as linked")),
            Symbols::Hidden => (Value::Address(None), HIDDEN.to_owned()),
        }),
        piece("core_offset", "offset", &evidence.core_offset, |&it| (address(it), hexadecimal(it))),
        piece("direct_map", "direct map", &evidence.direct_map, |&DirectMap { base, is_usual }| {
            let how = if is_usual { "as usual" } else { "at random" };
            (Value::DirectMap { base: hexadecimal(base), is_usual }, format!("{base:x}, {how}"))
        }),
        piece("boot", "boot flag", &evidence.boot, |&Boot { moved, has_header }| {
            let says = match (moved, has_header) {
                (true, _) => "set: chosen at random",
                (false, true) => "clear: not chosen at random",
                (false, false) => "clear, no boot header",
            };
            (Value::Boot { moved, has_header }, says.to_owned())
        }),
        piece("physical", "physical", &evidence.physical, |physical| match *physical {
            Physical::At { start, end } => {
                let (start, end) = (hexadecimal(start), hexadecimal(end));
                let says = format!("{start} to {end}");
                (Value::Range { start, end }, says)
            }
            Physical::Hidden => (Value::Address(None), HIDDEN.to_owned()),
        }),
        piece("command_line", "command line", &evidence.parameter, |told| {
            let word = told.map(|moves| if moves { "kaslr" } else { "nokaslr" });
            (Value::Word(word), word.unwrap_or("neither kaslr nor nokaslr").to_owned())
        }),
        piece("linked", "link map", &evidence.linked, |&it| (address(it), format!("{it:x}"))),
        built,
        piece("release", "release", &evidence.release, |it| (Value::Text(it.clone()), it.clone())),
    ];
    if let (Some(Piece { found: Ok(found), .. }), Ok(symbol)) = (pieces.first_mut(), &evidence.symbol) {
        let Symbol { name, now, linked, agree } = &symbol.value;
        let others = match agree {
            1 => "no other symbol is in both".to_owned(),
            several => format!("{several} symbols are in both, all as far apart"),
        };
        found.more = format!("; {name} {now:x}, linked to {linked:x}; {others}");
    }
    pieces
}

fn piece<'a, T>(
    field: &'static str,
    name: &'static str,
    known: &'a Known<T>,
    show: impl FnOnce(&'a T) -> (Value<'a>, String),
) -> Piece<'a> {
    let found = known.as_ref().map(|known| {
        let (value, says) = show(&known.value);
        FoundValue { value, says, source: &known.source, more: String::new() }
    });
    Piece { field, name, found }
}

/// A distance modulo 2^64 with its sign: `+0x35200000`.
pub(super) fn signed(distance: u64) -> String {
    let distance = distance.cast_signed();
    format!("{}{:#x}", if distance < 0 { "-" } else { "+" }, distance.unsigned_abs())
}

pub(crate) fn hexadecimal(value: u64) -> String {
    format!("{value:#x}")
}

fn yes(name: &str, set: bool) -> String {
    format!("{name}={}", if set { "y" } else { "n" })
}

/// The options other than the most important one.
fn others(options: &Options) -> String {
    let number = |name: &str, value: Option<u64>| value.map(|value| format!("{name}={value:#x}"));
    let switches = [
        yes("RANDOMIZE_MEMORY", options.randomize_memory),
        yes("RELOCATABLE", options.relocatable),
        yes("HIBERNATION", options.hibernation),
    ];
    let numbers =
        [number("PHYSICAL_START", options.physical_start), number("PHYSICAL_ALIGN", options.physical_align)];
    let all: Vec<String> = switches.into_iter().chain(numbers.into_iter().flatten()).collect();
    format!("; {}", all.join(", "))
}
