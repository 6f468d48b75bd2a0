/* Messages between processes, and calls on what carries them. */
#include "loops.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/uio.h>

#define LARGEST 65536
static char message[LARGEST];
static long length = 1;

/* Round trips: the peer is a process, with its end in descriptors 0 and 1 of these. */
static int mine[2], theirs[2];

INLINE void read_all(int from)
{
    for (long got = 0; got < length;) {
        long some = sys3(SYS_read, from, message + got, length - got);
        must(some > 0);
        got += some;
    }
}

static void echo(void)
{
    for (;;) {
        read_all(theirs[0]);
        must(sys3(SYS_write, theirs[1], message, length) == length);
    }
}

OPERATION(ask)
{
    must(sys3(SYS_write, mine[1], message, length) == length);
    must(sys3(SYS_read, mine[0], message, length) == length);
}

static void peer_here(void) { in_child(home, echo); }
static void peer_elsewhere(void)
{
    if (other < 0)
        skip("a second processor is needed");
    in_child(other, echo);
}

static void pipes(void)
{
    int there[2], back[2];
    must(pipe(there) == 0 && pipe(back) == 0);
    mine[0] = back[0], mine[1] = there[1];
    theirs[0] = there[0], theirs[1] = back[1];
}

static void both_ways(int own, int peers) { mine[0] = mine[1] = own, theirs[0] = theirs[1] = peers; }

static void pair(int kind)
{
    int ends[2];
    must(socketpair(AF_UNIX, kind, 0, ends) == 0);
    both_ways(ends[0], ends[1]);
}

/* Connects to a listener; the accepted end is the peer's. */
static int listener;
static struct sockaddr_storage address;
static socklen_t address_length;

