//! Flame graphs as a separate file: SVG that shows, without a script, what the functions of stacks take.
//!
//! A frame is as wide as its own number and those of all that it calls, which is above it. A second graph is of the same kind, and
//! its colours show what each function itself takes more or less than in the first: every stack of it is known, so a difference
//! belongs to the function that has it, not to its callers.

use std::collections::BTreeMap;
use std::fmt::Write;

use tollgate_output::figures::{percent, thousands};
use tollgate_output::markup::{Text, escaped};
use tollgate_output::table::wrap;

use super::picture::{MARGIN, alone, cut};
use super::svg::short;

/// As wide as those of flamegraph.pl.
const WIDTH: f64 = 1200.0;
const ROW: f64 = 16.0;
/// Width of a letter, and of the space around a name.
const LETTER: f64 = 6.7;
const AROUND: f64 = 5.0;
/// Frames that are narrower are not drawn.
const NARROW: f64 = 0.5;
/// Letters of a name that say something.
const LEAST_LETTERS: usize = 3;
/// Characters of a line of sentences.
const LINE: usize = 190;
/// Deeper frames count as part of the frame at this depth.
const DEEPEST: usize = 512;
/// Shares of the largest change from which on a colour is stronger.
const LEVELS: [f64; 3] = [0.01, 0.1, 0.5];
/// Colours of graphs that are not compared.
const TINTS: usize = 3;

const STYLE: &str = ".f{font:11px ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono',monospace}\
.f rect{fill:currentColor;stroke:var(--bg);stroke-width:.5}\
.s0{fill-opacity:.18}.s1{fill-opacity:.3}.s2{fill-opacity:.42}.s3{fill-opacity:.65}.f text{fill:var(--ink);fill-opacity:1}";

/// One graph: a name, and stacks with their numbers. The frames of a stack are separated by `;`, the outermost first.
#[derive(Debug, Clone, Copy)]
pub struct Flames<'a> {
    /// The command or thread that executed them.
    pub name: &'a str,
    /// The stacks.
    pub stacks: &'a [(String, u64)],
}

/// Draws the graphs below each other, each after the first compared with that. `unit` is that of the numbers, such as
/// `instructions`.
pub fn flames(all: &[Flames<'_>], unit: &str) -> String {
    let roots: Vec<Frame<'_>> = all.iter().map(|flames| Frame::of(flames.stacks)).collect();
    let mut graph = Graph { body: String::new(), y: MARGIN, unit };
    for (at, (flames, root)) in all.iter().zip(&roots).enumerate() {
        let letter = (all.len() > 1).then(|| crate::versus::letter(at));
        let head: Vec<&str> = letter.iter().map(String::as_str).chain([flames.name]).collect();
        graph.add(&head.join("  "), root, roots.first().filter(|_| at > 0));
    }
    let names: Vec<&str> = all.iter().map(|flames| flames.name).collect();
    let title = format!("Flame graph of {}", names.join(", "));
    alone([WIDTH, graph.y], [&title, &format!("Functions, as wide as their {unit}.")], STYLE, "", &graph.body)
}

#[derive(Debug, Default)]
struct Frame<'a> {
    own: u64,
    /// Its own number and those of all frames that it calls.
    total: u64,
    callees: BTreeMap<&'a str, Frame<'a>>,
}

impl<'a> Frame<'a> {
    fn of(stacks: &'a [(String, u64)]) -> Self {
        let mut root = Self::default();
        for (frames, number) in stacks {
            let mut at = &mut root;
            at.total = at.total.saturating_add(*number);
            for name in frames.split(';').take(DEEPEST) {
                at = at.callees.entry(name).or_default();
                at.total = at.total.saturating_add(*number);
            }
            at.own = at.own.saturating_add(*number);
        }
        root
    }

    /// The largest change of a function of this graph; a function that `before` lacks counts as 0 there.
    fn largest_change(&self, before: Option<&Self>) -> u64 {
        let of_callees = self
            .callees
            .iter()
            .map(|(name, callee)| callee.largest_change(before.and_then(|before| before.callees.get(name))));
        let own = self.own.abs_diff(before.map_or(0, |before| before.own));
        of_callees.max().unwrap_or_default().max(own)
    }

    /// The sum of the numbers of frames that `other` lacks.
    fn without(&self, other: &Self) -> u64 {
        let of = |(name, callee): (&&str, &Self)| match other.callees.get(name) {
            Some(other) => callee.without(other),
            None => callee.total,
        };
        self.callees.iter().map(of).fold(0, u64::saturating_add)
    }

