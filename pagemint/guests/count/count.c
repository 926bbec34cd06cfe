// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin of QEMU that counts, for each function of a guest's kernel, what it
 * executes between two marks. A mark is the execution of a certain address.
 *
 *   -plugin count.so,map=FILE,mark=ADDRESS,out=FILE
 *
 * Each line of the map has the start of a function in hexadecimal and its name,
 * sorted by address. A function ends where the next one starts. Code below the
 * first function, such as a program's, is not counted. At each mark the plugin
 * writes a line for each function that has counts, and clears the counts:
 *
 *   WINDOW NAME INSTRUCTIONS STEPS STORED LOADED LOCKED CALLS
 *
 * With mappings=FILE it copies /proc/self/smaps to that file at each mark: the
 * mappings of QEMU, and how much of each the host backs. The last copy stays.
 *
 * WINDOW is the number of earlier marks. INSTRUCTIONS excludes string
 * instructions with a repeat prefix: those count as STEPS, one for each store of
 * movs and stos, and for each load of lods, scas and cmps. STORED and LOADED are
 * bytes. LOCKED includes xchg with memory. CALLS is how often the first
 * instruction of the function was executed.
 *
 * The guest must have one CPU. The declarations are those of QEMU's
 * qemu-plugin.h, which Debian 12 does not package: only functions that all
 * versions of the API from 1 on have.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEAK __attribute__((weak))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
typedef struct {
	const char *target_name;
	struct {
		int min, cur;
	} version;
} qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*insn_cb)(unsigned int cpu, void *data);
typedef void (*mem_cb)(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr, void *data);

enum { NO_REGS };
enum { MEM_READ_WRITE = 3 };
enum { FRAME = 5 }; /* words that the CPU pushes on an interrupt */

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
		void (*cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, insn_cb cb, int flags,
					    void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, mem_cb cb, int flags, int rw,
				      void *data);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
/* Returns the bytes up to version 2, and copies them since version 3. */
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t size);
/* The first exists in version 1 only, the second since version 4: they tell which QEMU has. */
WEAK void qemu_plugin_register_vcpu_insn_exec_inline(void);
WEAK void qemu_plugin_read_memory_vaddr(void);

int qemu_plugin_version;

struct function {
	uint64_t start;
	char *name;
	uint64_t instructions, steps, stored, loaded, locked, calls;
};

static struct function *functions;
static size_t nr_functions;
static uint64_t mark;
static FILE *out;
static const char *mappings_out;
static unsigned int window;
static bool copies_data;

/*
 * How many of the latest stores of the executing instruction form a row in which each is 8 bytes
 * below the one before, and the address of the latest.
 */
static unsigned int falling;
static uint64_t last_store;

/* A constructor, since QEMU reads the version before it calls any function of the plugin. */
__attribute__((constructor)) static void choose_version(void)
{
	if (qemu_plugin_register_vcpu_insn_exec_inline)
		qemu_plugin_version = 1;
	else
		qemu_plugin_version = qemu_plugin_read_memory_vaddr ? 4 : 2;
}

