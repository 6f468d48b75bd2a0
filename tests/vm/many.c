/*
 * The first process of a guest that has the files of its disk, or, without one, the host's, read-only over 9p, below a file system in memory
 * that takes what is written. It loads the modules of its root file system in the order of their names, runs the command of /command by the
 * shell among those files, and turns the guest off. tests/anywhere makes such guests of more processors than this machine has,
 * tests/arm64/guest of another architecture.
 *
 *     cc -static -O2 -o init many.c
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static void stop(const char *what)
{
	printf("the guest: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	off();
}

static void load(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0 || (syscall(SYS_finit_module, file, "", 0) && errno != EEXIST))
		stop(path);
	close(file);
}

static void put(const char *from, const char *to, const char *kind, unsigned long flags, const char *options)
{
	if ((mkdir(to, 0755) && errno != EEXIST) || mount(from, to, kind, flags, options))
		stop(to);
}

static void loopback(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (any < 0 || ioctl(any, SIOCSIFFLAGS, &request))
		stop("lo");
	close(any);
}

static void files_of_the_host(void)
{
	put("host", "/host", "9p", MS_RDONLY, "trans=virtio,version=9p2000.L,msize=262144,cache=loose");
	put("written", "/written", "tmpfs", 0, "size=6g");
	if (mkdir("/written/upper", 0755) || mkdir("/written/work", 0755))
		stop("/written");
	put("all", "/all", "overlay", 0, "lowerdir=/host,upperdir=/written/upper,workdir=/written/work");
	put("tmp", "/all/tmp", "tmpfs", 0, "mode=1777");
}

int main(void)
{
	static const char *const links[][2] = {
		{ "/proc/self/fd", "/all/dev/fd" },
		{ "/proc/self/fd/0", "/all/dev/stdin" },
		{ "/proc/self/fd/1", "/all/dev/stdout" },
		{ "/proc/self/fd/2", "/all/dev/stderr" },
	};
	char path[64], command[1024] = "";
	int status = 0, file, at;
	pid_t child;

	/* Below what the firmware has written. */
	puts("\nthe guest begins");
	fflush(stdout);
	for (at = 0; at < 64; at++) {
		snprintf(path, sizeof path, "/modules/%02d.ko", at);
		if (access(path, F_OK))
			break;
		load(path);
	}
	file = open("/command", O_RDONLY | O_CLOEXEC);
	if (file < 0 || read(file, command, sizeof command - 1) <= 0)
		stop("/command");
	close(file);
	put("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	if (access("/dev/vda", F_OK))
		files_of_the_host();
	else
		put("/dev/vda", "/all", "ext4", 0, NULL);
	put("proc", "/all/proc", "proc", 0, NULL);
	put("sysfs", "/all/sys", "sysfs", 0, NULL);
	put("devtmpfs", "/all/dev", "devtmpfs", 0, NULL);
	/* devtmpfs has none of them. */
	for (at = 0; at < 4; at++)
		if (symlink(links[at][0], links[at][1]) && errno != EEXIST)
			stop(links[at][1]);
	put("devpts", "/all/dev/pts", "devpts", 0, "ptmxmode=666");
	put("shm", "/all/dev/shm", "tmpfs", 0, "mode=1777");
	put("run", "/all/run", "tmpfs", 0, "mode=755");
	loopback();
	/* As switch_root(8): a path that the kernel gives ends at the root of mounts. */
	if (chdir("/all") || mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
		stop("/all");
	child = fork();
	if (child == 0) {
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		stop("/bin/sh");
	}
	while (waitpid(-1, &status, 0) != child || !(WIFEXITED(status) || WIFSIGNALED(status)))
		;
	printf("the guest ends with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	fflush(stdout);
	off();
}
