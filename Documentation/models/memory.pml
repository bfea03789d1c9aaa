/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Weak memory, for the models of this directory.
 *
 * Each CPU has a buffer for two plain stores. The process memory() makes them
 * visible to the others some time, in any order; so this is weaker than x86,
 * where the order is kept. Loads see the CPU's own buffer first. Loads are not
 * reordered among themselves.
 *
 * A value returning atomic operation is a full barrier, as in the kernel: it
 * waits for the buffer to drain. So does full_barrier(), which is smp_mb().
 * store_release() waits for the stores before it.
 *
 * The includer defines CPUS and WORDS. Each process has a variable `me`, the
 * number of its CPU; a process that uses only atomic operations has `me` NOBODY.
 */
#define NOBODY		CPUS

byte mem[WORDS];
chan buffer[CPUS + 1] = [2] of { byte, byte };

/* True when what the process stored is visible to all. */
#define drained		(len(buffer[me]) == 0)

#define full_barrier()	(drained)

#define store(word, value)		buffer[me] ! word, value
#define store_release(word, value)	atomic { drained -> buffer[me] ! word, value }

/*
 * load() of a word that the process itself never has in its buffer, and of one
 * that it may have there.
 */
#define load(word)	mem[word]

inline load_own(word, to)
{
	d_step {
		to = mem[word];
		if
		:: buffer[me] ?? [eval(word), 0] -> to = 0
		:: buffer[me] ?? [eval(word), 1] -> to = 1
		:: else
		fi
	}
}

inline xchg(word, value, old)
{
	atomic { drained -> old = mem[word]; mem[word] = value }
}

/* One store becomes visible: the oldest, or the one behind it. */
inline drain(cpu)
{
	if
	:: buffer[cpu] ? word, value
	:: len(buffer[cpu]) == 2 ->
		buffer[cpu] ? first, first_value;
		if
		:: buffer[cpu] ? word, value
		fi;
		if
		:: word == first ->
			/* Never two values of a word the wrong way round. */
			mem[word] = first_value
		:: else -> buffer[cpu] ! first, first_value
		fi
	fi;
	mem[word] = value
}

active proctype memory()
{
	byte word, value, first, first_value;

end:
	do
	:: atomic { nempty(buffer[0]) -> drain(0) }
	:: atomic { nempty(buffer[1]) -> drain(1) }
#if CPUS > 2
	:: atomic { nempty(buffer[2]) -> drain(2) }
#endif
#if CPUS > 3
	:: atomic { nempty(buffer[3]) -> drain(3) }
#endif
	od
}
