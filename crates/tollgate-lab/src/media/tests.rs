use iced_x86::{Decoder, DecoderOptions};

use super::*;
use crate::guest::{BASE, Parameters};

fn image() -> Image {
    Image::with_screen(&Parameters::default())
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

#[test]
fn a_form_is_chosen_by_the_end_of_a_name() {
    let forms = [
        ("lab.iso", Form::Iso),
        ("a.b/LAB.ISO", Form::Iso),
        ("lab.img", Form::Disk),
        ("lab.elf", Form::Elf),
        ("lab.bin", Form::Multiboot),
        ("lab", Form::Multiboot),
        ("lab.iso.gz", Form::Multiboot),
        (".iso", Form::Multiboot),
    ];
    for (name, form) in forms {
        assert_eq!(Form::from_path(Path::new(name)), form, "{name}");
    }
}

#[test]
fn the_loader_is_one_sector_with_a_signature_and_an_active_partition() {
    assert_eq!(sector::assembled(), SECTOR);
    let disk = Form::Disk.file(&image()).unwrap();
    assert_eq!(disk.len(), 1 << 20);
    assert_eq!(disk[510..512], [0x55, 0xaa]);
    let partition =
        |at: usize| (disk[at], disk[at + 4], word(&disk, at + 8) as usize, word(&disk, at + 12) as usize);
    let (first, second) = (partition(0x1be), partition(0x1ce));
    assert_eq!((first.0, first.1, first.2), (0x80, 0xda, 1));
    assert_eq!((second.0, second.1, second.2), (0, 0xef, first.2 + first.3), "one behind the other");
    assert_eq!((second.2 + second.3) * SECTOR, disk.len());
    assert!(disk[0x1de..0x1fe].iter().all(|byte| *byte == 0), "two partitions");
    // Jumps over what a BIOS may write.
    let mut decoder = Decoder::new(16, &disk[..3], DecoderOptions::NONE);
    assert_eq!(decoder.decode().near_branch_target(), 0x40);
    let image = image();
    assert_eq!(&disk[SECTOR..][..image.bytes().len()], image.bytes());
    assert_eq!(word(&disk, 0x1a8), 1);
    let sectors = usize::from(u16::from_le_bytes([disk[0x1b0], disk[0x1b1]]));
    assert!(sectors * SECTOR >= image.bytes().len() && (sectors - 1) * SECTOR < image.bytes().len());
}

#[test]
fn a_kernel_that_the_loader_cannot_read_is_refused() {
    let large = Image::with_programs(&Parameters::default(), &vec![0; 440 << 10]);
    for form in [Form::Disk, Form::Iso] {
        assert!(matches!(form.file(&large), Err(LabError::TooLarge { .. })));
    }
    let fits = Image::with_programs(&Parameters::default(), &vec![0; 400 << 10]);
    assert!(fat::volume(&vec![0; fat::SECTORS * SECTOR]).is_none() && fat::volume(&[]).is_none());
    assert!(Form::Disk.file(&fits).is_ok() && Form::Iso.file(&fits).is_ok());
}

#[test]
fn a_cd_has_the_kernel_where_its_catalog_and_its_directory_say() {
    let image = image();
    let cd = Form::Iso.file(&image).unwrap();
    let sector = |at: u32| &cd[at as usize * 2048..][..2048];
    assert_eq!(&sector(16)[..6], b"\x01CD001");
    assert_eq!(&sector(17)[..6], b"\0CD001");
    assert_eq!(&sector(18)[..6], b"\xffCD001");
    assert_eq!(word(sector(16), 80) as usize * 2048, cd.len());
    let catalog = sector(word(sector(17), 0x47));
    let sum = catalog[..32].as_chunks().0.iter();
    assert_eq!(sum.fold(0_u16, |sum, word| sum.wrapping_add(u16::from_le_bytes(*word))), 0);
    assert_eq!((catalog[32], catalog[33], &catalog[30..32]), (0x88, 0, &[0x55, 0xaa][..]));
    let loader = sector(word(catalog, 40));
    assert_eq!(&sector(word(loader, 0x1a8))[..32], &image.bytes()[..32]);
    // As a disk: the first sector names the same bytes by sectors of 512.
    assert_eq!(word(&cd, 0x1a8), 4 * word(loader, 0x1a8));
    let root = sector(word(sector(16), 156 + 2));
    let name = root.windows(9).position(|bytes| bytes == b"LAB.BIN;1").unwrap();
    let entry = &root[name - 33..];
    assert_eq!((word(entry, 2), word(entry, 10) as usize), (word(loader, 0x1a8), image.bytes().len()));
}

#[test]
fn an_elf_file_has_the_image_as_its_segment() {
    let image = image();
    let file = Form::Elf.file(&image).unwrap();
    assert_eq!(&file[..7], b"\x7fELF\x01\x01\x01");
    assert_eq!(u64::from(word(&file, 24)), image.entry());
    let segment = word(&file, 28) as usize;
    let [kind, offset, address, physical, bytes, memory, ..] =
        std::array::from_fn::<u32, 8, _>(|at| word(&file, segment + at * 4));
    assert_eq!((kind, u64::from(address), u64::from(physical)), (1, BASE, BASE));
    assert_eq!(&file[offset as usize..][..bytes as usize], image.bytes());
    assert!(offset < 8192 - 32 && memory >= bytes);
    assert_eq!(Form::Multiboot.file(&image).unwrap(), image.bytes());
}

#[test]
fn uefi_finds_an_application_with_the_kernel_behind_it() {
    let image = image();
    let disk = Form::Disk.file(&image).unwrap();
    let cd = Form::Iso.file(&image).unwrap();
    let volume = &disk[VOLUME..];
    assert_eq!(volume, &cd[VOLUME..], "the same one");
    // The catalog's last section is UEFI's, and leads to it.
    let catalog = &cd[word(&cd[17 * 2048..], 0x47) as usize * 2048..];
    assert_eq!((catalog[64], catalog[65], catalog[66]), (0x91, 0xef, 1));
    assert_eq!(word(catalog, 96 + 8) as usize * 2048, VOLUME);

    let file = file_of(volume, &[b"EFI        ", b"BOOT       ", b"BOOTX64 EFI"]);
    assert_eq!(file, efi::file(&image));
    assert_eq!(&file[..2], b"MZ");
    let head = word(&file, 60) as usize;
    assert_eq!((&file[head..head + 4], word(&file, head + 4)), (&b"PE\0\0"[..], 0x0001_8664));
    let optional = head + 24;
    let (entry, whole) = (word(&file, optional + 16) as usize, word(&file, optional + 56) as usize);
    assert_eq!((file[optional + 68], whole), (10, file.len()));
    let section = &file[optional + 240..];
    assert_eq!(&section[..6], b".text\0");
    let [bytes, address, stored, at] = [8, 12, 16, 20].map(|field| word(section, field) as usize);
    assert_eq!((address, at, bytes, stored, entry), (4096, 4096, whole - 4096, whole - 4096, 4096));
    let (kernel, length) = (word(&file, entry + 8) as usize, word(&file, entry + 12) as usize);
    assert_eq!(&file[entry + kernel..][..length], image.bytes());
}

/// The file at this path of a FAT12 volume.
fn file_of(volume: &[u8], path: &[&[u8; 11]]) -> Vec<u8> {
    let word16 = |bytes: &[u8], at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let (reserved, tables, roots, table) =
        (word16(volume, 14), usize::from(volume[16]), word16(volume, 17), word16(volume, 22));
    assert_eq!((word16(volume, 11), volume[13], word16(volume, 19) * SECTOR), (SECTOR, 1, volume.len()));
    let first = |at: usize| &volume[(reserved + at * table) * SECTOR..][..table * SECTOR];
    assert_eq!(first(0), first(1));
    let root = (reserved + tables * table) * SECTOR;
    let data = root + roots * 32;
    let mut bytes = volume[root..data].to_vec();
    for name in path {
        let entry = bytes.chunks(32).find(|entry| &entry[..11] == *name).unwrap();
        let (mut cluster, length) = (word16(entry, 26), word(entry, 28) as usize);
        bytes = Vec::new();
        while cluster < 0xff8 {
            assert!(cluster >= 2);
            bytes.extend(&volume[data + (cluster - 2) * SECTOR..][..SECTOR]);
            let pair = word16(first(0), cluster * 3 / 2);
            cluster = if cluster % 2 == 0 { pair & 0xfff } else { pair >> 4 };
        }
        if length > 0 {
            bytes.truncate(length);
        }
    }
    bytes
}
