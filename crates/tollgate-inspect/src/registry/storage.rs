//! The file system and device under the directory in which files are measured.

use tollgate_model::Boundary::{
    BlockRead, BlockWrite, DeviceFlush, FileSystem, PageCache, PathLookup, ReadAhead,
};

use crate::storage;

facts! {
    /// The file system and device under the directory in which files are measured.
    pub STORAGE
    "files.dir" Beneath(storage::directory) "The directory in which files were measured.";
    "files.fs" Beneath(storage::file_system) "The type of the file system under that directory."
        [PathLookup, PageCache, FileSystem, BlockRead, BlockWrite, DeviceFlush]
        "each file system handles names, blocks and the journal in its own way";
    "files.mount" Beneath(storage::mount_point) "The mount point of that file system.";
    "files.options" Beneath(storage::options) "The mount options."
        [PathLookup, FileSystem, BlockWrite, DeviceFlush]
        "options set access times, barriers, journal mode, discard and quota";
    "files.source" Beneath(storage::source) "The source of the mount.";
    "files.free" Beneath(storage::free) "Bytes that are free there for users other than root.";
    "files.device" Beneath(storage::device) "The block device that the file system is on."
        [BlockRead, BlockWrite, DeviceFlush] "requests wait for the device";
    "files.device.model" Beneath(storage::model) "The model of its disk."
        [BlockRead, BlockWrite, DeviceFlush] "requests wait for the device";
    "files.device.rotational" Beneath(storage::rotational) "Whether the disk reports that it rotates."
        [BlockRead, BlockWrite, DeviceFlush] "a head that seeks takes milliseconds";
    "files.device.scheduler" Beneath(storage::scheduler) "The scheduler of the disk's queue."
        [BlockRead, BlockWrite] "each request goes through the scheduler";
    "files.device.logical_block" Beneath(storage::logical_block) "The smallest request in bytes.";
    "files.device.physical_block" Beneath(storage::physical_block) "Bytes that the disk writes at once."
        [BlockWrite] "the disk reads, changes and writes back a block that is written in part";
    "files.device.write_cache" Beneath(storage::write_cache) "`write back` or `write through`."
        [DeviceFlush] "a write-back cache has to be flushed";
    "files.device.dax" Beneath(storage::dax) "Whether the device is memory that can be mapped."
        [PageCache, BlockRead, BlockWrite] "with DAX no page cache lies between";
    "files.device.mapping" Beneath(storage::mapping) "The kind of device mapping: CRYPT, LVM, mpath."
        [BlockRead, BlockWrite, DeviceFlush] "an encrypted device computes for each block";
    "files.device.read_ahead" Beneath(storage::read_ahead) "KiB that are read ahead."
        [ReadAhead] "that much comes with the first page";
    "files.device.requests" Beneath(storage::requests) "The requests that its queue holds."
        [BlockRead, BlockWrite] "requests beyond the queue wait";
    "files.device.write_throttling" Beneath(storage::write_throttling)
        "The microseconds of delay at which background writes are held back; 0 is never."
        [BlockWrite, DeviceFlush] "the queue holds background writes back beside others";
}
