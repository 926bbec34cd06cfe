/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs of pages, copied by a loop through the cache.
 */
#include <linux/linkage.h>
#include <asm/asm.h>
#include <asm/page_types.h>

#define LINE	64
#define AHEAD	(5 * LINE)

/* Of the load at @offset; where the source may be poisoned, a fault ends the copy. */
.macro LOAD offset:req reg:req mc:req
.Lload_\@:
	movq	\offset(%rsi), \reg
	.if \mc
	_ASM_EXTABLE_TYPE(.Lload_\@, .Lmc_done, EX_TYPE_DEFAULT_MCE_SAFE)
	.endif
.endm

.macro COPY_HALF_LINE offset:req mc:req
	LOAD	\offset,	%r8, \mc
	LOAD	\offset + 8,	%r9, \mc
	LOAD	\offset + 16,	%r10, \mc
	LOAD	\offset + 24,	%r11, \mc
	movq	%r8,	\offset(%rdi)
	movq	%r9,	\offset + 8(%rdi)
	movq	%r10,	\offset + 16(%rdi)
	movq	%r11,	\offset + 24(%rdi)
.endm

.macro COPY_LINES end:req prefetch:req mc:req
	.p2align 6
.Lnext_\@:
	.if \prefetch
	prefetcht0	AHEAD(%rsi)
	.endif
	COPY_HALF_LINE	0, \mc
	COPY_HALF_LINE	LINE / 2, \mc
	addq	$LINE, %rsi
	addq	$LINE, %rdi
	cmpq	\end, %rsi
	jne	.Lnext_\@
.endm

/*
 * %edx: number of pages, not 0. Nothing beyond the source is prefetched: what
 * lies there may be poisoned.
 */
.macro COPY_PAGES mc:req
	movl	%edx, %eax
	shlq	$PAGE_SHIFT, %rax
	addq	%rsi, %rax
	leaq	-AHEAD(%rax), %rcx
	COPY_LINES	%rcx, 1, \mc
	COPY_LINES	%rax, 0, \mc
.endm

/* void copy_pages_loop(void *to, const void *from, unsigned int npages) */
SYM_FUNC_START(copy_pages_loop)
	COPY_PAGES 0
	RET
SYM_FUNC_END(copy_pages_loop)

/*
 * unsigned long copy_mc_pages_loop(void *to, const void *from,
 *				    unsigned int npages)
 *
 * Returns the bytes that were not copied, as there was a machine check.
 */
SYM_FUNC_START(copy_mc_pages_loop)
	COPY_PAGES 1
.Lmc_done:
	subq	%rsi, %rax
	RET
SYM_FUNC_END(copy_mc_pages_loop)