static struct function *function_at(uint64_t addr)
{
	size_t low = 0, high = nr_functions;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (functions[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &functions[low - 1] : NULL;
}

static void write_mappings(void)
{
	FILE *from = fopen("/proc/self/smaps", "r"), *to = fopen(mappings_out, "w");
	char part[4096];
	size_t size;

	while (from && to && (size = fread(part, 1, sizeof(part), from)))
		fwrite(part, 1, size, to);
	if (from)
		fclose(from);
	if (to)
		fclose(to);
}

static void on_mark(unsigned int cpu, void *data)
{
	if (mappings_out)
		write_mappings();
	for (struct function *f = functions; f < functions + nr_functions; f++) {
		if (!(f->instructions | f->steps))
			continue;
		fprintf(out, "%u %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			" %" PRIu64 "\n", window, f->name, f->instructions, f->steps, f->stored,
			f->loaded, f->locked, f->calls);
		*f = (struct function){ .start = f->start, .name = f->name };
	}
	fflush(out);
	window++;
}

static void on_call(unsigned int cpu, void *data)
{
	((struct function *)data)->calls++;
}

static void on_instruction(unsigned int cpu, void *data)
{
	((struct function *)data)->instructions++;
	falling = 0;
}

static void on_string(unsigned int cpu, void *data)
{
	falling = 0;
}

static void on_locked(unsigned int cpu, void *data)
{
	((struct function *)data)->locked++;
}

static void on_memory(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr, void *data)
{
	struct function *f = data;
	uint64_t size = 1ull << qemu_plugin_mem_size_shift(info);

	if (!qemu_plugin_mem_is_store(info)) {
		f->loaded += size;
		return;
	}
	f->stored += size;
	falling = falling && addr + 8 == last_store ? falling + 1 : 1;
	last_store = addr;
	/*
	 * If an interrupt comes, QEMU 7.2 reports the frame that the CPU pushes as stores of the
	 * instruction before. No instruction stores like that by itself.
	 */
	if (falling == FRAME)
		f->stored -= FRAME * 8;
}

/* A step of movs loads and stores, so only its store counts as the step. */
static void on_store_step(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr, void *data)
{
	if (qemu_plugin_mem_is_store(info))
		((struct function *)data)->steps++;
}

static void on_load_step(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr, void *data)
{
	((struct function *)data)->steps++;
}

struct decoded {
	bool locked;
	uint8_t string; /* the opcode of a string instruction with a repeat prefix, or 0 */
};

static struct decoded decode(const uint8_t *code, size_t size)
{
	struct decoded found = {};
	bool repeat = false;
	size_t i = 0;

	for (; i < size; i++) {
		switch (code[i]) {
		case 0xf0:
			found.locked = true;
			continue;
		case 0xf2: case 0xf3:
			repeat = true;
			continue;
		case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65: case 0x66: case 0x67:
			continue;
		}
		break;
	}
	if (i < size && (code[i] & 0xf0) == 0x40)
		i++; /* REX */
	if (i == size)
		return found;
	/* xchg with memory locks without a prefix. */
	if ((code[i] == 0x86 || code[i] == 0x87) && i + 1 < size && code[i + 1] < 0xc0)
		found.locked = true;
	/* 0xa8 and 0xa9 are test. */
	if (repeat && code[i] >= 0xa4 && code[i] <= 0xaf && (code[i] & 0xfe) != 0xa8)
		found.string = code[i];
	return found;
}

static void count_instruction(struct qemu_plugin_insn *insn)
{
	uint64_t addr = qemu_plugin_insn_vaddr(insn);
	size_t size = qemu_plugin_insn_size(insn);
	struct function *f = function_at(addr);
	uint8_t copied[16];
	const uint8_t *code = copied;
	struct decoded is;

	/* Before the counting: the mark's own first instruction belongs to the next window. */
	if (addr == mark)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, NO_REGS, NULL);
	if (!f)
		return;
	if (copies_data)
		qemu_plugin_insn_data(insn, copied, sizeof(copied));
	else
		code = qemu_plugin_insn_data(insn, NULL, 0);
	is = decode(code, size);
	if (!is.string) {
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_instruction, NO_REGS, f);
	} else {
		/* QEMU executes it once for each step or once in all, depending on its version. */
		bool stores = (is.string & 0xfe) == 0xa4 || (is.string & 0xfe) == 0xaa;

		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_string, NO_REGS, NULL);
		qemu_plugin_register_vcpu_mem_cb(insn, stores ? on_store_step : on_load_step,
						 NO_REGS, MEM_READ_WRITE, f);
	}
	if (is.locked)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_locked, NO_REGS, f);
	if (addr == f->start)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_call, NO_REGS, f);
	qemu_plugin_register_vcpu_mem_cb(insn, on_memory, NO_REGS, MEM_READ_WRITE, f);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
		count_instruction(qemu_plugin_tb_get_insn(tb, i));
}

static bool read_map(const char *path)
{
	FILE *map = path ? fopen(path, "r") : NULL;
	size_t room = 0;
	uint64_t start;
	char *name;

	if (!map)
		return false;
	while (fscanf(map, "%" SCNx64 " %ms", &start, &name) == 2) {
		if (nr_functions == room) {
			room = room ? 2 * room : 4096;
			functions = realloc(functions, room * sizeof(*functions));
			if (!functions)
				abort();
		}
		functions[nr_functions++] = (struct function){ .start = start, .name = name };
	}
	fclose(map);
	return nr_functions;
}

/* Return the value of an argument NAME=VALUE, or NULL. */
static const char *value_of(const char *name, int argc, char **argv)
{
	size_t length = strlen(name);

	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], name, length) && argv[i][length] == '=')
			return argv[i] + length + 1;
	return NULL;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	const char *path = value_of("out", argc, argv), *address = value_of("mark", argc, argv);

	out = path ? fopen(path, "w") : NULL;
	if (!out || !address || !read_map(value_of("map", argc, argv))) {
		fprintf(stderr, "count: cannot read map= or write out=, or mark= is missing\n");
		return -1;
	}
	mark = strtoull(address, NULL, 16);
	mappings_out = value_of("mappings", argc, argv);
	copies_data = info->version.cur >= 3;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
