//! Where the regions of one process are, or what moved between two, as text and as JSON.

use serde::Serialize;
use tollgate_output::figures;
use tollgate_output::table::{Look, Table, paragraph};

use super::text::list;
use crate::aslr::layout::{Move, Part, STACK_TOP, together};
use crate::aslr::{Side, Whose};
use crate::output::kernel::signed;

/// So many names are shown, and the rest is counted.
const FEW: usize = 6;

/// One process, or two whose regions are compared.
pub struct Moved<'a> {
    sides: &'a [Side],
    moves: Vec<Move>,
}

/// The output of `--format json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MovedRegions<'a> {
    /// Whether any region that both have is at another address, None of one.
    moved: Option<bool>,
    /// Of each whether the end of its stack alone shows that it was randomised, or None.
    randomised: Vec<Option<bool>>,
    /// The processes or saved maps.
    sides: Vec<SideFields<'a>>,
    /// One object for each.
    regions: Vec<RegionFields<'a>>,
    /// The names of regions that moved by the same distance.
    groups: Vec<Vec<&'a str>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Maps"))]
struct SideFields<'a> {
    /// Its number, or None.
    pid: Option<u32>,
    /// The file with its maps, or None.
    file: Option<String>,
    /// Its program, or None.
    program: Option<&'a str>,
    /// Whether its program is linked to a fixed address, None where that is not known.
    fixed: Option<bool>,
    /// The mappings without a name.
    unnamed: usize,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MovedRegion"))]
struct RegionFields<'a> {
    /// `code`, `heap`, `stack` (its end), `library`, `loader`, `kernel`, `vsyscall` or `file`.
    kind: &'static str,
    /// Its name.
    name: &'a str,
    /// Of each, hexadecimal, or None.
    addresses: Vec<Option<String>>,
    /// The distance, or None.
    moved_by: Option<String>,
}

impl<'a> Moved<'a> {
    /// Of one process, or of the first two.
    pub fn of(sides: &'a [Side]) -> Self {
        let moves = match sides {
            [] => Vec::new(),
            [only] => only.layout.alone(),
            [one, two, ..] => one.layout.moves(&two.layout),
        };
        Self { sides, moves }
    }

    /// The answer, and region by region what moved.
    pub fn screen(&self, width: usize) -> String {
        let mut text = paragraph(&self.verdict(), width, "");
        for side in self.sides {
            text.push_str(&paragraph(&subject(side), width, ""));
        }
        text.push('\n');
        text.push_str(&self.table().render(width));
        let remarks = self.remarks();
        if !remarks.is_empty() {
            text.push('\n');
        }
        for remark in remarks {
            text.push_str(&paragraph(&remark, width, "- "));
        }
        text
    }