    /// How many frames are too narrow to be drawn, and the sum of the numbers of the outermost of them.
    fn narrow(&self, scale: f64) -> (usize, u64) {
        let mut all = (0, 0_u64);
        for callee in self.callees.values() {
            let is_narrow = callee.total as f64 * scale < NARROW;
            let (frames, sum) =
                if is_narrow { (callee.frames(), callee.total) } else { callee.narrow(scale) };
            all = (all.0 + frames, all.1.saturating_add(sum));
        }
        all
    }

    fn frames(&self) -> usize {
        1 + self.callees.values().map(Self::frames).sum::<usize>()
    }

    /// How many frames are drawn on top of each other.
    fn height(&self, scale: f64) -> usize {
        let wide = self.callees.values().filter(|callee| callee.total as f64 * scale >= NARROW);
        wide.map(|callee| 1 + callee.height(scale)).max().unwrap_or_default()
    }
}

struct Graph<'u> {
    body: String,
    y: f64,
    unit: &'u str,
}

/// How the frames of one graph are drawn.
struct Drawn<'f, 'a> {
    /// Pixels for each unit of the numbers.
    scale: f64,
    bottom: f64,
    whole: u64,
    /// The largest change, if it is compared.
    change: Option<u64>,
    unit: &'f str,
    body: &'a mut String,
}

impl Graph<'_> {
    fn add(&mut self, head: &str, root: &Frame<'_>, before: Option<&Frame<'_>>) {
        self.y += 14.0;
        self.text("head", head);
        self.y += 16.0;
        let scale = (WIDTH - 2.0 * MARGIN) / root.total.max(1) as f64;
        let about = self.about(root, before, scale);
        for line in about.iter().flat_map(|sentence| wrap(sentence, LINE)) {
            self.text("d", &line);
            self.y += 15.0;
        }
        let bottom = self.y + ROW * root.height(scale) as f64;
        self.body.push_str("<g class=\"f\">\n");
        let change = before.map(|before| root.largest_change(Some(before)));
        let mut drawn =
            Drawn { scale, bottom, whole: root.total, change, unit: self.unit, body: &mut self.body };
        drawn.callees(root, before, MARGIN, 0);
        self.body.push_str("</g>\n");
        self.y = bottom + 2.0 * MARGIN;
    }

    fn about(&self, root: &Frame<'_>, before: Option<&Frame<'_>>, scale: f64) -> Vec<String> {
        let unit = self.unit;
        if root.total == 0 {
            return vec!["There are no stacks.".to_owned()];
        }
        let total = number(root.total);
        let mut about = Vec::new();
        match before {
            None => about.push(format!(
                "{total} {unit}. A frame is a function, as wide as its {unit} and those of all that it calls, which is above it."
            )),
            Some(before) => {
                let gone = match before.without(root) {
                    0 => String::new(),
                    gone => format!(" {} {unit} of A are in frames that are not here.", number(gone)),
                };
                about.push(format!(
                    "{total} {unit}, {} compared with A.{gone}",
                    signed(before.total, root.total)
                ));
                about.push(format!(
                    "An orange frame has more {unit} of its own than in A, a green one fewer, a grey one as many; the stronger the \
                     colour, the larger the change."
                ));
            }
        }
        let (frames, sum) = root.narrow(scale);
        if frames > 0 {
            about.push(format!(
                "Frames narrower than half a pixel are left out: {} of {}, with {} of the {unit}.",
                number(frames as u64),
                number(root.frames() as u64 - 1),
                percent(sum as f64 / root.total as f64)
            ));
        }
        about
    }

    fn text(&mut self, class: &str, text: &str) {
        let (x, y) = (short(MARGIN, 1), short(self.y, 1));
        let text = cut(Text::new(text).as_str(), LINE);
        let _ = writeln!(self.body, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(&text));
    }
}

impl Drawn<'_, '_> {
    /// Draws what a frame calls, from left to right.
    fn callees(&mut self, frame: &Frame<'_>, before: Option<&Frame<'_>>, mut x: f64, depth: usize) {
        for (name, callee) in &frame.callees {
            let width = callee.total as f64 * self.scale;
            if width >= NARROW {
                let before = before.and_then(|before| before.callees.get(name));
                self.frame(name, callee, before, [x, width], depth);
                self.callees(callee, before, x, depth + 1);
            }
            x += width;
        }
    }

