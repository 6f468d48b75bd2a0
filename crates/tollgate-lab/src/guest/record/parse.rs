use super::{Fault, Maker, Record, Report, Round, Text, Thread, ThreadState, VERSION, checksum};

/// Bytes of the longest line that is read. The guest's longest has 320: all registers of a program.
const LONGEST: usize = 400;

/// The most records that are read: 100 experiments in ten thousand rounds.
const MOST: usize = 1 << 20;

/// Why a line of the guest is not a record.
#[expect(missing_docs, reason = "the message of a complaint says what it is")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Complaint {
    #[error("a record of a version other than tg1: read it with the tollgate that wrote its image")]
    Version,
    #[error("a line of {0} bytes, longer than any record")]
    Long(usize),
    #[error("the record has no checksum at its end: it was cut off, or bytes were lost")]
    Cut,
    #[error("the checksum is {found:08x} and should be {right:08x}: bytes were lost or changed on the way")]
    Checksum { found: u32, right: u32 },
    #[error("no such kind of record")]
    Kind,
    #[error("a field is missing, is not a number, or is too large")]
    Fields,
    #[error("more than {MOST} records: the rest was not read")]
    TooMany,
}

/// Records from a serial port.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Serial {
    /// Records, in order.
    pub records: Vec<Record>,
    /// Lines that are wrong, with their numbers from 1.
    pub complaints: Vec<(usize, Complaint)>,
}

impl Serial {
    /// Reads the output of a serial port, or a file of it. Lines of others are skipped.
    pub fn read(bytes: &[u8]) -> Self {
        let mut serial = Self::default();
        for (at, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            if serial.records.len() + serial.complaints.len() >= MOST {
                serial.complaints.push((at + 1, Complaint::TooMany));
                break;
            }
            let Some(line) = own(line.strip_suffix(b"\r").unwrap_or(line)) else { continue };
            match record(line) {
                Ok(record) => serial.records.push(record),
                Err(complaint) => serial.complaints.push((at + 1, complaint)),
            }
        }
        serial
    }
}

/// Returns the line from `tg` and a digit on; `None` if it has none.
fn own(line: &[u8]) -> Option<&[u8]> {
    let at = line.windows(3).position(|three| three.starts_with(b"tg") && three[2].is_ascii_digit())?;
    line.get(at..)
}

fn record(line: &[u8]) -> Result<Record, Complaint> {
    if line.len() > LONGEST {
        return Err(Complaint::Long(line.len()));
    }
    let rest = line.strip_prefix(VERSION.as_bytes()).ok_or(Complaint::Version)?;
    if rest.first().is_some_and(u8::is_ascii_digit) {
        return Err(Complaint::Version);
    }
    let at = line.len().checked_sub(10).ok_or(Complaint::Cut)?;
    let (said, sum) = line.split_at(at);
    let found = sum.strip_prefix(b" *").and_then(number).ok_or(Complaint::Cut)?;
    let right = checksum(said);
    if found != u64::from(right) {
        return Err(Complaint::Checksum { found: found as u32, right });
    }
    let mut words = said.split(|&byte| byte == b' ').skip(1);
    let kind = words.next().ok_or(Complaint::Kind)?;
    let mut fields = Fields(words);
    let record = typed(kind, &mut fields)?;
    if fields.0.next().is_some() { Err(Complaint::Fields) } else { Ok(record) }
}

fn typed<'a, I: Iterator<Item = &'a [u8]>>(kind: &[u8], fields: &mut Fields<I>) -> Result<Record, Complaint> {
    Ok(match kind {
        b"begin" => Record::Begin {
            maker: Maker { ebx_edx: fields.next()?, ecx: fields.next()? },
            signature: fields.next()?,
            features: fields.next()?,
            operations: fields.next()?,
            rounds: fields.next()?,
        },
        b"try" => Record::Try { experiment: fields.next()? },
        b"done" => Record::Done {
            experiment: fields.next()?,
            number: fields.next()?,
            round: Round {
                iterations: fields.next()?,
                ticks_one: fields.next()?,
                ticks_two: fields.next()?,
                count_one: fields.next()?,
                count_two: fields.next()?,
                value: fields.next()?,
            },
        },
        b"lacks" => Record::Lacks { experiment: fields.next()?, features: fields.next()? },
        b"fault" => Record::Fault {
            experiment: fields.next()?,
            number: fields.next()?,
            fault: fields.fault()?,
            count: fields.next()?,
        },
        b"broken" => Record::Broken { fault: fields.fault()? },
        b"refused" => Record::Refused,
        b"end" => Record::End { lines: fields.next()? },
        _ => Record::Program(report(kind, fields)?),
    })
}

fn report<'a, I: Iterator<Item = &'a [u8]>>(
    kind: &[u8],
    fields: &mut Fields<I>,
) -> Result<Report, Complaint> {
    Ok(match kind {
        b"unloaded" => Report::Unloaded { program: fields.next()?, why: fields.next()? },
        b"out" => Report::Out { program: fields.next()?, text: fields.text()? },
        b"exit" => Report::Exit {
            thread: fields.thread()?,
            status: fields.next()?,
            ticks: fields.next()?,
            calls: fields.next()?,
            switches: fields.next()?,
        },
        b"dead" => Report::Dead {
            thread: fields.thread()?,
            fault: fields.fault()?,
            cr2: fields.next()?,
            place: fields.place()?,
        },
        b"unknown" => Report::Unknown {
            thread: fields.thread()?,
            cs: fields.next()?,
            rip: fields.next()?,
            place: fields.place()?,
        },
        b"regs" => {
            let thread = fields.thread()?;
            let mut general = [0; 16];
            for register in &mut general {
                *register = fields.next()?;
            }
            Report::Registers { thread, general }
        }
        b"stuck" => Report::Stuck { thread: fields.thread()? },
        b"stop" => Report::Stop,
        _ => return Err(Complaint::Kind),
    })
}

struct Fields<I>(I);

impl<'a, I: Iterator<Item = &'a [u8]>> Fields<I> {
    fn next<T: TryFrom<u64>>(&mut self) -> Result<T, Complaint> {
        let value = self.0.next().and_then(number).ok_or(Complaint::Fields)?;
        T::try_from(value).map_err(|_| Complaint::Fields)
    }

    fn fault(&mut self) -> Result<Fault, Complaint> {
        Ok(Fault { vector: self.next()?, error: self.next()?, cs: self.next()?, rip: self.next()? })
    }

    fn thread(&mut self) -> Result<Thread, Complaint> {
        Ok(Thread { program: self.next()?, number: self.next()? })
    }

    fn place(&mut self) -> Result<ThreadState, Complaint> {
        Ok(ThreadState { rsp: self.next()?, rflags: self.next()?, ticks: self.next()? })
    }

    fn text(&mut self) -> Result<Text, Complaint> {
        let word = self.0.next().ok_or(Complaint::Fields)?;
        let (pairs, rest) = word.as_chunks::<2>();
        let bytes: Option<Vec<u8>> =
            pairs.iter().map(|pair| number(pair).and_then(|byte| u8::try_from(byte).ok())).collect();
        bytes.filter(|_| rest.is_empty()).and_then(|bytes| Text::from_bytes(&bytes)).ok_or(Complaint::Fields)
    }
}

fn number(word: &[u8]) -> Option<u64> {
    let is_number =
        matches!(word.len(), 1..=16) && word.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let text = std::str::from_utf8(word).ok().filter(|_| is_number)?;
    u64::from_str_radix(text, 16).ok()
}