    /// As JSON.
    pub fn record(&self) -> MovedRegions<'_> {
        let side = |side: &'a Side| SideFields {
            pid: if let Whose::Process(pid) = side.whose { Some(pid) } else { None },
            file: if let Whose::File(path) = &side.whose { Some(path.display().to_string()) } else { None },
            program: side.layout.program.as_deref(),
            fixed: side.is_fixed,
            unnamed: side.layout.unnamed,
        };
        let region = |it| {
            let Move { part, name, at }: &Move = it;
            RegionFields {
                kind: part.name(),
                name,
                addresses: at.iter().take(self.sides.len()).map(|at| at.map(hexadecimal)).collect(),
                moved_by: it.distance().map(signed),
            }
        };
        MovedRegions {
            moved: self.moved(),
            randomised: self.sides.iter().map(|side| side.layout.is_randomised()).collect(),
            sides: self.sides.iter().map(side).collect(),
            regions: self.moves.iter().map(region).collect(),
            groups: together(&self.moves)
                .into_iter()
                .map(|group| group.into_iter().map(|it| it.name.as_str()).collect())
                .collect(),
        }
    }

    /// The regions that both have and that can move.
    fn common(&self) -> impl Iterator<Item = (&Move, u64)> {
        self.moves.iter().filter(|it| it.can_move()).filter_map(|it| Some((it, it.distance()?)))
    }

    /// Whether any of them moved.
    fn moved(&self) -> Option<bool> {
        self.common().next()?;
        Some(self.common().any(|(_, distance)| distance != 0))
    }

    fn verdict(&self) -> String {
        let [one, two, ..] = self.sides else { return self.verdict_of_one() };
        let (one, two) = (whose(one), whose(two));
        let stays: Vec<String> =
            self.common().filter(|(_, distance)| *distance == 0).map(|(it, _)| short(it)).collect();
        match self.moved() {
            None => format!("inconclusive: {one} and {two} have no region in common"),
            Some(false) => format!("not moved: every region of {one} is at the same address in {two}"),
            Some(true) if stays.is_empty() => {
                format!(
                    "moved: every region that can move and that both have is at another address in {two} than in {one}"
                )
            }
            Some(true) => {
                let verb = if stays.len() == 1 { "is" } else { "are" };
                format!(
                    "partly moved: {} {verb} at the same address in both; the rest is at another in {two} than in {one}",
                    several(&stays)
                )
            }
        }
    }

    fn verdict_of_one(&self) -> String {
        let Some(side) = self.sides.first() else { return String::new() };
        let name = whose(side);
        match (side.layout.is_randomised(), side.layout.stack()) {
            (Some(true), Some(end)) => format!(
                "randomised: the stack of {name} ends at {end:#x}, {} below {STACK_TOP:#x}, where it ends without randomization",
                figures::bytes(STACK_TOP.saturating_sub(end) as f64)
            ),
            (Some(_), _) => {
                format!(
                    "not randomised: the stack of {name} ends at {STACK_TOP:#x}, where it ends without randomization"
                )
            }
            (None, _) => {
                format!("inconclusive: {name} alone shows where its regions are, not whether they move")
            }
        }
    }

    fn table(&self) -> Table {
        let mut table = match self.sides.len() {
            0 | 1 => Table::new(&["region", "address"]),
            _ => Table::new(&["region", "first", "second", "moved by"]),
        };
        let files: Vec<&Move> = self.moves.iter().filter(|it| it.part == Part::File).collect();
        let is_short = |it: &&Move| it.part != Part::File || files.len() <= FEW;
        for it in self.moves.iter().filter(is_short) {
            let address = |at: Option<u64>| at.map_or_else(|| "none".to_owned(), |at| format!("{at:x}"));
            let mut cells = vec![short(it)];
            cells.extend(it.at.into_iter().take(self.sides.len()).map(address));
            if self.sides.len() > 1 {
                cells.push(it.distance().map(by).unwrap_or_default());
            }
            let look =
                if self.sides.len() > 1 && it.distance().is_none() { Look::Faint } else { Look::Plain };
            table.row(look, &cells, &[]);
        }
        if files.len() > FEW {
            let mut cells = vec![figures::count(files.len(), "other file", "other files")];
            let first = files[0].distance();
            if self.sides.len() > 1 && files.iter().all(|file| file.distance() == first) {
                cells.extend([String::new(), String::new(), first.map(by).unwrap_or_default()]);
            }
            table.row(Look::Faint, &cells, &[]);
        }
        table
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for group in together(&self.moves) {
            let names: Vec<String> = group.iter().map(|it| short(it)).collect();
            remarks.push(format!("{} moved as one", several(&names)));
        }
        let code_stays = self.common().any(|(it, distance)| it.part == Part::Code && distance == 0);
        if code_stays && self.moved() == Some(true) {
            remarks.push(match self.sides.iter().any(|side| side.is_fixed == Some(true)) {
                true => "the program is linked to a fixed address (ET_EXEC): its code and static data do not move".to_owned(),
                false => "code that stays while the rest moves is that of a program linked to a fixed address (ET_EXEC)".to_owned(),
            });
        }
        if self.moved() == Some(false) {
            remarks.push(match self.sides {
                [one, two, ..] if one.whose == two.whose => "both are the same process".to_owned(),
                _ => "so it is without randomization (kernel.randomize_va_space 0, setarch -R), and of processes that came \
                    from one by fork(2) without an execve(2)"
                    .to_owned(),
            });
        }
        if let [one, two, ..] = self.sides
            && one.layout.program != two.layout.program
        {
            remarks.push(
                "the two are different programs: their code and heap differ for that reason too".to_owned(),
            );
        }
        if self.moves.iter().any(|it| it.part == Part::Vsyscall) {
            remarks.push("[vsyscall] is at the same address in every process".to_owned());
        }
        let unnamed: usize = self.sides.iter().map(|side| side.layout.unnamed).sum();
        if unnamed > 0 {
            remarks.push(format!(
                "{} without a name and not shown",
                figures::count(unnamed, "mapping is", "mappings are")
            ));
        }
        if self.sides.len() == 1 {
            remarks.push("a second process of the same program shows region by region what moves".to_owned());
        }
        remarks
    }
}

/// Where the second is a process of the same program, the two are distinguished by their numbers.
fn whose(side: &Side) -> String {
    match &side.whose {
        Whose::Process(pid) => format!("process {pid}"),
        Whose::File(path) if path.as_os_str() == "-" => "standard input".to_owned(),
        Whose::File(path) => path.display().to_string(),
    }
}

fn subject(side: &Side) -> String {
    let program = side.layout.program.as_deref().unwrap_or("a program that its map does not name");
    let mut text = format!("{}: {program}", whose(side));
    if side.layout.others > 0 {
        let skipped = figures::count(
            side.layout.others,
            "line that is no mapping was",
            "lines that are no mappings were",
        );
        text.push_str(&format!("; {skipped} left out"));
    }
    text
}

/// The name in tables and sentences: of a file its last part.
fn short(it: &Move) -> String {
    match it.part {
        Part::Code => "code".to_owned(),
        Part::Heap => "heap".to_owned(),
        Part::Stack => "stack (its end)".to_owned(),
        Part::Kernel | Part::Vsyscall => it.name.clone(),
        Part::Library | Part::File | Part::Loader => {
            it.name.rsplit('/').next().unwrap_or(&it.name).to_owned()
        }
    }
}

/// `+0x1000`, or 0.
fn by(distance: u64) -> String {
    if distance == 0 { "0".to_owned() } else { signed(distance) }
}

/// All of a few names, the first of many.
fn several(names: &[String]) -> String {
    let mut shown: Vec<String> = names.to_vec();
    if names.len() > FEW {
        shown.truncate(FEW - 1);
        shown.push(format!("{} more", names.len() - shown.len()));
    }
    list(shown.iter().map(String::as_str)).unwrap_or_default()
}

fn hexadecimal(at: u64) -> String {
    format!("{at:#x}")
}
