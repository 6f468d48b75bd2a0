use tollgate_output::figures;
use tollgate_output::table::{Look, Table, paragraph};
use tollgate_x86::{Descriptor, Field, Selector, Tss32, Tss64, Width};

use super::item::{Item, Position};
use super::text;

/// Shows items in tables by kind, in the order of their first, or with `explain` in sentences.
pub fn render(items: &[Item], explain: bool, width: usize) -> String {
    let mut parts = Vec::new();
    let mut rest = items;
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|item| Shape::of(item) == Shape::of(first)).count();
        let (these, others) = rest.split_at(same);
        parts.push(if explain { output(these, width) } else { tabled(these, width) });
        rest = others;
    }
    parts.join("\n")
}

#[derive(PartialEq, Eq)]
enum Shape {
    Descriptor,
    Gate,
    Register,
    Structure,
}

impl Shape {
    fn of(item: &Item) -> Self {
        match item {
            Item::Segment(..)
            | Item::System(..)
            | Item::Half(..)
            | Item::Explained(..)
            | Item::Rights(..) => Self::Descriptor,
            Item::Gate32(..) | Item::Gate64(..) | Item::Vector(..) => Self::Gate,
            Item::Msr(..) => Self::Register,
            Item::Tss32(..) | Item::Tss64(..) | Item::Fields(..) => Self::Structure,
        }
    }
}

fn tabled(items: &[Item], width: usize) -> String {
    match items.first().map(Shape::of) {
        Some(Shape::Descriptor) => descriptors(items, width),
        Some(Shape::Gate) => gates(items, width),
        Some(Shape::Register) => registers(items, width),
        _ => items.iter().map(|item| structure(item, false, width)).collect::<Vec<_>>().join("\n"),
    }
}

fn descriptors(items: &[Item], width: usize) -> String {
    let mut table = Table::new(&["sel", "base", "last offset", "dpl"]);
    let mut null = Vec::new();
    for item in items {
        if let Item::Explained(printed) = item {
            let known =
                |value: Option<u64>| value.map_or_else(|| "not known".to_owned(), |it| format!("{it:08x}"));
            let base = match printed.base {
                Some(base) if base > u64::from(u32::MAX) => format!("{base:016x}"),
                base => known(base),
            };
            let dpl = printed.bits(0x60).map_or_else(|| "?".to_owned(), |bits| (bits >> 5).to_string());
            let cells = [Selector(printed.selector).to_string(), base, known(printed.limit), dpl];
            table.row(Look::Plain, &cells, &[text::what(item)]);
            continue;
        }
        let (base, limit, descriptor) = match item {
            Item::Segment(Some(selector), it) if *it == Descriptor::default() => {
                null.push(selector.to_string());
                continue;
            }
            Item::Segment(_, it) => (format!("{:08x}", it.base), it.effective_limit(), *it),
            Item::System(_, it) => (format!("{:016x}", it.base()), it.low.effective_limit(), it.low),
            Item::Half(_, it) => (format!("????????{:08x}", it.base), it.effective_limit(), *it),
            Item::Rights(_, rights, limit) => {
                let it = rights.with_limit(limit.unwrap_or_default());
                ("not known".to_owned(), limit.unwrap_or_default(), it)
            }
            _ => continue,
        };
        let limit = match item {
            Item::Rights(_, _, None) => "not known".to_owned(),
            _ => format!("{limit:08x}"),
        };
        let selector = item.selector().map_or_else(String::new, |selector| selector.to_string());
        table.row(Look::Plain, &[selector, base, limit, descriptor.dpl.to_string()], &[text::what(item)]);
    }
    let mut text = if null.len() == items.len() { String::new() } else { table.render(width) };
    if !null.is_empty() {
        text.push_str(&paragraph(&format!("Null: {}.", null.join(", ")), width, ""));
    }
    text
}

