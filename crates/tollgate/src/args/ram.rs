//! The arguments of `tollgate ram`.

use std::ffi::OsString;

use clap::{Args, ValueHint};

use crate::{examples, size};

const AFTER: &str = "\
The command ends as it would without tollgate, which exits with its status. After it ends, or if tollgate is killed, the processes that it left are ended, and the file system, the device and the memory are freed. Other processes see neither the mount nor the files.
The device is brd if its module can be loaded, otherwise a loop device over a tmpfs with direct I/O. Only written blocks take memory, so a loop device may be larger than the memory: then a line reports the memory held, and the command is ended before it has written seven eighths of the available memory.";

/// `tollgate ram`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("ram", AFTER))]
pub struct RamArgs {
    /// The command and its arguments, after `--`; it finds the directory, or the device, in $TOLLGATE_RAM
    #[arg(required = true, trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
    /// The size of the device, such as 512M or 4G [default: half of the available memory]; it may exceed the
    /// memory, such as 16T
    #[arg(long, value_name = "BYTES", value_parser = size::parse_bytes, allow_negative_numbers = true)]
    pub size: Option<u64>,
    /// The file system on it: ext4, xfs, btrfs, or another for which there is a mkfs; `none` for the device alone, `tmpfs` for files in
    /// memory without a device
    #[arg(long, value_name = "FS", default_value = "ext4", value_parser = super::parse_file_system)]
    pub fs: String,
    /// Print only errors on standard error
    #[arg(long, short)]
    pub quiet: bool,
}
