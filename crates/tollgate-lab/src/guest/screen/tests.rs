use std::time::Duration;

use tollgate_x86::Vendor;

use super::super::{BASE, Chosen, Image, Outcome, Outcomes, Serial};
use super::*;
use crate::{Engine, Interpreter, Machine, Output};

/// Bytes of the row of an experiment.
const ROW: usize = 8;

/// What the interpreter has done with the experiments, on a processor of this maker.
fn run(parameters: &Parameters, vendor: Vendor) -> Output {
    let image = Image::with_screen(parameters);
    let machine = Machine {
        memory: 16 << 20,
        vendor: Some(vendor),
        patience: Duration::from_secs(60),
        instructions: 1 << 30,
    };
    let output = Interpreter.run(image.bytes(), BASE, image.entry(), machine).unwrap();
    assert_eq!(output.cut_short, None);
    output
}

/// The lines of a text screen.
fn lines(memory: &[u8]) -> Vec<String> {
    let screen = &memory[0xb_8000..][..WIDTH * LINES * 2];
    let character = |cell: &[u8; 2]| if cell[0] == LINE { '|' } else { char::from(cell[0]) };
    let text = |line: &[[u8; 2]]| line.iter().map(character).collect::<String>().trim_end().to_owned();
    screen.as_chunks::<2>().0.chunks(WIDTH).map(text).collect()
}

/// All of them, the wrong set-ups as well.
fn all() -> Chosen {
    EXPERIMENTS.iter().collect()
}

