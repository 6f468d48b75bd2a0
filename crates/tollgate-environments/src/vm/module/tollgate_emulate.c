// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The published experiment (Walter Zhou, "Simulate Invalid Opcode", Linux 2.6.20) in a current kernel: two invalid instructions are given a
 * meaning at #UD (Intel SDM vol. 3, Interrupt 6), in a program and in the kernel itself.
 *
 *   f0 89 c8  lock mov eax, ecx     0f b9 c8  ud1 ecx, eax
 *
 * Both become: eax = eax to the power of ecx, modulo 2^32, as in tollgate's signal handler.
 *
 * The kernel calls the notifiers of register_die_notifier() for a #UD before it sends SIGILL (do_error_trap(), arch/x86/kernel/traps.c). The
 * notifier is registered while the device is open, and emulates for one process that asked (WATCH), or for the batch of this module that
 * runs in ring 0 (BATCH, ONE). The kernel handles every other #UD as usual and kills the process.
 */
#include <linux/fs.h>
#include <linux/kdebug.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/objtool.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <asm/ptrace.h>
#include <asm/traps.h>

/* Bytes of either instruction. */
#define LENGTH 3
/* Limit of iterations in a batch, which runs with preemption off. */
#define MOST_ITERATIONS 4096

static const u8 LOCK_MOV[LENGTH] = { 0xf0, 0x89, 0xc8 };
static const u8 UD1[LENGTH] = { 0x0f, 0xb9, 0xc8 };

/* Numbers of the opcodes in the ioctls below. */
enum { IS_LOCK_MOV = 0, IS_UD1 = 1 };

/* One instruction in ring 0. */
struct one {
	u32 opcode;
	u32 base;
	u32 exponent;
	u32 result;
	/* How often it was emulated: 0 if the processor executes it. */
	u64 emulated;
};

/* A batch in ring 0: the timed loop between two empty ones. Times are ticks of the time stamp counter. */
struct batch {
	u32 opcode;
	/* eax after the last instruction. */
	u32 result;
	u64 iterations;
	u64 empty_iterations;
	u64 empty_before;
	u64 work;
	u64 empty_after;
	u64 emulated;
	/* Address of the timed loop's function, which identifies it in a log of executed instructions. */
	u64 entry;
};

/* Begins to emulate instructions of the calling process. */
#define WATCH _IO('t', 1)
/* Ends that; returns how many were emulated. */
#define UNWATCH _IOR('t', 2, u64)
#define ONE _IOWR('t', 3, struct one)
#define BATCH _IOWR('t', 4, struct batch)

/* Held by every ioctl: there is one batch, and one watched process. */
static DEFINE_MUTEX(orders);
/* Memory of the watched process, and the file that asked for it. */
static struct mm_struct *watched;
static struct file *watcher;
/* The task whose batch runs in ring 0. */
static struct task_struct *batching;
/* Number of instructions emulated for each. */
static u64 emulated_for_watched;
static u64 emulated_for_batch;

static u32 power(u32 base, u32 exponent)
{
	u32 result = 1;

	for (; exponent; exponent >>= 1) {
		if (exponent & 1)
			result *= base;
		base *= base;
	}
	return result;
}

/* Runs with interrupts off, like the gate of #UD. */
static int at_invalid_opcode(struct notifier_block *block, unsigned long event, void *data)
{
	struct die_args *args = data;
	struct pt_regs *regs = args->regs;
	u64 *emulated;
	u8 code[LENGTH];

	if (event != DIE_TRAP || args->trapnr != X86_TRAP_UD)
		return NOTIFY_DONE;
	if (user_mode(regs)) {
		if (current->mm != READ_ONCE(watched))
			return NOTIFY_DONE;
		if (copy_from_user_nofault(code, (const void __user *)regs->ip, LENGTH))
			return NOTIFY_DONE;
		emulated = &emulated_for_watched;
	} else {
		if (current != READ_ONCE(batching))
			return NOTIFY_DONE;
		if (copy_from_kernel_nofault(code, (const void *)regs->ip, LENGTH))
			return NOTIFY_DONE;
		emulated = &emulated_for_batch;
	}
	if (memcmp(code, LOCK_MOV, LENGTH) && memcmp(code, UD1, LENGTH))
		return NOTIFY_DONE;
	regs->ax = power(regs->ax, regs->cx);
	regs->ip += LENGTH;
	++*emulated;
	return NOTIFY_STOP;
}

static struct notifier_block notifier = { .notifier_call = at_invalid_opcode };

/*
 * The loops of tollgate's own programs: r12 counts, and operands are reloaded before each instruction. The counter is read in the same
 * asm statement, so that the empty loop has all instructions of the others except for their body. Returns ticks.
 */
#define LOOP(body, iterations, result)                                                      \
	({                                                                                  \
		u64 __ticks;                                                                \
                                                                                            \
		asm volatile("mov %[n], %%r12\n"                                            \
			     "lfence\nrdtsc\nlfence\n"                                      \
			     "shl $32, %%rdx\nor %%rax, %%rdx\nmov %%rdx, %%r13\n"          \
			     "xor %%eax, %%eax\n"                                           \
			     /* Executed padding would differ between the loops. */         \
			     "jmp 1f\n"                                                     \
			     ".p2align 6\n"                                                 \
			     "1:\n" body "dec %%r12\n"                                      \
			     "jnz 1b\n"                                                     \
			     "mov %%eax, %[last]\n"                                         \
			     "lfence\nrdtsc\nlfence\n"                                      \
			     "shl $32, %%rdx\nor %%rdx, %%rax\nsub %%r13, %%rax\n"          \
			     : "=&a"(__ticks), [last] "=&r"(result)                         \
			     : [n] "r"((u64)(iterations))                                   \
			     : "rcx", "rdx", "r12", "r13", "cc", "memory");                 \
		__ticks;                                                                    \
	})
