/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs of pages, copied by a loop through the cache, in an FPU section.
 */
#include <linux/linkage.h>
#include <asm/asm.h>
#include <asm/page_types.h>

/* Of 16 bytes; where the source may be poisoned, a fault ends the copy. */
.macro LOAD offset:req reg:req mc:req
.Lload_\@:
	movups	\offset(%rsi), \reg
	.if \mc
	_ASM_EXTABLE_TYPE(.Lload_\@, .Lmc_done, EX_TYPE_DEFAULT_MCE_SAFE)
	.endif
.endm

/* %edx: number of pages, not 0; %rax is the end of the source. */
.macro COPY_PAGES mc:req
	movl	%edx, %eax
	shlq	$PAGE_SHIFT, %rax
	addq	%rsi, %rax
	.p2align 6
.Lnext_\@:
	LOAD	0,	%xmm0, \mc
	LOAD	16,	%xmm1, \mc
	LOAD	32,	%xmm2, \mc
	LOAD	48,	%xmm3, \mc
	movups	%xmm0,	(%rdi)
	movups	%xmm1,	16(%rdi)
	movups	%xmm2,	32(%rdi)
	movups	%xmm3,	48(%rdi)
	addq	$64, %rsi
	addq	$64, %rdi
	cmpq	%rax, %rsi
	jne	.Lnext_\@
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