#[test]
fn the_screen_and_the_serial_port_have_the_same_table() {
    for (vendor, name) in [(Vendor::Intel, "GenuineIntel"), (Vendor::Amd, "AuthenticAMD")] {
        let parameters = Parameters { operations: 10, rounds: 3, ..Parameters::default() };
        let output = run(&parameters, vendor);
        let lines = lines(output.memory.as_deref().unwrap());
        let title = " tollgate lab: ticks of the time-stamp counter, 3 rounds of 10";
        assert_eq!(lines[0], format!("{title:75}done"));
        assert_eq!(lines[1].trim(), "tollgate's interpreter, in a guest of");
        assert!(lines[24].ends_with("tollgate lab --from FILE"), "{}", lines[24]);
        let serial = String::from_utf8(output.serial.clone()).unwrap();
        assert!(serial.ends_with(&format!("\n\n{}\n", lines.join("\n"))), "{serial}");
        let read = Serial::read(&output.serial);
        assert_eq!(read.complaints, [], "the table is no record");
        let outcomes = Outcomes::of(&read.records);
        assert_eq!(outcomes.maker.unwrap().name(), name);
        for experiment in EXPERIMENTS.iter().filter(|it| it.is_measured()) {
            let shown = figures(&lines, experiment.name);
            let wanted = match outcomes.of_number(experiment.number).unwrap() {
                Outcome::Done(rounds) => {
                    let figure = format!("{:.1}", rounds[1].ticks().unwrap() as f64 / 10.0);
                    vec![figure.clone(), figure]
                }
                Outcome::Fault { fault, .. } => {
                    vec![format!("#{}", Exception(fault.vector).mnemonic().unwrap())]
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(shown, wanted, "{}", experiment.name);
        }
    }
}

/// The words behind a name in the table.
fn figures(lines: &[String], name: &str) -> Vec<String> {
    let columns = lines.iter().flat_map(|line| line.split('|'));
    let mut found =
        columns.filter_map(|column| column.strip_prefix(' ')?.strip_prefix(name)?.strip_prefix(' '));
    found.next().unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

#[test]
fn every_experiment_has_its_place_also_where_all_are_chosen() {
    let parameters = Parameters { operations: 3, rounds: 2, chosen: all(), ..Parameters::default() };
    let output = run(&parameters, Vendor::Intel);
    let lines = lines(output.memory.as_deref().unwrap());
    for experiment in EXPERIMENTS {
        let name = experiment.name.strip_prefix("wrong-").unwrap_or(experiment.name);
        assert_eq!(figures(&lines, name).len(), 1, "{name} in {lines:#?}");
    }
    assert_eq!(figures(&lines, "gate-dpl"), ["#GP(412)"]);
    assert_eq!(figures(&lines, "read"), ["#PF(5)"]);
}

#[test]
fn twenty_five_wrong_set_ups_have_their_places() {
    let (wrong, measured): (Vec<&Experiment>, Vec<_>) =
        EXPERIMENTS.iter().partition(|it| it.group == Group::Wrong);
    let many: Vec<&Experiment> = measured.into_iter().chain(wrong.into_iter().cycle().take(25)).collect();
    let columns = Columns::new(&many);
    assert_eq!((columns.count, columns.gap), (3, 0));
    let places = places(&many, &columns);
    assert_eq!(places.len(), many.len() + 5);
    for (at, (column, row, line)) in places.iter().enumerate() {
        assert!(*column < 3 && *row < ROWS);
        assert!(at == 0 || (places[at - 1].0, places[at - 1].1) < (*column, *row));
        assert!(
            *row + 1 < ROWS || matches!(line, Line::Experiment(_)),
            "a head alone at the end of a column"
        );
    }
}

#[test]
fn what_the_processor_lacks_and_what_went_wrong_is_said() {
    let image = Image::with_screen(&Parameters { operations: 3, rounds: 2, ..Parameters::default() });
    let mut bytes = image.bytes().to_vec();
    // Another value is due of `imul`, and `int` is to be counted where there is no handler that counts.
    let begins = bytes.len() - laid_out(&Parameters::default()).len();
    let row = |number: usize| begins + WIDTH * LINES * 2 + number * ROW;
    bytes[row(0x0e) + 4] = 28;
    bytes[row(0x17) + 2] |= COUNTED as u8;
    let machine = crate::sample::machine(Duration::from_secs(60));
    let output = Interpreter.run(&bytes, BASE, image.entry(), machine).unwrap();
    let lines = lines(output.memory.as_deref().unwrap());
    assert_eq!(figures(&lines, "imul"), ["wrong"]);
    assert_eq!(figures(&lines, "lfence"), ["wrong"]);
    assert_eq!(figures(&lines, "verw"), ["1.0", "1.0"]);
}

#[test]
fn nothing_is_shown_over_something_else() {
    for chosen in [Chosen::MEASURED, all(), Chosen::default()] {
        let bytes = laid_out(&Parameters { chosen, ..Parameters::default() });
        assert_eq!(PICTURE, 5160 + glyphs::GLYPHS.len() * 5);
        let picture = usize::from(u16::from_le_bytes([bytes[5156], bytes[5157]]));
        assert_eq!(picture, if bytes.len() > PICTURE { PICTURE } else { 0 }, "where the picture code begins");
        let cells = bytes.as_chunks::<2>().0;
        let rows = cells[WIDTH * LINES..].chunks(4).take(NUMBERS);
        for (number, row) in (0..).zip(rows) {
            let end = usize::from(u16::from_le_bytes(row[0]));
            let exists = EXPERIMENTS.iter().any(|experiment| experiment.number == number);
            assert_eq!(end > 0, exists && chosen.contains(number), "{number:x}");
            let flags = u16::from_le_bytes(row[1]);
            let field = if flags & HAS_MINIMUM == 0 { end..end } else { end..end + FIGURE };
            let blank = end.saturating_sub(FIGURE - 4)..field.end;
            assert!(end == 0 || cells[blank].iter().all(|cell| cell[0] == b' '), "{number:x}");
        }
    }
}

#[test]
fn a_screen_of_pixels_shows_the_same() {
    // As the text has it, and as GRUB does.
    is_drawn(24, 110);
    is_drawn(32, 112);
}

/// On 1024 times 768 pixels of so many bits, whose colours are described there.
fn is_drawn(bits: u8, colours: usize) {
    const AT: usize = 0xa0_0000;
    const PITCH: usize = 1100 * 4;
    let bytes_of_pixel = usize::from(bits / 8);
    let image = Image::with_screen(&Parameters { operations: 3, rounds: 2, ..Parameters::default() });
    // The interpreter enters as multiboot does, but with no information: it is put where the guest keeps it, and another number of
    // the loader is expected.
    let mut bytes = image.bytes().to_vec();
    let magic = bytes.windows(5).position(|bytes| bytes == [0x3d, 0x02, 0xb0, 0xad, 0x2b]).unwrap();
    bytes[magic + 4] = 0;
    let info = image.screen_info();
    let words = [(0, 1 << 12), (88, AT as u32), (96, PITCH as u32), (100, 1024), (104, 768)];
    for (at, word) in words {
        bytes[info + at..info + at + 4].copy_from_slice(&u32::to_le_bytes(word));
    }
    bytes[info + 108..info + 110].copy_from_slice(&[bits, 1]);
    bytes[info + colours..info + colours + 6].copy_from_slice(&[16, 8, 8, 8, 0, 8]);
    let machine = crate::sample::machine(Duration::from_secs(60));
    let output = Interpreter.run(&bytes, BASE, image.entry(), machine).unwrap();
    assert_eq!(output.cut_short, None);
    let memory = output.memory.unwrap();
    assert!(memory[0xb_8000..][..WIDTH * LINES * 2].iter().all(|byte| *byte == 0), "there is no text screen");
    // Dots of 2 pixels, in the middle: 960 of 1024 and 500 of 768.
    let pixel = |x: usize, y: usize| {
        let at = AT + (134 + y) * PITCH + (32 + x) * bytes_of_pixel;
        [memory[at + 2], memory[at + 1], memory[at]]
    };
    let serial = String::from_utf8(output.serial).unwrap();
    let table: Vec<&str> = serial.lines().skip_while(|line| !line.starts_with(" tollgate lab")).collect();
    assert_eq!(table.len(), LINES);
    for (line, text) in table.iter().enumerate() {
        for (column, byte) in text.bytes().enumerate() {
            let glyph =
                if byte == b'|' { glyphs::GLYPHS[95] } else { glyphs::GLYPHS[usize::from(byte - b' ')] };
            let (x, y) = (column * 12, line * 20);
            let ground = pixel(x, y);
            for (dots, column) in glyph.iter().enumerate() {
                for dot in 0..8 {
                    let is_lit = pixel(x + dots * 2 + 1, y + (dot + 1) * 2 + 1) != ground;
                    assert_eq!(is_lit, column >> dot & 1 == 1, "{text}: {}", char::from(byte));
                }
            }
        }
    }
    assert_eq!(pixel(0, 0), [0, 0, 0xaa], "blue");
    assert_eq!(pixel(4, 40), [0; 3], "black");
}
