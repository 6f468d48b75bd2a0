//! The few build options of a kernel that affect its address. Pure.

use tollgate_kconfig::{Configuration, Value};

/// The build options of a kernel that affect its address.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "KernelOptions"))]
pub struct Options {
    /// `CONFIG_RANDOMIZE_BASE`: the kernel can move itself.
    pub randomize_base: bool,
    /// `CONFIG_RANDOMIZE_MEMORY`: the kernel can move its direct map and other areas.
    pub randomize_memory: bool,
    /// `CONFIG_RELOCATABLE`: the kernel can run at an address that it was not linked to.
    pub relocatable: bool,
    /// `CONFIG_HIBERNATION`.
    pub hibernation: bool,
    /// `CONFIG_PHYSICAL_START`.
    pub physical_start: Option<u64>,
    /// `CONFIG_PHYSICAL_ALIGN`.
    pub physical_align: Option<u64>,
}

impl Options {
    pub(super) fn of(configuration: &Configuration) -> Self {
        let is_on = |name: &str| configuration.value(name) == Some(&Value::BuiltIn);
        let number = |name: &str| match configuration.value(name) {
            Some(Value::Number(text)) => hexadecimal(text),
            _ => None,
        };
        Self {
            randomize_base: is_on("RANDOMIZE_BASE"),
            randomize_memory: is_on("RANDOMIZE_MEMORY"),
            relocatable: is_on("RELOCATABLE"),
            hibernation: is_on("HIBERNATION"),
            physical_start: number("PHYSICAL_START"),
            physical_align: number("PHYSICAL_ALIGN").filter(|align| align.is_power_of_two()),
        }
    }

    /// The physical address to which the image is linked: `LOAD_PHYSICAL_ADDR` in arch/x86/include/asm/page_types.h.
    pub fn load_physical(&self) -> Option<u64> {
        let (start, align) = (self.physical_start?, self.physical_align?);
        start.checked_next_multiple_of(align).filter(|&start| start < 1 << 30)
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {

    use super::*;

    fn options(text: &str) -> Options {
        Options::of(&tollgate_kconfig::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn options_of_a_configuration() {
        let read = options(
            "# CONFIG_HIBERNATION is not set\nCONFIG_RANDOMIZE_BASE=y\nCONFIG_PHYSICAL_START=0x1000000\n\
             CONFIG_PHYSICAL_ALIGN=0x200000\nCONFIG_RELOCATABLE=m\n",
        );
        assert!(read.randomize_base && !read.hibernation && !read.relocatable);
        assert_eq!(read.load_physical(), Some(0x100_0000));
        assert_eq!(options("CONFIG_PHYSICAL_ALIGN=0x3\n").physical_align, None);
    }

    takes_any! {
        start in "0x[0-9a-f]{1,20}", align in "0x[0-9a-f]{1,20}" =>
            options(&format!("CONFIG_PHYSICAL_START={start}\nCONFIG_PHYSICAL_ALIGN={align}\n")).load_physical()
    }
}
