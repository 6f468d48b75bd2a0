use tollgate_model::Boundary::{
    BlockRead, BlockWrite, DeviceFlush, FileSystem, PageCache, PathLookup, ReadAhead,
};

use crate::storage;

facts! {
    /// The file system and device under the directory in which files are measured.
    pub STORAGE
    "files.dir" Under(storage::directory) "The directory in which files were measured.";
    "files.fs" Under(storage::of_mount, |mount| mount.file_system) "The type of the file system under that directory."
        [PathLookup, PageCache, FileSystem, BlockRead, BlockWrite, DeviceFlush]
        "each file system handles names, blocks and the journal in its own way";
    "files.mount" Under(storage::of_mount, |mount| mount.point) "The mount point of that file system.";
    "files.options" Under(storage::of_mount, |mount| mount.all_options()) "The mount options."
        [PathLookup, FileSystem, BlockWrite, DeviceFlush]
        "options set access times, barriers, journal mode, discard and quota";
    "files.source" Under(storage::of_mount, |mount| mount.source) "The source of the mount.";
    "files.free" Under(storage::free) "Free bytes there for users other than root.";
    "files.device" Under(storage::device) "The block device that the file system is on."
        [BlockRead, BlockWrite, DeviceFlush] "requests wait for the device";
    "files.device.model" Under(storage::of_disk, "device/model") "The model of its disk."
        [BlockRead, BlockWrite, DeviceFlush] "requests wait for the device";
    "files.device.rotational" Under(storage::flag, "queue/rotational") "Whether the disk reports that it rotates."
        [BlockRead, BlockWrite, DeviceFlush] "a head that seeks takes milliseconds";
    "files.device.scheduler" Under(storage::scheduler) "The scheduler of the disk's queue."
        [BlockRead, BlockWrite] "each request goes through the scheduler";
    "files.device.logical_block" Under(storage::number, "queue/logical_block_size") "The smallest request in bytes.";
    "files.device.physical_block" Under(storage::number, "queue/physical_block_size") "Bytes that the disk writes at once."
        [BlockWrite] "the disk reads, changes and writes back a block that is written in part";
    "files.device.write_cache" Under(storage::of_disk, "queue/write_cache") "`write back` or `write through`."
        [DeviceFlush] "a write-back cache has to be flushed";
    "files.device.dax" Under(storage::flag, "queue/dax") "Whether the device is memory that can be mapped."
        [PageCache, BlockRead, BlockWrite] "with DAX no page cache lies between";
    "files.device.mapping" Under(storage::mapping) "The kind of device mapping: CRYPT, LVM, mpath."
        [BlockRead, BlockWrite, DeviceFlush] "an encrypted device computes for each block";
    "files.device.read_ahead" Under(storage::number, "queue/read_ahead_kb") "KiB that are read ahead."
        [ReadAhead] "that much comes with the first page";
    "files.device.requests" Under(storage::number, "queue/nr_requests") "The requests that its queue holds."
        [BlockRead, BlockWrite] "requests beyond the queue wait";
    "files.device.write_throttling" Under(storage::number, "queue/wbt_lat_usec")
        "The microseconds of delay at which background writes are held back; 0 is never."
        [BlockWrite, DeviceFlush] "the queue holds background writes back beside others";
}
