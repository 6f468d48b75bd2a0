//! The file system and device under the directory in which files are measured.

use tollgate_model::Boundary::{
    BlockRead, BlockWrite, DeviceFlush, FileSystem, PageCache, PathLookup, ReadAhead,
};

use super::{FactSpec, beneath};
use crate::storage;

/// The file system and device under the directory in which files are measured.
pub static STORAGE: &[FactSpec] = &[
    beneath("files.dir", storage::directory, "The directory in which files were measured."),
    beneath("files.fs", storage::file_system, "The type of the file system under that directory.").affects(
        &[PathLookup, PageCache, FileSystem, BlockRead, BlockWrite, DeviceFlush],
        "each file system handles names, blocks and the journal in its own way",
    ),
    beneath("files.mount", storage::mount_point, "The mount point of that file system."),
    beneath("files.options", storage::options, "The mount options.").affects(
        &[PathLookup, FileSystem, BlockWrite, DeviceFlush],
        "options set access times, barriers, journal mode, discard and quota",
    ),
    beneath("files.source", storage::source, "The source of the mount."),
    beneath("files.free", storage::free, "Bytes that are free there for users other than root."),
    beneath("files.device", storage::device, "The block device that the file system is on.")
        .affects(&[BlockRead, BlockWrite, DeviceFlush], "requests wait for the device"),
    beneath("files.device.model", storage::model, "The model of its disk.")
        .affects(&[BlockRead, BlockWrite, DeviceFlush], "requests wait for the device"),
    beneath("files.device.rotational", storage::rotational, "Whether the disk reports that it rotates.")
        .affects(&[BlockRead, BlockWrite, DeviceFlush], "a head that seeks takes milliseconds"),
    beneath("files.device.scheduler", storage::scheduler, "The scheduler of the disk's queue.")
        .affects(&[BlockRead, BlockWrite], "each request goes through the scheduler"),
    beneath("files.device.logical_block", storage::logical_block, "The smallest request in bytes."),
    beneath("files.device.physical_block", storage::physical_block, "Bytes that the disk writes at once.")
        .affects(&[BlockWrite], "the disk reads, changes and writes back a block that is written in part"),
    beneath("files.device.write_cache", storage::write_cache, "`write back` or `write through`.")
        .affects(&[DeviceFlush], "a write-back cache has to be flushed"),
    beneath("files.device.dax", storage::dax, "Whether the device is memory that can be mapped.")
        .affects(&[PageCache, BlockRead, BlockWrite], "with DAX no page cache lies between"),
    beneath("files.device.mapping", storage::mapping, "The kind of device mapping: CRYPT, LVM, mpath.")
        .affects(&[BlockRead, BlockWrite, DeviceFlush], "an encrypted device computes for each block"),
    beneath("files.device.read_ahead", storage::read_ahead, "KiB that are read ahead.")
        .affects(&[ReadAhead], "that much comes with the first page"),
    beneath("files.device.requests", storage::requests, "The requests that its queue holds.")
        .affects(&[BlockRead, BlockWrite], "requests beyond the queue wait"),
    beneath(
        "files.device.write_throttling",
        storage::write_throttling,
        "The microseconds of delay at which background writes are held back; 0 is never.",
    )
    .affects(&[BlockWrite, DeviceFlush], "the queue holds background writes back beside others"),
];
