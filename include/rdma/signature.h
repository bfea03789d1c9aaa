/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Data integrity (T10-PI) attributes of memory regions. Names and meaning
 * are those of SPC/SBC protection information as Linux RDMA users know them.
 */
#ifndef _RDMA_SIGNATURE_H_
#define _RDMA_SIGNATURE_H_

#include <linux/bits.h>
#include <linux/types.h>

/* Protection types a device can handle, for ib_device_attr.sig_prot_cap. */
enum ib_signature_prot_cap {
	IB_PROT_T10DIF_TYPE_1	= BIT(0),
	IB_PROT_T10DIF_TYPE_2	= BIT(1),
	IB_PROT_T10DIF_TYPE_3	= BIT(2),
};

/* Guard formats a device can compute, for ib_device_attr.sig_guard_cap. */
enum ib_signature_guard_cap {
	IB_GUARD_T10DIF_CRC	= BIT(0),
	IB_GUARD_T10DIF_CSUM	= BIT(1),
};

enum ib_signature_type {
	IB_SIG_TYPE_NONE,
	IB_SIG_TYPE_T10_DIF,
};

enum ib_t10_dif_bg_type {
	IB_T10DIF_CRC,		/* CRC-16 with the T10 polynomial */
	IB_T10DIF_CSUM,		/* 16-bit ones' complement sum, as in IP */
};

/**
 * struct ib_t10_dif_domain - protection information of one side of a transfer
 * @bg_type: how the guard tag is computed
 * @pi_interval: bytes of data that one protection tuple covers
 * @bg: initial value of the guard computation
 * @app_tag: application tag
 * @ref_tag: reference tag of the first interval
 * @ref_remap: the reference tag grows by one with every interval
 * @app_escape: an application tag of 0xffff switches off the check
 * @ref_escape: a reference tag of 0xffffffff switches off the check
 * @apptag_check_mask: the bits of the application tag that are compared
 */
struct ib_t10_dif_domain {
	enum ib_t10_dif_bg_type	bg_type;
	u16			pi_interval;
	u16			bg;
	u16			app_tag;
	u32			ref_tag;
	bool			ref_remap;
	bool			app_escape;
	bool			ref_escape;
	u16			apptag_check_mask;
};

/**
 * struct ib_sig_domain - signature layout of memory or of the wire
 * @sig_type: kind of signature; selects the member of @sig
 * @sig: parameters of that kind
 * @sig.dif: parameters when @sig_type is %IB_SIG_TYPE_T10_DIF
 */
struct ib_sig_domain {
	enum ib_signature_type	sig_type;
	union {
		struct ib_t10_dif_domain dif;
	} sig;
};

/**
 * struct ib_sig_attrs - what a device does with the signature of data that it transfers
 * @check_mask: bytes of the tuple to check, see IB_SIG_CHECK_*
 * @mem: layout in memory
 * @wire: layout on the wire
 * @meta_length: bytes of metadata
 */
struct ib_sig_attrs {
	u8			check_mask;
	struct ib_sig_domain	mem;
	struct ib_sig_domain	wire;
	int			meta_length;
};

enum ib_sig_err_type {
	IB_SIG_BAD_GUARD,
	IB_SIG_BAD_REFTAG,
	IB_SIG_BAD_APPTAG,
};

/*
 * A tuple has 8 bytes: guard 2, application tag 2, reference tag 4. Bit 7 stands for the
 * first byte.
 */
enum {
	IB_SIG_CHECK_GUARD	= 0xc0,
	IB_SIG_CHECK_APPTAG	= 0x30,
	IB_SIG_CHECK_REFTAG	= 0x0f,
};

/**
 * struct ib_sig_err - the first mismatch a device found
 * @err_type: which tag was wrong
 * @expected: value computed
 * @actual: value found
 * @sig_err_offset: byte offset of the mismatch in the transfer
 * @key: lkey or rkey of the memory region
 */
struct ib_sig_err {
	enum ib_sig_err_type	err_type;
	u32			expected;
	u32			actual;
	u64			sig_err_offset;
	u32			key;
};

#endif /* _RDMA_SIGNATURE_H_ */
