//! Amounts of bytes as they are typed: `1048576`, `512M`, `4GiB`.

/// Bytes; K, M, G, T and P are powers of 1024, with or without a trailing `iB`. The error is the fault and a correct value.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || "it is not a size, such as 1048576, 512M or 4GiB".to_owned();
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit = unit.trim_start().to_ascii_lowercase();
    let power = match unit.strip_suffix("ib").unwrap_or(&unit) {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "p" => 50,
        unit if !unit.bytes().all(|byte| byte.is_ascii_alphabetic()) => return Err(wrong()),
        _ => return Err("its unit is not one of K, M, G, T and P (powers of 1024)".to_owned()),
    };
    number.checked_mul(1 << power).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_or_refused_with_the_reason() {
        let read = |text| parse_bytes(text).ok();
        assert_eq!(read("1048576"), Some(1 << 20));
        assert_eq!(read("512M"), Some(512 << 20));
        assert_eq!(read("4 GiB"), Some(4 << 30));
        assert_eq!([read("1k"), read("1P")], [Some(1024), Some(1 << 50)]);
        for wrong in ["", "M", "-1", "1.5G", "1MB", "99999999T", "4 weeks", "0x10", "٣"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong:?} was taken for a size");
        }
    }
}