    fn frame(
        &mut self,
        name: &str,
        frame: &Frame<'_>,
        before: Option<&Frame<'_>>,
        [x, width]: [f64; 2],
        depth: usize,
    ) {
        let y = self.bottom - ROW * (depth + 1) as f64;
        let (own, total) = before.map_or((0, 0), |before| (before.own, before.total));
        let change = |before: u64, now: u64| match self.change {
            Some(_) if before != now => format!(" ({})", signed(before, now)),
            _ => String::new(),
        };
        let name = Text::new(name);
        let title = format!(
            "{name}: {}{} {}, {}; {}{} of its own",
            number(frame.total),
            change(total, frame.total),
            self.unit,
            percent(frame.total as f64 / self.whole.max(1) as f64),
            number(frame.own),
            change(own, frame.own),
        );
        let class = match self.change {
            Some(largest) => changed(own, frame.own, largest),
            None => plain(name.as_str(), depth),
        };
        let shown = format!("{name}{}", change(own, frame.own));
        let room = ((width - AROUND) / LETTER).max(0.0) as usize;
        let text = match room {
            ..LEAST_LETTERS => String::new(),
            _ => {
                let (x, y) = (short(x + AROUND / 2.0, 1), short(y + 12.0, 1));
                format!("<text x=\"{x}\" y=\"{y}\">{}</text>", escaped(&cut(&shown, room)))
            }
        };
        let _ = writeln!(
            self.body,
            "<g class=\"{class}\"><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{ROW}\"/>{text}</g>",
            escaped(&title),
            short(x, 2),
            short(y, 1),
            short(width, 2),
        );
    }
}

/// The class of a function whose own number was `before` and is `now`.
fn changed(before: u64, now: u64, largest: u64) -> String {
    if before == now {
        return "vn s1".to_owned();
    }
    let share = before.abs_diff(now) as f64 / largest.max(1) as f64;
    let level = LEVELS.iter().filter(|level| share >= **level).count();
    format!("{} s{level}", if now > before { "c1" } else { "c2" })
}

/// The outermost frame has another colour than the functions, which have tints by their names.
fn plain(name: &str, depth: usize) -> String {
    let tint = name.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % TINTS;
    if depth == 0 { "c0 s1".to_owned() } else { format!("c1 s{tint}") }
}

fn number(number: u64) -> String {
    thousands(&number.to_string())
}

