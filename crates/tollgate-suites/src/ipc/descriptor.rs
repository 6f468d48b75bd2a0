//! A descriptor that goes through a socket (unix(7), SCM_RIGHTS).

use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::endpoint::{Subject, Verified, is_readable};
use crate::prelude::*;
use crate::processes::raw;

timed_loop! {
    /// sendmsg(2) of a number and a descriptor, recvmsg(2) of both, close(2) of the descriptor that came. Word 0: the socket that sends;
    /// 1: the one that receives; 2 and 3: the letters of both; 4: the numbers that came, added up; 5: the bytes that both calls returned,
    /// added up; 6: the results of close, combined by OR.
    send_receive_close: called
        "mov rbx, [r13 + 16]", "add qword ptr [rbx + 96], 1",
        "mov rdi, [r13]", "mov rsi, rbx", "xor edx, edx", "mov eax, 46",
        "syscall",
        "add [r13 + 40], rax",
        // The kernel shortens the length to what came. Where nothing comes, no other descriptor may be closed.
        // MSG_CMSG_CLOEXEC | MSG_DONTWAIT
        "mov rbx, [r13 + 24]", "mov qword ptr [rbx + 40], 24", "mov qword ptr [rbx + 88], -1",
        "mov rdi, [r13 + 8]", "mov rsi, rbx", "mov edx, 0x40000040", "mov eax, 47",
        "syscall",
        "add [r13 + 40], rax",
        "mov rax, [rbx + 96]", "add [r13 + 32], rax",
        "mov edi, [rbx + 88]", "mov eax, 3",
        "syscall",
        "or [r13 + 48], rax"
}

/// Words of the results.
const NUMBERS: usize = 4;
const BYTES: usize = 5;
const CLOSED: usize = 6;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "ipc/descriptor",
    operation: "One descriptor by SCM_RIGHTS through a UNIX stream socket, by one thread: sendmsg with 8 bytes, recvmsg, close of the new descriptor.",
    avoid: "Pass the descriptor once and keep it; send several in one message.",
    source: "unix(7), SCM_RIGHTS; cmsg(3); sendmsg(2); net/core/scm.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, KernelAllocation, UserCopy, Socket],
    timed: |_| Timed::Loop { code: TimedLoop::Long(send_receive_close), instruction: "syscall", times: 3 },
    kind: Kind::Instance(|timed, _, _| {
        let post = Post::new()?;
        let words = post.words();
        // SAFETY: the kernel reads and writes the letters and what they point to, which lie in boxes that the hooks keep.
        let timed = unsafe { Loop::new(timed, words, None, any) }?;
        Ok(timed.with_hooks(Verified::new(post)).here())
    }),
    absence: killed_by_filter,
    ..PLAIN
};

/// A message with a number as its data and a descriptor in its control data.
#[repr(C)]
struct Letter {
    header: libc::msghdr,
    data: libc::iovec,
    /// cmsghdr, then the descriptor.
    control: [u64; 3],
    number: u64,
}

// The loop has these offsets.
const _: () = {
    assert!(offset_of!(Letter, control) + size_of::<libc::cmsghdr>() == 88);
    assert!(offset_of!(Letter, number) == 96);
    assert!(offset_of!(libc::msghdr, msg_controllen) == 40);
};

// SAFETY: the pointers of a letter lead to itself.
unsafe impl Send for Letter {}

impl Letter {
    fn with(descriptor: i32) -> Box<Self> {
        // SAFETY: numbers and null pointers.
        let mut letter: Box<Self> = Box::new(unsafe { std::mem::zeroed() });
        letter.data = libc::iovec { iov_base: (&raw mut letter.number).cast(), iov_len: size_of::<u64>() };
        letter.header.msg_iov = &raw mut letter.data;
        letter.header.msg_iovlen = 1;
        letter.header.msg_control = (&raw mut letter.control).cast();
        letter.header.msg_controllen = size_of::<[u64; 3]>();
        let length = (size_of::<libc::cmsghdr>() + size_of::<i32>()) as u64;
        // cmsg_len; cmsg_level and cmsg_type (cmsg(3)); the descriptor.
        let kind = libc::SOL_SOCKET as u64 | (libc::SCM_RIGHTS as u64) << 32;
        letter.control = [length, kind, u64::from(descriptor as u32)];
        letter
    }

    fn descriptor(&self) -> i32 {
        self.control[2] as i32
    }
}

struct Post {
    sender: OwnedFd,
    receiver: OwnedFd,
    /// The file whose descriptor is sent.
    file: (OwnedFd, OwnedFd),
    letter: Box<Letter>,
    answer: Box<Letter>,
    /// The number of the last message before the batch.
    sent: u64,
}

impl Post {
    fn new() -> Result<Self> {
        let pair = std::os::unix::net::UnixStream::pair();
        let (sender, receiver) = pair.or_refused("socketpair(2) is refused")?;
        // A pipe has an inode of its own, by which it is recognised.
        let file = raw::pipe().or_refused("pipe2 is refused")?;
        let letter = Letter::with(file.0.as_raw_fd());
        let (sender, receiver) = (sender.into(), receiver.into());
        let mut post = Self { sender, receiver, file, letter, answer: Letter::with(-1), sent: 0 };
        post.try_one()?;
        Ok(post)
    }

