use tollgate_model::Boundary::{BlockRead, BlockWrite, DeviceFlush, FileSystem, PageCache, PathLookup};

entries! {
    FSNOTIFY [PathLookup, PageCache] "open, read, write and close check whether a watcher is set on the file"
        ("fs/notify/fsnotify.c");
    FANOTIFY_ACCESS_PERMISSIONS [PathLookup, PageCache]
        "a watcher can be asked before, and the call waits for it" ("fs/notify/fanotify/Kconfig");
    FS_POSIX_ACL [PathLookup] "where the mode alone does not decide, a list of access rights is looked for"
        ("fs/namei.c");
    QUOTA [FileSystem] "the use of each user is counted where quotas are on" ("fs/quota/Kconfig");
    FS_ENCRYPTION [PageCache, PathLookup] "in encrypted directories each page is encrypted"
        ("fs/crypto/Kconfig");
    FS_VERITY [PageCache] "pages of sealed files are checked against a tree of hashes" ("fs/verity/Kconfig");
    FS_DAX [PageCache, BlockRead, BlockWrite] "files in persistent memory are mapped without a page cache"
        ("fs/Kconfig");
    BLK_WBT [BlockWrite, DeviceFlush] "writes in the background can be held back" ("block/Kconfig");
    BLK_DEV_INTEGRITY [BlockRead, BlockWrite] "where the device has them, sectors have checksums"
        ("block/Kconfig");
    AIO "the older interface for many operations at once";
    OVERLAY_FS "the roots of most containers";
    FUSE_FS "file systems served by programs: each operation enters one";
    FUSE_IO_URING "requests of FUSE by rings instead of read and write";
    _ => FUSE CUSE VIRTIO_FS OVERLAY EXT2 EXT3 EXT4 JBD2 FS XFS BTRFS F2FS BCACHEFS EROFS SQUASHFS CRAMFS
        ROMFS ISO9660 JOLIET ZISOFS UDF FAT MSDOS VFAT EXFAT NTFS NTFS3 HFS HFSPLUS JFS JFFS2 UBIFS GFS2
        OCFS2 NILFS2 REISERFS MINIX UFS AFFS BFS BEFS EFS ADFS HPFS QNX4FS QNX6FS OMFS VXFS ORANGEFS ECRYPT
        ZONEFS NFS NFSD LOCKD SUNRPC CIFS SMB SMBFS CEPH AFS CODA 9P NETFS FSCACHE CACHEFILES DLM PROC SYSFS
        KERNFS TMPFS CONFIGFS PSTORE EFIVAR AUTOFS AUTOFS4 NLS UNICODE DNOTIFY INOTIFY FANOTIFY QFMT QUOTACTL
        FILE_LOCKING MANDATORY_FILE_LOCKING EXPORTFS BINFMT DAX DCACHE BLOCK BLK MQ_IOSCHED IOSCHED PARTITION
        BUFFER_HEAD LEGACY_DIRECT_IO
}
