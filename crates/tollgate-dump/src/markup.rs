//! HTML in a text saved from a browser: removes the tags of running text, and decodes entities. Text that tools print
//! between angle brackets (`<Reserved>`, `<idt_table+368>`) stays.

const TAGS: [&str; 48] = [
    "a",
    "address",
    "article",
    "b",
    "big",
    "blockquote",
    "body",
    "br",
    "center",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "font",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "html",
    "i",
    "kbd",
    "li",
    "link",
    "meta",
    "ol",
    "p",
    "pre",
    "samp",
    "small",
    "span",
    "strong",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "tt",
    "u",
    "ul",
];
const LONGEST: usize = 1024;

/// Returns whether a text has tags, and not only angle brackets, judging by its beginning.
pub(crate) fn is_used(text: &[u8]) -> bool {
    const BEGINNING: usize = 1 << 16;
    const SIGNS: [&[u8]; 8] = [b"</pre", b"</p>", b"<br", b"</h1", b"</h2", b"</h3", b"<!doctype", b"&gt;"];
    let beginning = &text[..text.len().min(BEGINNING)];
    let has = |sign: &[u8]| beginning.windows(sign.len()).any(|part| part.eq_ignore_ascii_case(sign));
    (beginning.contains(&b'<') || beginning.contains(&b'&')) && SIGNS.into_iter().any(has)
}

/// Returns the lines that a line of HTML shows, and the level of a heading that begins in it.
pub(crate) fn lines(text: &str) -> (Vec<String>, Option<u8>) {
    let mut lines = vec![String::with_capacity(text.len())];
    let mut level = None;
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        let (before, from) = rest.split_at(at);
        let length = if from.starts_with('<') { tag(from) } else { None };
        let entity = if from.starts_with('&') { entity(from) } else { None };
        if let Some(line) = lines.last_mut() {
            line.push_str(before);
            match (length, entity) {
                (None, Some((c, _))) => line.push(c),
                (None, None) => line.push_str(&from[..1]),
                _ => {}
            }
        }
        if let Some((name, _)) = length {
            match name.to_ascii_lowercase().as_str() {
                "br" => lines.push(String::new()),
                heading if heading.len() == 2 && heading.starts_with('h') && !from.starts_with("</") => {
                    level = heading[1..].parse().ok().or(level);
                }
                _ => {}
            }
        }
        rest = &from[length.map(|(_, length)| length).or(entity.map(|(_, length)| length)).unwrap_or(1)..];
    }
    if let Some(line) = lines.last_mut() {
        line.push_str(rest);
    }
    // A break at the end of a line adds no line.
    if lines.len() > 1 && lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    (lines, level)
}

fn tag(text: &str) -> Option<(&str, usize)> {
    let within = text.strip_prefix("</").or_else(|| text.strip_prefix('<'))?;
    let end = within.find(|c: char| !c.is_ascii_alphanumeric())?;
    let name = TAGS.iter().find(|tag| tag.eq_ignore_ascii_case(&within[..end]))?;
    if !within[end..].starts_with(['>', ' ', '/']) {
        return None;
    }
    let close = text.bytes().take(LONGEST).position(|byte| byte == b'>')?;
    Some((name, close + 1))
}

fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(10).position(|byte| byte == b';')?;
    let name = &text[1..end];
    let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    let c = match name {
        "gt" => '>',
        "lt" => '<',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        _ => match name.strip_prefix('#')? {
            hex if hex.starts_with(['x', 'X']) => number(&hex[1..], 16)?,
            digits => number(digits, 10)?,
        },
    };
    (!c.is_control()).then_some((c, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tags_are_left_out_and_entities_are_characters() {
        let one = |text| lines(text).0.join("\n");
        assert_eq!(one("<pre>kd&gt; r idtr<br>idtr=8003f400</pre>"), "kd> r idtr\nidtr=8003f400");
        assert_eq!(one("<span class=\"x\">tr=28</span>&nbsp;&#x41;"), "tr=28 A");
        assert_eq!(lines("<h2 id=a>sysenter</h2>"), (vec!["sysenter".to_owned()], Some(2)));
        assert_eq!(
            one("<html><head><title>IDT</title></head><body><table><tbody><tr><td>tr=28</td></tr>"),
            "IDTtr=28"
        );
        assert_eq!(one("<ul><li><u>idtr</u></ul><ol class=a></ol><thead><th>x</th></thead>"), "idtrx");
        for text in ["<tr+0x10>", "<table+8>", "<head_64>", "<tr_desc>", "<u8>"] {
            assert_eq!(one(text), text);
        }
        for text in
            ["0048 <Reserved> 0", "0x10 <idt_table+368>:", "<bochs:1> r", "a & b", "<", "&;", "<b", "&#0;"]
        {
            assert_eq!(one(text), text);
        }
        assert!(
            is_used(b"<html><pre>kd&gt; r</pre>") && !is_used(b"<bochs:1> info gdt\nGDT[0]=<null entry>")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "[<>&;#/a-hx0-9 \u{3042}\"=]{0,60}") {
            let (lines, _) = lines(&text);
            prop_assert!(lines.iter().map(String::len).sum::<usize>() <= 4 * text.len());
        }
    }
}
