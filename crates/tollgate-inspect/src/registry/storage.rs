//! What lies under the directory in which files are measured.

use super::{FactSpec, beneath};
use crate::storage;

/// What lies under the directory in which files are measured.
pub static STORAGE: &[FactSpec] = &[
    beneath("files.dir", storage::directory, "The directory in which files were measured."),
    beneath("files.fs", storage::file_system, "The type of the file system under that directory.")
        .moves("everything in files: each file system has its own way to names, blocks and the journal"),
    beneath("files.mount", storage::mount_point, "Where that file system is mounted."),
    beneath("files.options", storage::options, "The options it is mounted with.")
        .moves("opening, writing and fsync of files: access times, barriers, journal mode, discard, quota"),
    beneath("files.source", storage::source, "What was mounted there."),
    beneath("files.free", storage::free, "Bytes that are free there for those who are not root."),
    beneath("files.device", storage::device, "The block device that the file system is on.")
        .moves("uncached reads, direct reads and writes, and fsync of files: they wait for the device"),
    beneath("files.device.model", storage::model, "The model of its disk.")
        .moves("uncached reads, direct reads and writes, and fsync of files: they wait for the device"),
    beneath("files.device.rotational", storage::rotational, "Whether the disk says that it turns.")
        .moves("uncached reads and fsync of files: a head that moves takes milliseconds"),
    beneath("files.device.scheduler", storage::scheduler, "The scheduler of the disk's queue.")
        .moves("uncached reads, direct reads and writes of files: each request goes through it"),
    beneath("files.device.logical_block", storage::logical_block, "The smallest request in bytes."),
    beneath("files.device.physical_block", storage::physical_block, "Bytes that the disk writes at once.")
        .moves("small direct writes of files: less than a block is read, changed and written back"),
    beneath("files.device.write_cache", storage::write_cache, "`write back` or `write through`.")
        .moves("fsync and fdatasync of files: a cache that is written back has to be flushed"),
    beneath("files.device.dax", storage::dax, "Whether the device is memory that can be mapped.")
        .moves("reads and writes of files: with DAX there is no page cache between"),
    beneath(
        "files.device.mapping",
        storage::mapping,
        "The kind of mapping that the device is: CRYPT, LVM, mpath.",
    )
    .moves(
        "uncached reads, direct reads and writes, and fsync of files: an encrypted device \
         computes for each block",
    ),
    beneath("files.device.read_ahead", storage::read_ahead, "KiB that are read ahead.")
        .moves("uncached reads of files in order: so much comes with the first page"),
    beneath("files.device.requests", storage::requests, "The requests that its queue holds.")
        .moves("many reads or writes of files at once: those beyond it wait"),
    beneath(
        "files.device.write_throttling",
        storage::write_throttling,
        "The microseconds of delay at which background writes are held back; 0 is never.",
    )
    .moves("fsync and writes of files beside others that write"),
];