    fn words(&self) -> [u64; 7] {
        let at = |letter: &Letter| std::ptr::from_ref(letter) as u64;
        let (sender, receiver) = (self.sender.as_raw_fd() as u64, self.receiver.as_raw_fd() as u64);
        [sender, receiver, at(&self.letter), at(&self.answer), 0, 0, 0]
    }

    /// Sends the descriptor once, and checks that the one that comes is of the same file.
    fn try_one(&mut self) -> Result<()> {
        self.letter.number += 1;
        self.answer.header.msg_controllen = size_of::<[u64; 3]>();
        self.answer.control = Letter::with(-1).control;
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
        // SAFETY: the letters and what they point to are valid for reading and writing.
        let moved = unsafe {
            let sent = libc::sendmsg(self.sender.as_raw_fd(), &self.letter.header, libc::MSG_DONTWAIT);
            checked(sent as i64).or_refused("sendmsg(2) with a descriptor is refused")?;
            libc::recvmsg(self.receiver.as_raw_fd(), &mut self.answer.header, flags)
        };
        checked(moved as i64).or_refused("recvmsg(2) of a descriptor is refused")?;
        let came = self.answer.descriptor();
        if came < 0 {
            return Err(skip!("a descriptor that is sent does not arrive (SCM_RIGHTS)"));
        }
        // SAFETY: the kernel has just made it for this process.
        let came = unsafe { OwnedFd::from_raw_fd(came) };
        match inode(&came)? == inode(&self.file.0)? && self.answer.number == self.letter.number {
            true => Ok(()),
            false => Err(fail!("the descriptor that came is of another file, or of another message")),
        }
    }
}

/// Device and inode of an open file.
fn inode(file: &OwnedFd) -> Result<(u64, u64)> {
    // SAFETY: numbers, for which zeros are valid.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is valid for writing.
    checked(unsafe { libc::fstat(file.as_raw_fd(), &mut status) }).or_refused("fstat(2) is refused")?;
    Ok((status.st_dev, status.st_ino))
}

impl Subject for Post {
    fn before(&mut self, context: &mut LoopContext) -> Result<()> {
        context.words[NUMBERS..].fill(0);
        self.sent = self.letter.number;
        Ok(())
    }

    fn after(&mut self, context: &LoopContext, iterations: u64) -> Result<()> {
        let bytes = 2 * size_of::<u64>() as u64 * iterations;
        if context.words[BYTES] != bytes || context.words[CLOSED] != 0 {
            return Err(fail!("sendmsg, recvmsg or close failed in one of {iterations} messages"));
        }
        let last = self.sent.wrapping_add(iterations);
        let numbers = (self.sent + 1..=last).fold(0_u64, u64::wrapping_add);
        if context.words[NUMBERS] != numbers || is_readable(self.receiver.as_raw_fd()) {
            return Err(fail!("a message was lost, or came twice, among {iterations}"));
        }
        self.try_one()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ready;

    fn run(post: Post, times: u64) -> Result<Batch> {
        let words = post.words();
        // SAFETY: as in the benchmark.
        let timed = unsafe { Loop::new((BENCHMARK.timed)(&Params::new()), words, None, any) }?;
        timed.with_hooks(Verified::new(post)).here().batch(Clock::Kernel, Order::new(times))
    }

    #[test]
    fn descriptors_arrive_and_are_closed() {
        crate::processes::raw::tests::in_a_process_of_its_own(|| {
            let Some(post) = ready("a post", Post::new()) else { return };
            let Ok(before) = std::fs::read_dir("/proc/self/fd").map(Iterator::count) else {
                return eprintln!("skipped: no /proc");
            };
            assert!(run(post, 100).is_ok_and(|batch| batch.work > 0));
            let after = std::fs::read_dir("/proc/self/fd").map(Iterator::count).expect("a list");
            // Its sockets and its pipe are closed as well.
            assert_eq!(after + 4, before);
        });
    }

    #[test]
    fn a_message_more_or_less_fails() {
        let Some(post) = ready("a post", Post::new()) else { return };
        // SAFETY: the letter is valid for reading.
        let sent = unsafe { libc::sendmsg(post.sender.as_raw_fd(), &post.letter.header, 0) };
        assert_eq!(sent, 8);
        let Err(Refusal::Fail(why)) = run(post, 5) else { panic!("a failure") };
        assert!(why.contains("came twice"), "{why}");

        let Some(mut post) = ready("a post", Post::new()) else { return };
        // Its messages go elsewhere.
        let (sender, _elsewhere) = std::os::unix::net::UnixStream::pair().expect("a pair");
        post.sender = sender.into();
        let Err(Refusal::Fail(why)) = run(post, 5) else { panic!("a failure") };
        assert!(why.contains("failed in one of 1 messages"), "{why}");
    }
}
