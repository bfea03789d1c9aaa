/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the execution of a work queue entry ends, and what was wrong.
 */
#ifndef KVERBS_EMU_OUTCOME_H
#define KVERBS_EMU_OUTCOME_H

/**
 * enum emu_outcome - how the execution of a work queue entry ended
 * @EMU_DONE: it has its completion
 * @EMU_FAILED: it has its completion in error, and the queue pair is in error
 * @EMU_NO_RESPONSE: the peer does not answer; try again after the timeout
 * @EMU_RNR: the peer has no receive posted; try again after its timer
 * @EMU_AGAIN: something is in use for a moment; try again from a runner
 * @EMU_RUNNER: not tried, as it takes long: a runner must execute it
 * @EMU_DELAYED: not yet, on purpose or because memory is on the move; try again
 *	after a while
 * @EMU_DROPPED: it has its completion, but its message was dropped
 */
enum emu_outcome {
	EMU_DONE,
	EMU_FAILED,
	EMU_NO_RESPONSE,
	EMU_RNR,
	EMU_AGAIN,
	EMU_RUNNER,
	EMU_DELAYED,
	EMU_DROPPED,
};

/* What the engine found wrong, as reported in ib_wc.vendor_err. */
enum emu_syndrome {
	EMU_SYN_NONE,
	EMU_SYN_KEY,		/* no such memory key, or not valid */
	EMU_SYN_KEY_PD,		/* the key belongs to another protection domain */
	EMU_SYN_KEY_ACCESS,	/* the key does not grant this access */
	EMU_SYN_KEY_RANGE,	/* outside the memory region */
	EMU_SYN_ADDRESS,	/* not an address of this machine's memory */
	EMU_SYN_LENGTH,		/* message longer than the receive buffer */
	EMU_SYN_QP_ACCESS,	/* the responder's queue pair does not allow it */
	EMU_SYN_NO_RESPONSE,	/* nobody answers at the destination */
	EMU_SYN_RNR,		/* the responder had no receive posted */
	EMU_SYN_MR_STATE,	/* the region's state forbids it */
	EMU_SYN_FLUSHED,	/* ended by the queue pair's error state */
	EMU_SYN_REMOTE,		/* the responder failed */
	EMU_SYN_BIND,		/* the window must not be bound this way */
	EMU_SYN_WINDOWS,	/* windows are bound to the region */
	EMU_SYN_ALIGNMENT,	/* atomic operand not at a multiple of 8 */
	EMU_SYN_RD_ATOMIC,	/* max_rd_atomic allows no reads or atomics */
	EMU_SYN_INJECTED,	/* an injected fault, see fault.c */
	EMU_SYN_PAUSED,		/* its memory is on the move: never reported, but tried again */
	EMU_SYN_ROUTE,		/* another PCI device's memory, with no route to it */
	EMU_SYN_REQUEST,	/* a process posted an invalid request */
};

#endif