#define TIMES_TEN(bytes) ".rept 10\nmov $3, %%eax\nmov $3, %%ecx\n.byte " bytes "\n.endr\n"

static noinline u64 empty_loop(u64 iterations)
{
	u32 nothing;

	return LOOP("", iterations, nothing);
}

static noinline u64 lock_movs(u64 iterations, u32 *result)
{
	return LOOP(TIMES_TEN("0xf0, 0x89, 0xc8"), iterations, *result);
}

static noinline u64 ud1s(u64 iterations, u32 *result)
{
	return LOOP(TIMES_TEN("0x0f, 0xb9, 0xc8"), iterations, *result);
}
/* objtool takes ud1 for the end of a function. */
STACK_FRAME_NON_STANDARD(ud1s);

/* Runs `run` with the notifier emulating for this task. Returns how many instructions it emulated. */
#define EMULATING(run)                               \
	({                                           \
		preempt_disable();                   \
		emulated_for_batch = 0;              \
		WRITE_ONCE(batching, current);       \
		run;                                 \
		WRITE_ONCE(batching, NULL);          \
		preempt_enable();                    \
		emulated_for_batch;                  \
	})

static long run_one(struct one *one)
{
	u32 result = one->base;

	switch (one->opcode) {
	case IS_LOCK_MOV:
		one->emulated = EMULATING(
			asm volatile(".byte 0xf0, 0x89, 0xc8" : "+a"(result) : "c"(one->exponent) : "memory"));
		break;
	case IS_UD1:
		one->emulated = EMULATING(
			asm volatile(".byte 0x0f, 0xb9, 0xc8" : "+a"(result) : "c"(one->exponent) : "memory"));
		break;
	default:
		return -EINVAL;
	}
	one->result = result;
	return 0;
}
STACK_FRAME_NON_STANDARD(run_one);

static long run_batch(struct batch *batch)
{
	u64 n = batch->iterations, empty = batch->empty_iterations;

	if (n == 0 || n > MOST_ITERATIONS || empty == 0 || empty > MOST_ITERATIONS || batch->opcode > IS_UD1)
		return -EINVAL;
	batch->emulated = EMULATING({
		batch->empty_before = empty_loop(empty);
		if (batch->opcode == IS_UD1)
			batch->work = ud1s(n, &batch->result);
		else
			batch->work = lock_movs(n, &batch->result);
		batch->empty_after = empty_loop(empty);
	});
	batch->entry = (u64)(batch->opcode == IS_UD1 ? ud1s : lock_movs);
	return 0;
}

static long watch(struct file *file)
{
	if (watched)
		return -EBUSY;
	mmgrab(current->mm);
	emulated_for_watched = 0;
	watcher = file;
	WRITE_ONCE(watched, current->mm);
	return 0;
}

static void unwatch(struct file *file)
{
	struct mm_struct *mm = watched;

	if (!mm || watcher != file)
		return;
	WRITE_ONCE(watched, NULL);
	watcher = NULL;
	mmdrop(mm);
}

static long obey(struct file *file, unsigned int order, void __user *argument)
{
	union {
		struct one one;
		struct batch batch;
	} given;
	long done;

	switch (order) {
	case WATCH:
		return watch(file);
	case UNWATCH:
		unwatch(file);
		return copy_to_user(argument, &emulated_for_watched, sizeof(u64)) ? -EFAULT : 0;
	case ONE:
	case BATCH:
		if (copy_from_user(&given, argument, _IOC_SIZE(order)))
			return -EFAULT;
		done = order == ONE ? run_one(&given.one) : run_batch(&given.batch);
		if (done)
			return done;
		return copy_to_user(argument, &given, _IOC_SIZE(order)) ? -EFAULT : 0;
	default:
		return -ENOTTY;
	}
}

static long on_ioctl(struct file *file, unsigned int order, unsigned long argument)
{
	long done;

	mutex_lock(&orders);
	done = obey(file, order, (void __user *)argument);
	mutex_unlock(&orders);
	return done;
}

static unsigned int files;

static int on_open(struct inode *inode, struct file *file)
{
	int refused = 0;

	mutex_lock(&orders);
	if (files == 0)
		refused = register_die_notifier(&notifier);
	if (!refused)
		files++;
	mutex_unlock(&orders);
	return refused;
}

static int on_release(struct inode *inode, struct file *file)
{
	mutex_lock(&orders);
	unwatch(file);
	if (--files == 0)
		unregister_die_notifier(&notifier);
	mutex_unlock(&orders);
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = on_open,
	.release = on_release,
	.unlocked_ioctl = on_ioctl,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "tollgate-emulate",
	.fops = &operations,
	.mode = 0600,
};

module_misc_device(device);

MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Emulates two invalid opcodes for tollgate's benchmark traps/invalid-opcode");
