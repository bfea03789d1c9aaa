/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a kernel that was built without KUnit does not know about modules: which suites they have.
 */
#ifndef KUNIT_SUITES_H
#define KUNIT_SUITES_H

struct kunit_suite;
struct mm_struct;
struct module;

/* In place of the members of struct module, by their names. */
struct kunit_module {
	struct module *mod;			/* whose suites these are, or NULL */
	struct kunit_suite **kunit_suites;	/* its suites */
	unsigned int num_kunit_suites;		/* how many */
	struct kunit_suite **kunit_init_suites;	/* none */
	unsigned int num_kunit_init_suites;	/* 0 */
};

struct kunit_module *kunit_module_of(struct module *mod, unsigned long state);
struct mm_struct *kunit_new_mm(void);

#endif