fn signed(before: u64, now: u64) -> String {
    format!("{}{}", if now < before { '-' } else { '+' }, number(now.abs_diff(before)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stacks(lines: &[(&str, u64)]) -> Vec<(String, u64)> {
        lines.iter().map(|(frames, number)| ((*frames).to_owned(), *number)).collect()
    }

    fn attribute(of: &str, name: &str) -> f64 {
        let begins = format!(" {name}=\"");
        let value = of.split(&begins).nth(1).and_then(|rest| rest.split('"').next()?.parse().ok());
        value.unwrap_or_else(|| panic!("no {name}: {of}"))
    }

    /// The frames as lines, each with its place and width.
    fn frames(drawn: &str) -> Vec<(&str, f64, f64, f64)> {
        let lines = drawn.lines().filter(|line| line.contains("<rect x="));
        lines
            .map(|line| (line, attribute(line, "x"), attribute(line, "y"), attribute(line, "width")))
            .collect()
    }

    fn titled<'d>(drawn: &'d str, name: &str) -> (&'d str, f64, f64, f64) {
        let title = format!("<title>{name}: ");
        let found = frames(drawn).into_iter().find(|(line, ..)| line.contains(&title));
        found.unwrap_or_else(|| panic!("no {name}: {drawn}"))
    }

    const WHOLE: f64 = WIDTH - 2.0 * MARGIN;

    #[test]
    fn a_frame_is_as_wide_as_all_that_is_above_it_and_its_own() {
        let stacks =
            stacks(&[("user", 250), ("user;entry", 250), ("user;entry;a", 100), ("user;entry;b", 400)]);
        let drawn = flames(&[Flames { name: "ls", stacks: &stacks }], "instructions");
        assert_eq!(frames(&drawn).len(), 4, "{drawn}");
        let [user, entry, a, b] = ["user", "entry", "a", "b"].map(|name| titled(&drawn, name));
        assert!((user.3 - WHOLE).abs() < 0.1 && (entry.3 - 0.75 * WHOLE).abs() < 0.1, "{drawn}");
        assert!((a.3 + b.3 - entry.3 * 2.0 / 3.0).abs() < 0.1 && (a.1 + a.3 - b.1).abs() < 0.1, "{drawn}");
        assert!(user.2 > entry.2 && entry.2 > a.2 && a.2 == b.2, "the callees are above: {drawn}");
        assert!(entry.0.contains(">entry: 750 instructions, 75 %; 250 of its own<"), "{}", entry.0);
        assert!(drawn.starts_with("<svg xmlns=") && drawn.contains(">1,000 instructions. "), "{drawn}");
    }

    #[test]
    fn names_are_escaped_and_cut_to_their_frames() {
        let long = "n".repeat(400);
        let lines = [("<script>&\u{202e};x", 1), (long.as_str(), 1), ("a;two words", 38)];
        let drawn = flames(&[Flames { name: "<b>", stacks: &stacks(&lines) }], "instructions");
        assert!(
            !drawn.contains("<script>") && !drawn.contains('\u{202e}') && !drawn.contains("<b>"),
            "{drawn}"
        );
        assert!(drawn.contains("&lt;script&gt;&amp;") && drawn.contains("&lt;b&gt;"), "{drawn}");
        let narrow = titled(&drawn, &format!("{}…", "n".repeat(320))).0;
        let text =
            narrow.split("<text").nth(1).and_then(|text| text.split(['>', '<']).nth(1)).expect("a name");
        assert!(text.ends_with('…') && text.chars().count() as f64 * LETTER < WHOLE / 40.0, "{narrow}");
        assert!(drawn.contains(">two words</text>"), "{drawn}");
    }

    #[test]
    fn what_is_too_narrow_is_left_out_and_counted() {
        let stacks = stacks(&[("user;a", 999_900), ("user;b;c", 60), ("user;d", 40)]);
        let drawn = flames(&[Flames { name: "ls", stacks: &stacks }], "instructions");
        assert_eq!(frames(&drawn).len(), 2, "{drawn}");
        assert!(drawn.contains("left out: 3 of 5, with 0.01 % of the instructions."), "{drawn}");
    }

    #[test]
    fn a_second_graph_shows_what_each_function_itself_has_more_or_fewer() {
        let before =
            stacks(&[("user", 100), ("user;read;copy", 300), ("user;read;gone", 70), ("user;same", 50)]);
        let after = stacks(&[("user", 90), ("user;read;copy", 700), ("user;new", 60), ("user;same", 50)]);
        let sides = [Flames { name: "one", stacks: &before }, Flames { name: "other", stacks: &after }];
        let drawn = flames(&sides, "instructions");
        let second = drawn.split(">B  other<").nth(1).expect("a second graph");
        let class = |name: &str| {
            let line = titled(second, name).0;
            line.split('"').nth(1).expect("a class").to_owned()
        };
        assert_eq!(["user", "copy", "new", "same"].map(class), ["c2 s1", "c1 s3", "c1 s2", "vn s1"]);
        // The caller has none of its own in either.
        assert_eq!(class("read"), "vn s1");
        let copy = titled(second, "copy");
        assert!((copy.3 - 700.0 / 900.0 * WHOLE).abs() < 0.1, "as wide as in B: {drawn}");
        assert!(copy.0.contains("copy: 700 (+400) instructions, 78 %; 700 (+400) of its own"), "{}", copy.0);
        assert!(second.contains("70 instructions of A are in frames that are not here."), "{second}");
        assert!(second.contains(">900 instructions, +380 compared with A."), "{second}");
    }

    #[test]
    fn without_stacks_it_says_so() {
        let drawn = flames(&[Flames { name: "ls", stacks: &[] }], "instructions");
        assert!(drawn.contains("There are no stacks.") && frames(&drawn).is_empty(), "{drawn}");
    }

    proptest! {
        #[test]
        fn no_stacks_panic_and_all_frames_are_within_the_picture(
            lines in prop::collection::vec(("[a-c;<\\\\n]{0,12}", 0_u64..1 << 58), 0..20),
            deep in 0_usize..3000,
        ) {
            let mut lines: Vec<(String, u64)> = lines;
            lines.push(("a;".repeat(deep), 1 << 58));
            let sides = [&lines[..], &lines[1..]].map(|stacks| Flames { name: "x", stacks });
            let drawn = flames(&sides, "instructions");
            for (line, x, y, width) in frames(&drawn) {
                prop_assert!(x >= 0.0 && x + width <= WIDTH && y >= 0.0 && y + ROW <= attribute(&drawn, "height"), "{}", line);
            }
        }
    }
}
