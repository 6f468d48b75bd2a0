//! The mappings of a process: `/proc/pid/maps`, proc_pid_maps(5). Pure.

struct Mapping<'a> {
    start: u64,
    end: u64,
    name: &'a str,
}

fn parse(line: &str) -> Option<Mapping<'_>> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let [rights, offset, device, inode] = [words.next()?, words.next()?, words.next()?, words.next()?];
    let (major, minor) = device.split_once(':')?;
    let hexadecimal = |text: &str| {
        let is_it = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_it.then(|| u64::from_str_radix(text, 16).ok())?
    };
    for number in [offset, major, minor] {
        hexadecimal(number)?;
    }
    let is_inode = !inode.is_empty() && inode.bytes().all(|byte| byte.is_ascii_digit());
    let has_rights = rights.len() == 4 && rights.bytes().all(|byte| b"rwxps-".contains(&byte));
    let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
    let name = words.next().unwrap_or("").trim();
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    (is_inode && has_rights && start < end).then_some(Mapping { start, end, name })
}

/// Finds the C library, or else the first shared library that is neither the program, at `entry`, nor its loader, at `loader`.
pub(super) fn library(maps: &str, entry: u64, loader: u64) -> Option<(u64, &str)> {
    let files: Vec<Mapping> =
        maps.lines().filter_map(parse).filter(|mapping| mapping.name.starts_with('/')).collect();
    let own = |address: u64| {
        files.iter().find(|file| (file.start..file.end).contains(&address)).map(|file| file.name)
    };
    let (program, loader) = (own(entry), own(loader));
    let others = || files.iter().filter(|file| Some(file.name) != program && Some(file.name) != loader);
    let library =
        others().find(|file| is_libc(file.name)).or_else(|| others().find(|file| is_library(file.name)))?;
    let start = others().filter(|file| file.name == library.name).map(|file| file.start).min()?;
    Some((start, library.name))
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_libc(path: &str) -> bool {
    name(path).starts_with("libc.so") || name(path).starts_with("libc-2.")
}

/// Matches `libm.so.6`, but not a cache or a locale archive.
fn is_library(path: &str) -> bool {
    name(path).contains(".so")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
555555554000-555555556000 r--p 00000000 fd:00 1234                       /usr/bin/true
7ffff7c00000-7ffff7c28000 r--p 00000000 fd:00 4321                       /usr/lib/libm.so.6
7ffff7d00000-7ffff7d28000 r--p 00000000 fd:00 4322                       /usr/lib/a b/libc.so.6
7ffff7d28000-7ffff7e28000 r-xp 00028000 fd:00 4322                       /usr/lib/a b/libc.so.6
7ffff7fc5000-7ffff7fc7000 r-xp 00000000 00:00 0                          [vdso]
7ffff7fc7000-7ffff7fc8000 r--p 00000000 fd:00 99                         /usr/lib/ld-linux-x86-64.so.2
7ffff7ffd000-7ffff7ffe000 rw-p 00000000 00:00 0
";

    #[test]
    fn the_c_library_comes_first() {
        assert_eq!(
            library(MAPS, 0x5555_5555_4100, 0x7fff_f7fc_7000),
            Some((0x7fff_f7d0_0000, "/usr/lib/a b/libc.so.6"))
        );
        let without = MAPS.replace("libc.so", "notc.so");
        assert_eq!(library(&without, 0x5555_5555_4100, 0x7fff_f7fc_7000).unwrap().1, "/usr/lib/libm.so.6");
        assert_eq!(library(MAPS.lines().next().unwrap(), 0x5555_5555_4100, 0), None);
    }

    takes_any! {
        text in "\\PC{0,80}|[0-9a-f /.so:rwxp\n-]{0,200}", entry in any::<u64>() =>
        library(&text, entry, 0)
    }
}