static void listen_by(int family)
{
    must((listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0);
    address.ss_family = family;
    address_length = family == AF_UNIX ? sizeof address.ss_family : sizeof(struct sockaddr_in);
    if (family == AF_INET)
        ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(bind(listener, (struct sockaddr *)&address, address_length) == 0 && listen(listener, 16) == 0);
    address_length = sizeof address;
    must(getsockname(listener, (struct sockaddr *)&address, &address_length) == 0);
}

static void connected(int family)
{
    int one = 1;
    listen_by(family);
    int own = socket(family, SOCK_STREAM, 0);
    must(own >= 0 && connect(own, (struct sockaddr *)&address, address_length) == 0);
    int peers = accept(listener, NULL, NULL);
    must(peers >= 0);
    if (family == AF_INET)
        must(setsockopt(own, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0
            && setsockopt(peers, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0);
    both_ways(own, peers);
}

static void datagrams(void)
{
    int ends[2];
    struct sockaddr_in addresses[2];
    for (int end = 0; end < 2; end++) {
        socklen_t room = sizeof addresses[end];
        addresses[end] = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        must((ends[end] = socket(AF_INET, SOCK_DGRAM, 0)) >= 0);
        must(bind(ends[end], (struct sockaddr *)&addresses[end], room) == 0);
        must(getsockname(ends[end], (struct sockaddr *)&addresses[end], &room) == 0);
    }
    for (int end = 0; end < 2; end++)
        must(connect(ends[end], (struct sockaddr *)&addresses[1 - end], sizeof addresses[0]) == 0);
    both_ways(ends[0], ends[1]);
}

static void counters(void)
{
    int there = eventfd(0, 0), back = eventfd(0, 0);
    must(there >= 0 && back >= 0);
    mine[0] = back, mine[1] = there, theirs[0] = there, theirs[1] = back;
    length = 8;
    message[0] = 1;
}

static void pipe_same(void) { pipes(), peer_here(); }
static void pipe_4k_same(void) { length = 4096, pipes(), peer_here(); }
static void pipe_apart(void) { pipes(), peer_elsewhere(); }
static void pair_same(void) { pair(SOCK_STREAM), peer_here(); }
static void unix_same(void) { connected(AF_UNIX), peer_here(); }
static void tcp_same(void) { connected(AF_INET), peer_here(); }
static void tcp_apart(void) { connected(AF_INET), peer_elsewhere(); }
static void udp_same(void) { datagrams(), peer_here(); }
static void counter_same(void) { counters(), peer_here(); }
static void counter_apart(void) { counters(), peer_elsewhere(); }

/* Many messages that the peer takes one by one, and a byte when it has all. */
#define MANY 256
static void take_many(void)
{
    for (;;) {
        for (int number = 0; number < MANY; number++)
            read_all(theirs[0]);
        must(sys3(SYS_write, theirs[1], message, 1) == 1);
    }
}
static void many_same(void) { length = 4096, pipes(), in_child(home, take_many); }
static double give_many(long *n)
{
    double began = now();
    for (int number = 0; number < MANY; number++)
        must(sys3(SYS_write, mine[1], message, length) == length);
    must(sys3(SYS_read, mine[0], message, 1) == 1);
    *n = MANY;
    return now() - began;
}

static mqd_t queues[2];
/* By system call: the C library's functions are a call and a return more. */
INLINE void receive(mqd_t queue) { must(sys(SYS_mq_timedreceive, queue, (long)message, 8192, 0, 0, 0) == 1); }
INLINE void send_one(mqd_t queue) { must(sys(SYS_mq_timedsend, queue, (long)message, 1, 0, 0, 0) == 0); }
static void answer_queue(void)
{
    for (;;)
        receive(queues[0]), send_one(queues[1]);
}

static void queue_same(void)
{
    for (int way = 0; way < 2; way++) {
        char name[64];
        struct mq_attr asked = { .mq_maxmsg = 8, .mq_msgsize = 8192 };
        snprintf(name, sizeof name, "/loops-%d-%d", getpid(), way);
        queues[way] = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &asked);
        if (queues[way] < 0)
            skip("mq_open(3) is refused");
        mq_unlink(name);
    }
    in_child(home, answer_queue);
}

OPERATION(ask_queue)
{
    send_one(queues[0]);
    receive(queues[1]);
}

/* Shared memory: a count each way, in a pair of lines of its own, and a byte that is copied in and out. */
static struct way {
    _Alignas(128) _Atomic uint32_t put;
    _Atomic uint32_t sleeps;
    _Alignas(128) _Atomic uint32_t taken;
    _Alignas(64) volatile char slots[8][64];
} *ways;
static uint32_t sent, received;
static int polls;

INLINE void put(struct way *way)
{
    way->slots[sent % 8][0] = message[0];
    way->put = ++sent;
    if (!polls && way->sleeps)
        sys3(SYS_futex, &way->put, FUTEX_WAKE, 1);
}

INLINE void take(struct way *way)
{
    if (polls) {
        while (atomic_load(&way->put) == received)
            ON(__builtin_ia32_pause(), __asm__ volatile("isb"));
    } else if (way->put == received) {
        way->sleeps = 1;
        while (way->put == received)
            sys4(SYS_futex, &way->put, FUTEX_WAIT, received, 0);
        way->sleeps = 0;
    }
    message[0] = way->slots[received % 8][0];
    way->taken = ++received;
}

static void answer_shared(void)
{
    for (;;)
        take(ways), put(ways + 1);
}

OPERATION(ask_shared) { put(ways), take(ways + 1); }

static void share(void)
{
    ways = mmap(NULL, 2 * sizeof *ways, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    must(ways != MAP_FAILED);
}
static void shared_same(void) { share(), in_child(home, answer_shared); }
static void shared_apart(void)
{
    if (other < 0)
        skip("a second processor is needed");
    share(), polls = 1, in_child(other, answer_shared), usleep(2000);
}

/* Connections. */

static void listen_tcp(void)
{
    struct linger at_once = { 1, 0 };
    listen_by(AF_INET);
    must(setsockopt(listener, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
}
static void listen_unix(void) { listen_by(AF_UNIX); }

OPERATION(connect_and_close)
{
    long own = sys3(SYS_socket, address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(own >= 0 && sys3(SYS_connect, own, &address, address_length) == 0);
    long peers = sys4(SYS_accept4, listener, 0, 0, SOCK_CLOEXEC);
    must(peers >= 0);
    sys1(SYS_close, peers);
    sys1(SYS_close, own);
}

/* Which of many eventfds is ready: the last one. */
#define MOST 1000
static int descriptors[MOST], count, instance;
static struct pollfd asked[MOST];
static fd_set kept, copied;
static struct epoll_event events[8];
static struct timeval no_time;

static void ask_about(int number)
{
    count = number;
    must((instance = epoll_create1(EPOLL_CLOEXEC)) >= 0);
    for (int at = 0; at < count; at++) {
        must((descriptors[at] = eventfd(at + 1 == count, EFD_NONBLOCK)) >= 0);
        struct epoll_event event = { .events = EPOLLIN, .data.u64 = at };
        must(epoll_ctl(instance, EPOLL_CTL_ADD, descriptors[at], &event) == 0);
        asked[at] = (struct pollfd){ descriptors[at], POLLIN, 0 };
        if (descriptors[at] < FD_SETSIZE)
            FD_SET(descriptors[at], &kept);
    }
}
static void about_10(void) { ask_about(10); }
static void about_100(void) { ask_about(100); }

OPERATION(by_select)
{
    copied = kept;
    must(sys(ON(SYS_select, SYS_pselect6), descriptors[count - 1] + 1, (long)&copied, 0, 0, (long)&no_time, 0) == 1);
}
OPERATION(by_poll) { must(ON(sys3(SYS_poll, asked, count, 0), sys4(SYS_ppoll, asked, count, &no_time, 0)) == 1); }
OPERATION(by_epoll) { must(ON(sys4(SYS_epoll_wait, instance, events, 8, 0), sys(SYS_epoll_pwait, instance, (long)events, 8, 0, 0, 0)) == 1); }

static struct epoll_event change = { .events = EPOLLIN };
static int changed;
static void about_64(void)
{
    ask_about(64);
    must((changed = eventfd(0, EFD_NONBLOCK)) >= 0);
}
static void about_65(void) { about_64(), must(epoll_ctl(instance, EPOLL_CTL_ADD, changed, &change) == 0); }
OPERATION(modify) { must(sys4(SYS_epoll_ctl, instance, EPOLL_CTL_MOD, changed, &change) == 0); }
OPERATION(add_and_delete)
{
    must(sys4(SYS_epoll_ctl, instance, EPOLL_CTL_ADD, changed, &change) == 0);
    must(sys4(SYS_epoll_ctl, instance, EPOLL_CTL_DEL, changed, &change) == 0);
}

/* Bytes through a pipe by one thread. */
static int file;
static char *memory, *output;
static struct iovec vector;
static void copies(long bytes)
{
    length = bytes;
    pipes();
    mine[0] = theirs[0];
    must(fcntl(mine[0], F_SETFL, O_NONBLOCK) == 0 && fcntl(mine[1], F_SETFL, O_NONBLOCK) == 0);
    must((file = memfd_create("loops", 0)) >= 0);
    must(write(file, message, length) == length);
    memory = mmap(NULL, 2 * length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED);
    memset(memory, 1, 2 * length);
    output = memory + length;
    vector = (struct iovec){ memory, length };
}
static void copies_4k(void) { copies(4096); }
static void copies_64k(void) { copies(65536); }

#define OUT must(sys3(SYS_read, mine[0], output, length) == length)
static loff_t from_start;
OPERATION(read_write)
{
    must(sys4(SYS_pread64, file, memory, length, 0) == length);
    must(sys3(SYS_write, mine[1], memory, length) == length);
    OUT;
}
OPERATION(splice_file)
{
    from_start = 0;
    must(sys(SYS_splice, file, (long)&from_start, mine[1], 0, length, SPLICE_F_NONBLOCK) == length);
    OUT;
}
OPERATION(send_file)
{
    from_start = 0;
    must(sys4(SYS_sendfile, mine[1], file, &from_start, length) == length);
    OUT;
}
OPERATION(splice_memory)
{
    must(sys4(SYS_vmsplice, mine[1], &vector, 1, SPLICE_F_NONBLOCK) == length);
    OUT;
}

static struct flock lock = { .l_type = F_WRLCK, .l_len = 1 }, unlock = { .l_type = F_UNLCK, .l_len = 1 };
static void in_memory(void) { must((file = memfd_create("loops", 0)) >= 0); }
OPERATION(lock_record)
{
    must(sys3(SYS_fcntl, file, F_SETLK, &lock) == 0);
    must(sys3(SYS_fcntl, file, F_SETLK, &unlock) == 0);
}
OPERATION(lock_open_file)
{
    must(sys3(SYS_fcntl, file, F_OFD_SETLK, &lock) == 0);
    must(sys3(SYS_fcntl, file, F_OFD_SETLK, &unlock) == 0);
}
OPERATION(lock_file)
{
    must(sys2(SYS_flock, file, LOCK_EX | LOCK_NB) == 0);
    must(sys2(SYS_flock, file, LOCK_UN) == 0);
}

#define TRIP(by, bytes, cpus) "ipc/round-trip{between=processes,by=" by ",bytes=" bytes ",cpus=" cpus "}"
#define SLEEPS "a peer, a process, that sleeps on the same processor"
#define SLEEPS_APART "a peer, a process, that sleeps on another processor, which is idle"
#define EMPTY "an empty pipe; the bytes in the caches"

const struct loop ipc_loops[] = {
    ROW(TRIP("pipe", "1", "same"), ask, SLEEPS, .prepare = pipe_same),
    ROW(TRIP("pipe", "4096", "same"), ask, SLEEPS, .prepare = pipe_4k_same),
    ROW(TRIP("pipe", "1", "llc"), ask, SLEEPS_APART, .prepare = pipe_apart),
    ROW(TRIP("socketpair", "1", "same"), ask, SLEEPS, .prepare = pair_same),
    ROW(TRIP("unix", "1", "same"), ask, SLEEPS, .prepare = unix_same),
    ROW(TRIP("tcp", "1", "same"), ask, SLEEPS, .prepare = tcp_same),
    ROW(TRIP("tcp", "1", "llc"), ask, SLEEPS_APART, .prepare = tcp_apart),
    ROW(TRIP("udp", "1", "same"), ask, SLEEPS, .prepare = udp_same),
    ROW(TRIP("mqueue", "1", "same"), ask_queue, SLEEPS, .prepare = queue_same),
    ROW(TRIP("eventfd", "8", "same"), ask, SLEEPS, .prepare = counter_same),
    ROW(TRIP("eventfd", "8", "llc"), ask, SLEEPS_APART, .prepare = counter_apart),
    ROW(TRIP("shm-futex", "1", "same"), ask_shared, SLEEPS, .prepare = shared_same),
    ROW(TRIP("shm-spin", "1", "llc"), ask_shared, "a peer, a process, that polls on another processor", .prepare = shared_apart,
        .is_user_code = 1),
    { "ipc/throughput{between=processes,by=pipe,bytes=4096,cpus=same}", "a peer, a process, that empties the pipe when it is full",
        .itself = give_many, .prepare = many_same },
    ROW("ipc/connect{by=tcp}", connect_and_close, "a listener without connections", .prepare = listen_tcp),
    ROW("ipc/connect{by=unix}", connect_and_close, "a listener without connections", .prepare = listen_unix),
    ROW("ipc/wait{by=select,descriptors=100}", by_select, "eventfds of one thread; the last is ready", .prepare = about_100),
    ROW("ipc/wait{by=poll,descriptors=100}", by_poll, "eventfds of one thread; the last is ready", .prepare = about_100),
    ROW("ipc/wait{by=epoll,descriptors=100}", by_epoll, "eventfds of one thread; the last is ready", .prepare = about_100),
    ROW("ipc/wait{by=poll,descriptors=10}", by_poll, "eventfds of one thread; the last is ready", .prepare = about_10),
    ROW("ipc/epoll-ctl{op=modify}", modify, "64 others in the instance", .prepare = about_65),
    ROW("ipc/epoll-ctl{op=add-delete}", add_and_delete, "64 others in the instance", .prepare = about_64),
    ROW("ipc/copy{by=read-write,bytes=4096}", read_write, EMPTY, .prepare = copies_4k),
    ROW("ipc/copy{by=read-write,bytes=65536}", read_write, EMPTY, .prepare = copies_64k),
    ROW("ipc/copy{by=splice,bytes=65536}", splice_file, EMPTY, .prepare = copies_64k),
    ROW("ipc/copy{by=sendfile,bytes=65536}", send_file, EMPTY, .prepare = copies_64k),
    ROW("ipc/copy{by=vmsplice,bytes=65536}", splice_memory, EMPTY, .prepare = copies_64k),
    ROW("ipc/file-lock{by=record}", lock_record, "no lock", .prepare = in_memory),
    ROW("ipc/file-lock{by=open-file}", lock_open_file, "no lock", .prepare = in_memory),
    ROW("ipc/file-lock{by=flock}", lock_file, "no lock", .prepare = in_memory),
    END,
};
