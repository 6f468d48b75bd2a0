use proptest::prelude::*;

use super::*;

fn record() -> impl Strategy<Value = Record> {
    prop_oneof![of_an_experiment(), report().prop_map(Record::Program)]
}

fn report() -> impl Strategy<Value = Report> {
    (0..8, any::<[u64; 16]>(), prop::collection::vec(any::<u8>(), 1..=64)).prop_map(
        |(kind, general, text)| {
            let [a, b, c, d, e, f, g, h, i, ..] = general;
            let (program, number) = (a as u8, b as u32);
            let thread = Thread { program, number };
            let fault = Fault { vector: c as u8, error: d as u32, cs: e as u16, rip: f };
            let place = ThreadState { rsp: g, rflags: h, ticks: i };
            match kind {
                0 => Report::Unloaded { program, why: number },
                1 => Report::Out { program, text: Text::from_bytes(&text).unwrap() },
                2 => Report::Exit { thread, status: c, ticks: d, calls: e, switches: f },
                3 => Report::Dead { thread, fault, cr2: b, place },
                4 => Report::Unknown { thread, cs: e as u16, rip: f, place },
                5 => Report::Registers { thread, general },
                6 => Report::Stuck { thread },
                _ => Report::Stop,
            }
        },
    )
}

fn of_an_experiment() -> impl Strategy<Value = Record> {
    (0..8, any::<[u64; 8]>()).prop_map(|(kind, [a, b, c, d, e, f, g, h])| {
        let (experiment, number) = (a as u8, b as u32);
        let fault = Fault { vector: c as u8, error: d as u32, cs: e as u16, rip: f };
        let (iterations, ticks_one, ticks_two, count_one, count_two, value) = (c as u32, d, e, f, g, h);
        match kind {
            0 => Record::Begin {
                maker: Maker { ebx_edx: a, ecx: b as u32 },
                signature: c as u32,
                features: d,
                operations: e as u32,
                rounds: f as u32,
            },
            1 => Record::Try { experiment },
            2 => {
                let round = Round { iterations, ticks_one, ticks_two, count_one, count_two, value };
                Record::Done { experiment, number, round }
            }
            3 => Record::Lacks { experiment, features: b },
            4 => Record::Fault { experiment, number, fault, count: g },
            5 => Record::Broken { fault },
            6 => Record::Refused,
            _ => Record::End { lines: b as u32 },
        }
    })
}

#[test]
fn lines_that_a_guest_wrote() {
    let text = "SeaBIOS (version 1.16.2)\r\n\
        \x1b[2Jtg1 begin 69746e6568747541 444d4163 60fb1 3 3e8 1 *86286e75\r\n\
        tg1 try 0 *e91b05ce\n\
        tg1 done 0 0 3e8 1392 1f4a 3e8 7d0 0 *e85526d1\n\
        tg1 lacks 14 4 *3d6302be\n\
        tg1 fault 42 0 d 10 2b 4007c0 0 *2c8b5e9a\n\
        tg1 end 3f *8f8b77e3\n";
    let serial = Serial::read(text.as_bytes());
    assert_eq!(serial.complaints, []);
    let [begin, Record::Try { experiment: 0 }, done, lacks, fault, Record::End { lines: 0x3f }] =
        serial.records[..]
    else {
        panic!("{serial:?}")
    };
    let Record::Begin { maker, signature: 0x60fb1, features: 3, operations: 1000, rounds: 1 } = begin else {
        panic!("{begin:?}")
    };
    assert_eq!(maker.name(), "AuthenticAMD");
    let Record::Done { experiment: 0, number: 0, round } = done else { panic!("{done:?}") };
    assert_eq!(round.ticks(), Some(3000));
    assert!(round.is_counted());
    assert_eq!(lacks, Record::Lacks { experiment: 0x14, features: 4 });
    let Record::Fault { experiment: 0x42, number: 0, fault, count: 0 } = fault else { panic!("{fault:?}") };
    assert_eq!((fault.vector, fault.error, fault.ring()), (13, 0x10, 3));
}

#[test]
fn lines_that_are_no_records_are_complained_of() {
    let with_checksum = |line: &str| format!("{line} *{:08x}", checksum(line.as_bytes()));
    let long = format!("tg1 done {}", "0 ".repeat(300));
    for (line, complaint) in [
        ("tg2 end 1 *00000000".to_owned(), Complaint::Version),
        ("tg10 end 1 *00000000".to_owned(), Complaint::Version),
        ("tg1".to_owned(), Complaint::Cut),
        ("tg1 end 3f *8f8b77".to_owned(), Complaint::Cut),
        ("tg1 end 3f *8F8B77E3".to_owned(), Complaint::Cut),
        ("tg1 end 3e *8f8b77e3".to_owned(), Complaint::Checksum { found: 0x8f8b_77e3, right: 0x908b_7976 }),
        (with_checksum("tg1"), Complaint::Kind),
        (with_checksum("tg1 nothing"), Complaint::Kind),
        (with_checksum("tg1 end"), Complaint::Fields),
        (with_checksum("tg1 end 1 2"), Complaint::Fields),
        (with_checksum("tg1 end  1"), Complaint::Fields),
        (with_checksum("tg1 end 100000000"), Complaint::Fields),
        (with_checksum("tg1 try 100"), Complaint::Fields),
        (with_checksum("tg1 end +1"), Complaint::Fields),
        (with_checksum("tg1 out 0"), Complaint::Fields),
        (with_checksum("tg1 out 0 4"), Complaint::Fields),
        (with_checksum("tg1 out 0 4G"), Complaint::Fields),
        (with_checksum(&format!("tg1 out 0 {}", "00".repeat(65))), Complaint::Fields),
        (long.clone(), Complaint::Long(long.len())),
    ] {
        let serial = Serial::read(line.as_bytes());
        assert_eq!(serial.records, [], "{line}");
        assert_eq!(serial.complaints, [(1, complaint)], "{line}");
    }
    let other = b"nothing of ours\n\ntg\ntgx\ntollgate\n\xff\xfe";
    assert_eq!(Serial::read(other), Serial::default());
}

#[test]
fn the_line_of_the_32_bit_entry_has_its_checksum() {
    assert!(include_str!("../records.s").contains(&format!("\"{}\\n\"", Record::Refused)));
}

proptest! {
    #[test]
    fn what_is_written_is_read(records in prop::collection::vec(record(), 0..20)) {
        let text: String = records.iter().map(|record| format!("{record}\r\n")).collect();
        let serial = Serial::read(text.as_bytes());
        prop_assert_eq!(serial.complaints, []);
        prop_assert_eq!(serial.records, records);
    }

    #[test]
    fn a_changed_byte_is_noticed(record in record(), at: prop::sample::Index, byte: u8) {
        let line = record.to_string();
        let mut bytes = line.clone().into_bytes();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != byte && at > 2);
        bytes[at] = byte;
        prop_assert!(!Serial::read(&bytes).records.contains(&record));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>, lines in "(tg[0-9]? ?[a-z0-9* ]{0,40}\n){0,9}") {
        Serial::read(&bytes);
        let serial = Serial::read(lines.as_bytes());
        prop_assert!(serial.records.len() + serial.complaints.len() <= lines.lines().count());
    }
}
