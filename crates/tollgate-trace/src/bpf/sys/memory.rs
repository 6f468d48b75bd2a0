use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::{fs::File, io, sync::atomic::AtomicU64};

use rustix::mm::{MapFlags, ProtFlags};

use super::Attributes;

const MAP_CREATE: u32 = 0;
const MAP_LOOKUP: u32 = 1;
const MAP_UPDATE: u32 = 2;
const MAP_DELETE: u32 = 3;
const MAP_NEXT_KEY: u32 = 4;
const MAP_LOOKUP_BATCH: u32 = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bpf) enum MapKind {
    Hash = 1,
    Array = 2,
    PerCpuArray = 6,
    StackTrace = 7,
    TaskStorage = 29,
}

/// `BPF_NOEXIST`: only create a new entry.
const NO_EXIST: u64 = 1;
/// `BPF_F_NO_PREALLOC`: entries are allocated when they are created.
const NO_PREALLOC: u32 = 1;
/// `BPF_F_MMAPABLE`: the memory can be mapped.
const MMAPABLE: u32 = 1 << 10;

#[derive(Debug)]
pub(in crate::bpf) struct Map {
    fd: OwnedFd,
    key: usize,
    value: usize,
    /// The most values that the kernel writes for one key: one per possible processor.
    copies: usize,
}

/// The largest number of processors that Linux can be built for (CONFIG_NR_CPUS).
pub(in crate::bpf) const MOST_PROCESSORS: usize = 8192;

impl Map {
    /// Creates a map. Hashes allocate memory per entry; arrays can be mapped, see [`Shared`].
    pub fn new(kind: MapKind, name: &str, key: usize, value: usize, entries: u32) -> io::Result<Self> {
        let flags = match kind {
            MapKind::Hash | MapKind::TaskStorage => NO_PREALLOC,
            MapKind::Array => MMAPABLE,
            MapKind::PerCpuArray | MapKind::StackTrace => 0,
        };
        Self::with_flags(kind, flags, name, key, value, entries)
    }

    /// Creates a hash that has the memory of all its entries, for a program that creates several at once. Otherwise the kernel keeps one
    /// free entry of more than 256 bytes per processor, and allocates more in an interrupt (kernel/bpf/memalloc.c): the second may find none.
    pub fn preallocated(name: &str, key: usize, value: usize, entries: u32) -> io::Result<Self> {
        Self::with_flags(MapKind::Hash, 0, name, key, value, entries)
    }

    fn with_flags(
        kind: MapKind,
        flags: u32,
        name: &str,
        key: usize,
        value: usize,
        entries: u32,
    ) -> io::Result<Self> {
        let mut attributes = Attributes::EMPTY
            .word(0, kind as u32)
            .word(4, key as u32)
            .word(8, value as u32)
            .word(12, if kind == MapKind::TaskStorage { 0 } else { entries })
            .word(16, flags)
            .name(28, name);
        let types = if kind == MapKind::TaskStorage { Some(storage_types(value)?) } else { None };
        if let Some(types) = &types {
            // The kernel requires a type for task storage.
            attributes = attributes.fd(48, types.as_fd()).word(52, 1).word(56, 2);
        }
        // SAFETY: there are no addresses, and a new map is a descriptor.
        let fd = unsafe { attributes.open(MAP_CREATE, 72) }?;
        let copies = if kind == MapKind::PerCpuArray { MOST_PROCESSORS } else { 1 };
        Ok(Self { fd, key, value, copies })
    }

    pub fn raw(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    pub fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.put(key, value, 0)
    }

