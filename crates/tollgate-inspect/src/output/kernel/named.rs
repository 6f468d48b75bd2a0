//! Symbols that a user named, as text and as JSON.

use serde::Serialize;
use tollgate_model::Unknown;
use tollgate_output::table::{Look, Table, paragraph};

use super::evidence::{hexadecimal, signed};
use crate::kernel_base::{Address, Conclusion, Named, is_a_move};

/// Another boot, from a tree of its files.
#[derive(Debug)]
pub struct Before {
    /// Name of the tree.
    pub place: String,
    /// The same symbols in that boot.
    pub symbols: Vec<Named>,
    /// How far the beginning of the code has moved since.
    pub code: Option<u64>,
}

/// Formats the symbols, which follow the answer to whether the kernel was moved.
pub fn named_screen(
    conclusion: &Conclusion,
    named: &[Named],
    before: Option<&Before>,
    width: usize,
) -> String {
    let mut text = paragraph(&super::screen::verdict(conclusion), width, "");
    for (at, after) in named.iter().enumerate() {
        if let Some((before, was)) = before.and_then(|before| Some((before, before.symbols.get(at)?))) {
            text.push_str(&paragraph(&since(before, was, after), width, ""));
        }
    }
    text.push('\n');
    let mut table = Table::new(&["symbol", "now", "linked", "moved by"]);
    for symbol in named {
        let moved = match symbol.distance() {
            Some(0) => "0".to_owned(),
            Some(distance) if is_a_move(distance) => signed(distance),
            Some(_) => "another build".to_owned(),
            None => String::new(),
        };
        let now = symbol.now.as_ref().map(|found| found.value.iter().map(address).collect());
        let linked =
            symbol.linked.as_ref().map(|found| found.value.iter().map(|at| format!("{at:x}")).collect());
        table.row(Look::Plain, &[symbol.name.clone(), several(now), several(linked), moved], &[]);
    }
    text.push_str(&table.render(width));
    let remarks = remarks(named);
    if !remarks.is_empty() {
        text.push('\n');
    }
    remarks.iter().for_each(|remark| text.push_str(&paragraph(remark, width, "- ")));
    text
}

fn remarks(named: &[Named]) -> Vec<String> {
    let mut remarks: Vec<String> = named.iter().filter_map(other_name).collect();
    let reasons = |symbol: &Named| {
        let all = [symbol.now.as_ref().err(), symbol.linked.as_ref().err()];
        all.into_iter().flatten().map(|why| why.kind_and_why().1.to_owned()).collect::<Vec<_>>()
    };
    let mut all: Vec<(String, Vec<&str>)> = Vec::new();
    for (symbol, why) in
        named.iter().flat_map(|symbol| reasons(symbol).into_iter().map(move |why| (symbol, why)))
    {
        match all.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(&symbol.name),
            None => all.push((why, vec![&symbol.name])),
        }
    }
    remarks.extend(all.into_iter().map(|(why, names)| {
        if names.len() == named.len() { why } else { format!("{}: {why}", names.join(", ")) }
    }));
    remarks
}

fn other_name(symbol: &Named) -> Option<String> {
    let Some(renamed) = &symbol.renamed else {
        return (!symbol.similar.is_empty())
            .then(|| format!("{}: this kernel has {}", symbol.name, symbol.similar.join(", ")));
    };
    let when = if renamed.is_newer { "since" } else { "before" };
    let at = match renamed.at.as_slice() {
        [0, ..] | [] => String::new(),
        [at, ..] => format!(", at {at:x}"),
    };
    Some(format!("{}: called {} {when} Linux {}{at}", symbol.name, renamed.name, renamed.since))
}

