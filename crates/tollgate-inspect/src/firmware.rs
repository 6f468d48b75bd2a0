//! The vendor of the firmware's tables, which identifies some hypervisors that have no other signature.

use tollgate_model::Unknown;

use crate::machine::{Answer, Machine, found};

pub(crate) fn table_maker(machine: &Machine) -> Answer<String> {
    const TABLE: &str = "/sys/firmware/acpi/tables/FACP";
    const HEADER: u64 = 36;
    const MAKER: std::ops::Range<usize> = 10..16;
    let header = machine.start_of(TABLE, HEADER)?;
    let maker = header.value.get(MAKER).and_then(|maker| str::from_utf8(maker).ok());
    let maker = maker.map(|maker| maker.trim_matches(['\0', ' '])).filter(|maker| {
        !maker.is_empty() && maker.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
    });
    match maker {
        Some(maker) => found(maker.to_owned(), format!("{TABLE} OEMID")),
        None => Err(Unknown::Unreadable(format!("{TABLE}: has no header of a table"))),
    }
}

pub(crate) fn hypervisor_of(maker: &str) -> Option<&'static str> {
    Some(match maker {
        "FIRECK" => "Firecracker",
        "CLOUDH" => "Cloud Hypervisor",
        "BOCHS" => "QEMU",
        "VBOX" => "VirtualBox",
        "VRTUAL" => "Hyper-V",
        "Xen" => "Xen",
        "CROSVM" => "crosvm",
        "BHYVE" => "bhyve",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makers_are_six_characters_of_the_header() {
        let tree = tempfile::tempdir().unwrap();
        let machine = Machine::captured(tree.path());
        let maker = |header: &[u8]| {
            crate::testing::write(tree.path(), "sys/firmware/acpi/tables/FACP", header);
            table_maker(&machine).map(|found| found.value)
        };
        let header = b"FACP\x14\x01\0\0\x06fFIRECKFCVMFADT\0\0\0\0FCAT\x19\x01$ ";
        assert_eq!(maker(header), Ok("FIRECK".to_owned()));
        assert_eq!(hypervisor_of("FIRECK"), Some("Firecracker"));
        assert_eq!(maker(b"FACP\x14\x01\0\0\x06fVBOX  VBOX"), Ok("VBOX".to_owned()));
        for header in [&b"FACP"[..], b"", b"FACP\0\0\0\0\0\0\0\0\0\0\0\0\0\0", &[0xff; 36]] {
            assert!(matches!(maker(header), Err(Unknown::Unreadable(_))), "{header:?}");
        }
        assert_eq!(hypervisor_of("ALASKA"), None, "firmware of real machines");
    }
}