    /// Sets the value under a new key; fails with EEXIST if the key exists.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.put(key, value, NO_EXIST)
    }

    fn put(&self, key: &[u8], value: &[u8], flags: u64) -> io::Result<()> {
        self.fits(key.len() == self.key && value.len() == self.value && self.copies == 1)?;
        let mut attributes = self.entry(key).double(16, value.as_ptr() as u64).double(24, flags);
        // SAFETY: key and value are as long as the map's, and are only read.
        unsafe { attributes.call(MAP_UPDATE, 32) }.map(drop)
    }

    /// Reads the value under a key; for a per-CPU map those of all processors, for which there must be room.
    pub fn lookup(&self, key: &[u8], value: &mut [u8]) -> io::Result<()> {
        // The kernel rounds values up to 8 bytes if it returns several.
        let room = if self.copies > 1 { self.value.next_multiple_of(8) * self.copies } else { self.value };
        self.fits(key.len() == self.key && value.len() >= room)?;
        let mut attributes = self.entry(key).double(16, value.as_mut_ptr() as u64);
        // SAFETY: the key is as long as the map's, and there is room for all that the kernel writes.
        unsafe { attributes.call(MAP_LOOKUP, 32) }.map(drop)
    }

    /// Calls `each` with at most `most` keys and values, in no order: in batches, or one by one on kernels that lack these.
    pub fn entries(&self, most: usize, mut each: impl FnMut(&[u8], &[u8])) -> io::Result<()> {
        const AT_ONCE: usize = 4096;
        self.fits(self.copies == 1)?;
        let (mut keys, mut values) = (vec![0u8; AT_ONCE * self.key], vec![0u8; AT_ONCE * self.value]);
        let (mut batch, mut next) = ([0u8; 8], [0u8; 8]);
        let (mut begun, mut seen) = (false, 0);
        while seen < most {
            let mut attributes = Attributes::EMPTY
                .double(0, if begun { batch.as_mut_ptr() as u64 } else { 0 })
                .double(8, next.as_mut_ptr() as u64)
                .double(16, keys.as_mut_ptr() as u64)
                .double(24, values.as_mut_ptr() as u64)
                .word(32, AT_ONCE as u32)
                .fd(36, self.fd.as_fd());
            // SAFETY: the buffers hold that many keys and values, and a position in a hash takes 4 bytes.
            let result = unsafe { attributes.call(MAP_LOOKUP_BATCH, 56) };
            let end = match result {
                Ok(_) => false,
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
                Err(_) if !begun => return self.one_by_one(most, each),
                Err(error) => return Err(error),
            };
            let count = (attributes.word_at(32) as usize).min(AT_ONCE);
            for (key, value) in keys.chunks_exact(self.key).zip(values.chunks_exact(self.value)).take(count) {
                each(key, value);
            }
            seen += count;
            if end {
                break;
            }
            (begun, batch) = (true, next);
        }
        Ok(())
    }

    fn one_by_one(&self, most: usize, mut each: impl FnMut(&[u8], &[u8])) -> io::Result<()> {
        let (mut key, mut next, mut value) =
            (vec![0u8; self.key], vec![0u8; self.key], vec![0u8; self.value]);
        for seen in 0..most {
            let begin = if seen == 0 { 0 } else { key.as_ptr() as u64 };
            let mut attributes = Attributes::EMPTY
                .fd(0, self.fd.as_fd())
                .double(8, begin)
                .double(16, next.as_mut_ptr() as u64);
            // SAFETY: both are as long as a key of the map.
            match unsafe { attributes.call(MAP_NEXT_KEY, 24) } {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => break,
                Err(error) => return Err(error),
            }
            key.copy_from_slice(&next);
            if self.lookup(&key, &mut value).is_ok() {
                each(&key, &value);
            }
        }
        Ok(())
    }

    pub fn clear(&self) -> io::Result<()> {
        let mut keys = Vec::new();
        self.entries(usize::MAX, |key, _| keys.extend_from_slice(key))?;
        keys.chunks_exact(self.key).try_for_each(|key| self.remove(key))
    }

    pub fn remove(&self, key: &[u8]) -> io::Result<()> {
        self.fits(key.len() == self.key)?;
        // SAFETY: the key is as long as the map's, and is only read.
        unsafe { self.entry(key).call(MAP_DELETE, 16) }.map(drop)
    }

    fn entry(&self, key: &[u8]) -> Attributes {
        Attributes::EMPTY.fd(0, self.fd.as_fd()).double(8, key.as_ptr() as u64)
    }

    fn fits(&self, fits: bool) -> io::Result<()> {
        if fits { Ok(()) } else { Err(io::Error::from(io::ErrorKind::InvalidInput)) }
    }
}

#[derive(Debug)]
struct Mapping {
    address: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: the memory is accessed only by atomic words, or never changes.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(file: impl AsFd, bytes: usize, access: ProtFlags, kind: MapFlags) -> io::Result<Self> {
        // SAFETY: this is a new mapping at an address of the kernel's choice.
        let address = unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, access, kind, file, 0) }?;
        Ok(Self { address, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrows it any more.
        let _ = unsafe { rustix::mm::munmap(self.address, self.bytes) };
    }
}

/// Memory of an array map, which programs write at the same time. Each word is read and written atomically.
#[derive(Debug)]
pub(in crate::bpf) struct Shared(Mapping);

impl Shared {
    pub fn new(map: &Map, entries: usize) -> io::Result<Self> {
        // The kernel rounds each value up to 8 bytes, and the whole to pages.
        let bytes = map.value.next_multiple_of(8) * entries;
        Mapping::new(&map.fd, bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED).map(Self)
    }

    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has this length, is page-aligned, lives as long as self, and is accessed only by atomic words.
        unsafe { std::slice::from_raw_parts(self.0.address.cast(), self.0.bytes / 8) }
    }
}

/// A file of sysfs that the kernel maps: it never changes.
pub(in crate::bpf) struct Mapped(Mapping);

impl Mapped {
    pub fn new(file: &File, most: usize) -> io::Result<Self> {
        let bytes = file.metadata()?.len() as usize;
        if bytes == 0 || bytes > most {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Mapping::new(file, bytes, ProtFlags::READ, MapFlags::PRIVATE).map(Self)
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has this length and lives as long as self, and the kernel's description of its types never changes.
        unsafe { std::slice::from_raw_parts(self.0.address.cast(), self.0.bytes) }
    }
}

/// Describes two types for task storage: an int, and a structure of `bytes` bytes.
fn storage_types(bytes: usize) -> io::Result<OwnedFd> {
    const BTF_LOAD: u32 = 18;
    const MAGIC_AND_VERSION: u32 = 0x0001_eb9f;
    const STRINGS: [u8; 8] = *b"\0int\0\0\0\0";
    const INT: u32 = 1 << 24;
    const STRUCT: u32 = 4 << 24;
    const SIGNED_32_BITS: u32 = 1 << 24 | 32;
    let types = [1, INT, 4, SIGNED_32_BITS, 0, STRUCT, bytes as u32];
    let length = size_of_val(&types) as u32;
    let header = [MAGIC_AND_VERSION, 24, 0, length, length, STRINGS.len() as u32];
    let mut all: Vec<u8> = header.iter().chain(&types).flat_map(|word| word.to_ne_bytes()).collect();
    all.extend_from_slice(&STRINGS);
    let mut attributes = Attributes::EMPTY.double(0, all.as_ptr() as u64).word(16, all.len() as u32);
    // SAFETY: the description has the given length and is only read, and the result is a descriptor.
    unsafe { attributes.open(BTF_LOAD, 32) }
}
