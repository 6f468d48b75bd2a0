//! A boot image, `bzImage` or `vmlinuz`: where in it the compressed kernel lies
//! (Documentation/arch/x86/boot.rst, "The Real-Mode Kernel Header").

use crate::error::ConfigError;

/// The bytes of a file that show its type, and where a boot image's payload lies.
pub(crate) const HEAD: usize = 0x260;

/// The setup code before the kernel proper is `setup_sects` sectors, and one for the boot sector.
const SETUP_SECTS: usize = 0x1f1;
const BOOT_FLAG: usize = 0x1fe;
const MAGIC: usize = 0x202;
const VERSION: usize = 0x206;
/// Where the release stands, counted from 0x200.
const KERNEL_VERSION: usize = 0x20e;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;
const SECTOR: u64 = 512;
/// The header has the payload's offset from this version of the protocol on.
const WITH_PAYLOAD: u16 = 0x208;
/// No kernel is larger.
const MOST: u64 = 1 << 28;
/// No kernel lies farther in: before it stand the setup code and what unpacks it. As much is held in memory.
const MOST_BEFORE: u64 = 1 << 24;

/// The compressed kernel in a boot image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    /// Bytes before it.
    pub offset: u64,
    /// Bytes of it.
    pub length: u64,
    /// Where in the file the release stands, where the header says.
    pub release: Option<usize>,
}

/// Whether a file that begins so is a boot image.
pub(crate) fn is_image(head: &[u8]) -> bool {
    head.get(BOOT_FLAG..BOOT_FLAG + 2) == Some(b"\x55\xaa") && head.get(MAGIC..MAGIC + 4) == Some(b"HdrS")
}

/// Where the payload lies, from the first [`HEAD`] bytes.
pub(crate) fn payload(head: &[u8]) -> Result<Payload, ConfigError> {
    let short = || ConfigError::Image("it ends within its header".to_owned());
    let byte = |at: usize| head.get(at).copied().ok_or_else(short);
    let word = |at: usize| Ok(u16::from_le_bytes([byte(at)?, byte(at + 1)?]));
    let long = |at: usize| Ok(u32::from(word(at)?) | u32::from(word(at + 2)?) << 16);
    let version = word(VERSION)?;
    if version < WITH_PAYLOAD {
        return Err(ConfigError::Image(format!(
            "boot protocol {}.{:02} does not say where the kernel lies, 2.08 does",
            version >> 8,
            version & 0xff
        )));
    }
    // No sectors at all stand for four.
    let sectors = match byte(SETUP_SECTS)? {
        0 => 4,
        sectors => sectors,
    };
    let offset = (u64::from(sectors) + 1) * SECTOR + u64::from(long(PAYLOAD_OFFSET)?);
    let length = u64::from(long(PAYLOAD_LENGTH)?);
    if length == 0 || length > MOST || offset > MOST_BEFORE {
        return Err(ConfigError::Image(format!("its header has {length} bytes of kernel at byte {offset}")));
    }
    let release = match word(KERNEL_VERSION)? {
        0 => None,
        at => Some(usize::from(at) + 0x200),
    };
    Ok(Payload { offset, length, release })
}

/// The release in `6.1.0-56-amd64 (builder) #1 SMP …`, from the bytes where that stands.
pub(crate) fn release(bytes: &[u8]) -> Option<String> {
    let name: Vec<u8> = bytes.iter().copied().take(64).take_while(u8::is_ascii_graphic).collect();
    let begins_so = name.first().is_some_and(u8::is_ascii_digit);
    begins_so.then(|| String::from_utf8_lossy(&name).into_owned())
}
