use iced_x86::{Code as Instruction, Decoder, DecoderOptions};
use proptest::prelude::*;

use super::super::{Chosen, EXPERIMENTS};
use super::*;

fn image() -> Image {
    Image::new(&Parameters::default())
}

#[test]
fn it_begins_with_a_header_of_multiboot_that_says_where_it_belongs() {
    let image = image();
    let header: Vec<u32> = (0..8).map(|at| word(image.bytes(), at)).collect();
    let [magic, flags, checksum, header_address, load, load_end, bss_end, entry] = header[..] else {
        panic!("{header:x?}")
    };
    assert_eq!(magic, 0x1bad_b002);
    assert_eq!(flags, 1 << 16);
    assert_eq!(magic.wrapping_add(flags).wrapping_add(checksum), 0);
    assert_eq!(u64::from(header_address), BASE);
    assert_eq!(u64::from(load), BASE);
    assert_eq!(load_end, 0);
    assert_eq!(u64::from(entry), image.entry());
    // The image ends before the other addresses that it uses, and its bss before the end of memory.
    assert!(BASE as usize + image.bytes().len() <= 0x20_0000);
    assert!(bss_end <= 16 << 20);
    assert_eq!(image.bytes()[(image.entry() - BASE) as usize], 0xfa, "cli");
}

#[test]
fn the_list_in_the_image_is_the_list_of_experiments() {
    let image = image();
    let numbers: Vec<u32> = image.lines().map(|line| line[0]).collect();
    let named: Vec<u32> = EXPERIMENTS.iter().map(|experiment| experiment.number.into()).collect();
    assert_eq!(numbers, named);
    for (line, experiment) in image.lines().zip(EXPERIMENTS) {
        let [number, one, two, prepare, needs, cs, ss, flags] = line;
        let name = experiment.name;
        assert_eq!(image.start(experiment.number), Some(one.into()), "{name}");
        assert_eq!(two != 0, experiment.is_measured(), "{name}");
        assert_eq!(u64::from(needs), experiment.needs.map_or(0, |feature| feature.bit()), "{name}");
        let from = match cs {
            0 => super::super::Origin::Kernel,
            0x1b => super::super::Origin::Compatibility,
            _ => super::super::Origin::Program,
        };
        assert_eq!(from, experiment.from, "{name}");
        assert!(
            cs == 0 && ss == 0 && flags == 0 || cs & 3 == 3 && ss & 3 == 3 && flags & 0x202 == 0x202,
            "{name}"
        );
        let code = BASE as u32..BASE as u32 + image.bytes().len() as u32;
        assert!(code.contains(&one) == (cs == 0), "{number:x}");
        assert!(code.contains(&prepare), "{name}");
    }
    assert_eq!(image.start(0x3f), None);
}

/// The guest's instructions, which every engine must know.
const KNOWN: &str = "Adc Add And Bt Call Cld Cli Cmova Cmovb Cmove Cmp Cpuid Dec Div Hlt Imul In Inc Int \
    Int3 Invlpg Iretq Ja Jae Jb Jbe Je Jmp Jne Jns Lea Lfence Lgdt Lidt Lldt Lodsb Ltr Mov Movsb Movsd Movzx Nop \
    Not Or Out Pause Pop Popfq Push Pushfq Rdmsr Rdtsc Ret Retf Sbb Setne Sgdt Shl Shr Sidt Sti Stosb Stosd \
    Stosq Str Sub Swapgs Syscall Sysenter Sysexit Sysexitq Sysret Sysretq Test Ud1 Ud2 Verw Wrmsr Xchg Xor";

#[test]
fn its_code_is_made_of_instructions_that_every_engine_knows() {
    let image = image();
    let code = image.code();
    assert_eq!(code.iter().map(|code| code.bits).collect::<Vec<_>>(), [32, 64, 32, 64]);
    assert_eq!(BASE + code[0].place.start as u64, image.entry());
    let mut used = std::collections::BTreeSet::new();
    let mut undefined = 0;
    for Code { place, bits } in code {
        let address = BASE + place.start as u64;
        let bytes = &image.bytes()[place.clone()];
        let mut decoder = Decoder::with_ip(bits, bytes, address, DecoderOptions::NONE);
        while decoder.can_decode() {
            let instruction = decoder.decode();
            let at = (instruction.ip() - address) as usize;
            if instruction.code() == Instruction::INVALID {
                // The one invalid instruction, in two loops of two experiments.
                assert_eq!(bytes[at..at + 3], [0xf0, 0x89, 0xc8], "at {:x}", instruction.ip());
                undefined += 1;
                decoder.set_position(at + 3).unwrap();
                decoder.set_ip(instruction.ip() + 3);
                continue;
            }
            used.insert(format!("{:?}", instruction.mnemonic()));
        }
    }
    assert_eq!(undefined, 6);
    assert_eq!(used.into_iter().collect::<Vec<_>>(), KNOWN.split(' ').collect::<Vec<_>>());
}

#[test]
fn nothing_is_chosen_that_was_not() {
    let chosen: Chosen = EXPERIMENTS.iter().filter(|experiment| !experiment.is_measured()).collect();
    for experiment in EXPERIMENTS {
        assert_eq!(chosen.contains(experiment.number), !experiment.is_measured());
        assert_eq!(Chosen::MEASURED.contains(experiment.number), experiment.is_measured());
    }
}

proptest! {
    #[test]
    fn parameters_change_their_32_bytes_and_nothing_else(operations: u32, rounds: u32, numbers: Vec<u8>, dump: bool) {
        let mut chosen = Chosen::default();
        numbers.iter().for_each(|&number| chosen.insert(number));
        let command = if dump { Command::Dump } else { Command::Experiments };
        let image = Image::new(&Parameters { operations, rounds, command, chosen });
        let plain = self::image();
        prop_assert_eq!(image.bytes().len(), plain.bytes().len());
        let at = 0x20;
        prop_assert_eq!(&image.bytes()[..at], &plain.bytes()[..at]);
        prop_assert_eq!(&image.bytes()[at + 32..], &plain.bytes()[at + 32..]);
        let words: Vec<u32> = (8..16).map(|word_at| word(image.bytes(), word_at)).collect();
        prop_assert!((1..=Parameters::MOST).contains(&words[0]) && (1..=Parameters::MOST).contains(&words[1]));
        prop_assert_eq!(words[2], u32::from(dump));
        for number in 0..=u8::MAX {
            let is_set = number < 128 && words[4 + usize::from(number / 32)] >> (number % 32) & 1 == 1;
            prop_assert_eq!(is_set, chosen.contains(number));
            prop_assert_eq!(is_set, number < 128 && numbers.contains(&number));
        }
    }
}