fn gates(items: &[Item], width: usize) -> String {
    let mut table = Table::new(&["at", "leads to", "dpl", "ist"]);
    for item in items {
        let (place, target, dpl, ist) = match item {
            Item::Vector(vector, segment, offset) => {
                let target = format!("{segment:04x}:{offset:04x}");
                let cells = [format!("int {vector:02x}"), target, String::new(), String::new()];
                table.row(Look::Plain, &cells, &[text::what(item)]);
                continue;
            }
            Item::Gate32(place, it) => {
                (place, format!("{}:{:08x}", it.selector, it.offset), it.dpl, String::new())
            }
            Item::Gate64(place, it) => {
                (place, format!("{}:{:016x}", it.low.selector, it.offset()), it.low.dpl, it.ist().to_string())
            }
            _ => continue,
        };
        let at = match place {
            Position::Unknown => String::new(),
            Position::Vector(vector) => format!("int {vector:02x}"),
            Position::Selector(selector) => selector.to_string(),
        };
        table.row(Look::Plain, &[at, target, dpl.to_string(), ist], &[text::what(item)]);
    }
    table.render(width)
}

fn registers(items: &[Item], width: usize) -> String {
    let mut table = Table::new(&["msr", "name", "value"]).with_words(&["name", "value"]);
    for item in items {
        let Item::Msr(msr, value) = item else { continue };
        let cells = [format!("{:8x}", msr.number()), msr.name().to_owned(), format!("{value:016x}")];
        table.row(Look::Plain, &cells, &[text::sentences(item).join(" ")]);
    }
    table.render(width)
}

fn structure(item: &Item, all: bool, width: usize) -> String {
    let fields = match item {
        Item::Tss32(..) | Item::Fields(Width::Legacy, _) => Tss32::FIELDS,
        Item::Tss64(..) | Item::Fields(Width::Long, _) => Tss64::FIELDS,
        _ => return String::new(),
    };
    let read = |field: &Field| match item {
        Item::Tss32(bytes, _) | Item::Tss64(bytes, _) => field.read(bytes),
        Item::Fields(_, known) => known.iter().find(|(name, _)| *name == field.name).map(|(_, value)| *value),
        _ => None,
    };
    let mut table = Table::new(&["offset", "field", "value"]).with_words(&["field"]);
    let mut left = 0;
    for field in fields {
        let Some(value) = read(field) else { continue };
        if !all && !is_of_entry(field.name) {
            left += usize::from(value != 0);
            continue;
        }
        let digits = 2 * field.size;
        let cells = [format!("{:x}", field.offset), field.name.to_owned(), format!("{value:0digits$x}")];
        table.row(Look::Plain, &cells, &[]);
    }
    let mut text = table.render(width);
    if left > 0 {
        let output = format!(
            "{} more that are not 0: registers of a task that was switched away, or reserved. Only a task switch uses them; --explain shows them.",
            figures::count(left, "field", "fields")
        );
        text.push_str(&paragraph(&output, width, ""));
    }
    for sentence in text::sentences(item) {
        text.push_str(&paragraph(&sentence, width, ""));
    }
    text
}

/// Returns whether an entry reads the field: stacks, and the I/O bitmap.
fn is_of_entry(name: &str) -> bool {
    ["esp", "ss", "rsp", "ist"].iter().any(|kind| {
        name.strip_prefix(kind)
            .is_some_and(|ring| !ring.is_empty() && ring.bytes().all(|it| it.is_ascii_digit()))
    }) || ["link", "cr3", "ldt", "iomap"].contains(&name)
}

fn output(items: &[Item], width: usize) -> String {
    let output = items.iter().map(|item| {
        let mut text = tollgate_output::table::heading(&title(item), width);
        if let Item::Tss32(..) | Item::Tss64(..) | Item::Fields(..) = item {
            return text + &structure(item, true, width);
        }
        for sentence in text::sentences(item) {
            text.push_str(&paragraph(&sentence, width, "  "));
        }
        text
    });
    output.collect::<Vec<_>>().join("\n")
}

fn title(item: &Item) -> String {
    let bytes = item.bytes().map(|bytes| {
        let shown: Vec<String> = bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{}{}", shown.join(" "), if bytes.len() > 16 { " …" } else { "" })
    });
    let place = match item {
        Item::Msr(msr, value) => format!("{:x} = {value:016x}", msr.number()),
        Item::Rights(_, rights, _) => format!("LAR {:08x}", rights.0),
        Item::Explained(printed) => format!("selector {}", Selector(printed.selector)),
        Item::Fields(..) => "single fields".to_owned(),
        _ => bytes.unwrap_or_default(),
    };
    format!("{}: {place}", text::what(item))
}
