/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KVERBS_EXPORT_H
#define KVERBS_EXPORT_H

#include <linux/export.h>

/* For the other modules of the midlayer: no part of its interface. */
#define IB_EXPORT_INTERNAL(symbol)	EXPORT_SYMBOL_NS_GPL(symbol, KVERBS_INTERNAL)

#endif
