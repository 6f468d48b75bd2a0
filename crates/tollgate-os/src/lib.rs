//! Safe interfaces to what the operating system offers and the standard library does not.
//!
//! - [`paths`]: walks a path directory by directory, and follows no link that another user may have made. Every writer
//!   of a file and every working directory starts here.
//! - [`trust`]: which other user can exchange the entries of a directory.
//! - [`identity`]: the identity of another user, for file access or for a program.
//! - [`children`]: the children of this process, and which of them were there before it began.
//! - [`processors`]: the processors that a thread may run on, however many there are.
//! - [`workdir`]: a working directory that several processes use, and that none of them takes for another one.
//! - [`temporary`]: a directory with a temporary name, which goes when its maker does.
//! - [`users`]: names of users, and the groups that a user shares with others.

pub mod children;
pub mod identity;
pub mod paths;
pub mod processors;
pub mod temporary;
pub mod trust;
pub mod users;
pub mod workdir;