fn since(before: &Before, was: &Named, is: &Named) -> String {
    let (name, place) = (&is.name, &before.place);
    match (was.address(), is.address(), before.code) {
        (Some(was), Some(is), _) => match is.wrapping_sub(was) {
            0 => format!("{name}: at the same address as in {place}, {is:x}"),
            distance if is_a_move(distance) => {
                format!("{name}: moved by {} since {place}, from {was:x} to {is:x}", signed(distance))
            }
            _ => format!(
                "{name}: at {was:x} in {place} and at {is:x}, not a multiple of 2 MiB apart: two builds"
            ),
        },
        // A capture has only the first symbols.
        (.., Some(0)) => format!("{name}: not in both lists; _text has the same address as in {place}"),
        (.., Some(code)) => format!(
            "{name}: not in both lists; _text moved by {} since {place}, and symbols of one build move with it",
            signed(code)
        ),
        (None, Some(_), None) => format!("{name}: {place} does not show where it was{}", reason(was)),
        (_, None, None) => format!("{name}: its address does not show{}", reason(is)),
    }
}

fn reason(symbol: &Named) -> String {
    match &symbol.now {
        Ok(_) => ": several symbols have the name, or none of the kernel's image".to_owned(),
        Err(why) => format!(": {}", why.kind_and_why().1),
    }
}

fn address(address: &Address) -> String {
    match &address.module {
        Some(module) => format!("{:x} [{module}]", address.at),
        None => format!("{:x}", address.at),
    }
}

fn several(values: Result<Vec<String>, &Unknown>) -> String {
    match values {
        Ok(values) => match values.as_slice() {
            [first, _, ..] => format!("{first} and {} more", values.len() - 1),
            values => values.concat(),
        },
        Err(why) => why.kind_and_why().0.to_owned(),
    }
}

/// A symbol in the output of `--format json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "NamedSymbol"))]
pub struct Symbol<'a> {
    /// Its name.
    name: &'a str,
    /// Its place at run time, one for each symbol of that name; null with the reason in `now_why`.
    now: Option<Vec<SymbolPlace<'a>>>,
    /// Why `now` is not known, or null.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    now_why: Option<&'a Unknown>,
    /// The addresses that it was linked to; null with the reason in `linked_why`.
    linked: Option<Vec<String>>,
    /// Why `linked` is not known, or null.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    linked_why: Option<&'a Unknown>,
    /// The distance from the address that it was linked to, or null.
    moved_by: Option<String>,
    /// The other name that this kernel has for it, or null.
    renamed: Option<Other<'a>>,
    /// Names that contain this one.
    similar: &'a [String],
    /// With `--since`, its address in that boot, or null.
    before: Option<String>,
    /// With `--since`, the distance that it moved; null if the two kernels are different builds.
    since: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PlaceOfSymbol"))]
struct SymbolPlace<'a> {
    /// Its address.
    address: String,
    /// The module that contains it, or null for the kernel itself.
    module: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "OtherName"))]
struct Other<'a> {
    /// The other name.
    name: &'a str,
    /// The first release that has the newer of both names, such as `5.8`.
    since: &'static str,
    /// Whether this kernel has the newer name.
    is_newer: bool,
    /// The addresses of the symbol of that name.
    addresses: Vec<String>,
}

impl<'a> Symbol<'a> {
    pub(super) fn new(symbol: &'a Named, before: Option<&Named>) -> Self {
        let hex = |all: &[u64]| all.iter().copied().map(hexadecimal).collect();
        let place =
            |it: &'a Address| SymbolPlace { address: hexadecimal(it.at), module: it.module.as_deref() };
        let was = before.and_then(Named::address);
        let distance = was.zip(symbol.address()).map(|(before, after)| after.wrapping_sub(before));
        Self {
            name: &symbol.name,
            now: symbol.now.as_ref().ok().map(|found| found.value.iter().map(place).collect()),
            now_why: symbol.now.as_ref().err(),
            linked: symbol.linked.as_ref().ok().map(|found| hex(&found.value)),
            linked_why: symbol.linked.as_ref().err(),
            moved_by: symbol.distance().filter(|distance| is_a_move(*distance)).map(signed),
            renamed: symbol.renamed.as_ref().map(|it| Other {
                name: &it.name,
                since: it.since,
                is_newer: it.is_newer,
                addresses: hex(&it.at),
            }),
            similar: &symbol.similar,
            before: was.map(hexadecimal),
            since: distance.filter(|distance| is_a_move(*distance)).map(signed),
        }
    }
}
