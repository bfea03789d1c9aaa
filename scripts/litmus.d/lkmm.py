#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Evaluates small litmus tests by the axioms of the kernel's memory model.

usage: lkmm.py FILE...

Prints "<file>: Never", "Sometimes" or "Always" for each. For each test it goes
through all candidate executions (which values are read from where, in which order
the writes of a variable take effect) and keeps those that the axioms of
tools/memory-model/linux-kernel.cat allow. It knows accesses with READ_ONCE() and
the like, atomic operations, fences, dependencies and RCU; no locks, no SRCU, no
plain accesses and no loops: "<file>: Unknown" and the reason.
"""
import itertools
import re
import sys

TOKEN = re.compile(r'\s*(?:([A-Za-z_]\w*)|(\d+)|(==|!=|&&|\|\||/\\|\\/|[-+*&|!~=(){};,:<>]))')


class Unknown(Exception):
    """The test uses something that is not modelled."""


class Impossible(Exception):
    """No execution reads this: a value that is not an address is dereferenced."""


class NeedChoice(Exception):
    """A read needs a value; the argument is the location that it reads."""


def tokenize(text):
    tokens, pos = [], 0
    text = text.rstrip()
    while pos < len(text):
        match = TOKEN.match(text, pos)
        if not match:
            raise Unknown('cannot read: ' + text[pos:pos + 20])
        tokens.append(match.group(match.lastindex))
        pos = match.end()
    return tokens


class Event:
    """An access or a fence. `tags` are the model's: once, acquire, mb, ..."""

    def __init__(self, thread, kind, tag, loc=None, value=None):
        self.thread, self.kind, self.tag = thread, kind, tag
        self.loc, self.value = loc, value
        self.addr, self.data, self.ctrl = set(), set(), set()
        self.rmw = None  # the read that this write belongs to
        self.atomic = False  # part of an atomic operation, even of a failed one


FENCES = {
    'smp_mb': 'mb', 'smp_rmb': 'rmb', 'smp_wmb': 'wmb', 'barrier': 'barrier',
    'smp_mb__before_atomic': 'before', 'smp_mb__after_atomic': 'after',
    'rcu_read_lock': 'lock', 'rcu_read_unlock': 'unlock',
    'synchronize_rcu': 'sync', 'synchronize_rcu_expedited': 'sync',
}
# On the order suffix: relaxed, acquire, release, or none for a full barrier.
ATOMIC = re.compile(r'^(?:(atomic)_)?(xchg|cmpxchg|fetch_(?:add|sub|inc|dec)'
                    r'|(?:add|sub|inc|dec)_return)(_relaxed|_acquire|_release)?$')
NORETURN = re.compile(r'^atomic_(add|sub|inc|dec)$')
OPS = {
    'add': lambda a, b: a + b, 'sub': lambda a, b: a - b,
    'inc': lambda a, b: a + 1, 'dec': lambda a, b: a - 1,
}


class Thread:
    """Runs one thread for a given list of the values that its reads return."""

    def __init__(self, number, params, body):
        self.number, self.params, self.body = number, params, body

    def run(self, choices):
        self.tokens, self.pos = self.body, 0
        self.events, self.regs, self.ctrl = [], {}, set()
        self.choices, self.used = choices, 0
        self.live = True
        while self.pos < len(self.tokens):
            self.statement()
        if self.used != len(choices):
            raise Unknown('internal: choices left')
        return self.events, {r: v for r, (v, _) in self.regs.items()}

    def peek(self, ahead=0):
        at = self.pos + ahead
        return self.tokens[at] if at < len(self.tokens) else None

    def take(self, want=None):
        token = self.peek()
        if token is None or (want is not None and token != want):
            raise Unknown('expected %s, found %s' % (want, token))
        self.pos += 1
        return token

    def add(self, kind, tag, loc=None, value=None, addr=(), data=()):
        event = Event(self.number, kind, tag, loc, value)
        event.addr, event.data, event.ctrl = set(addr), set(data), set(self.ctrl)
        self.events.append(event)
        return event

    def read(self, tag, ptr):
        if not self.live:
            return 0, set(), None
        if self.used == len(self.choices):
            raise NeedChoice(ptr[0])
        value = self.choices[self.used]
        self.used += 1
        event = self.add('R', tag, ptr[0], value, addr=ptr[1])
        return value, {event}, event

    def write(self, tag, ptr, value, data=(), rmw=None):
        if self.live:
            event = self.add('W', tag, ptr[0], value, addr=ptr[1], data=data)
            event.rmw = rmw
            if rmw:
                event.atomic = rmw.atomic = True

    def fence(self, tag):
        if self.live:
            self.add('F', tag)

    # Statements.

    def skip_or(self, run):
        live, self.live = self.live, self.live and run
        self.statement()
        self.live = live

    def statement(self):
        token = self.peek()
        if token == '{':
            self.take()
            while self.peek() != '}':
                self.statement()
            self.take('}')
        elif token == 'if':
            self.take()
            self.take('(')
            value, deps = self.expr()
            self.take(')')
            if self.live:
                self.ctrl = self.ctrl | deps
            self.skip_or(bool(value))
            if self.peek() == 'else':
                self.take()
                self.skip_or(not value)
        elif token in ('int', 'atomic_t', 'bool'):
            self.take()
            while self.peek() == '*':
                self.take()
            if self.peek(1) == '=':
                self.statement()
            else:
                while self.take() != ';':
                    pass
        elif token in ('while', 'for', 'do', 'goto'):
            raise Unknown(token)
        elif token == '*':
            raise Unknown('plain access')
        elif re.match(r'[A-Za-z_]', token) and self.peek(1) == '=':
            self.take()
            self.take('=')
            value = self.expr()
            self.take(';')
            if self.live:
                self.regs[token] = value
        else:
            self.expr()
            self.take(';')

    # Expressions are (value, the reads it depends on).

    def binary(self, operators, below):
        value, deps = below()
        while self.peek() in operators:
            operator = self.take()
            right, more = below()
            value, deps = operators[operator](value, right), deps | more
        return value, deps

    def expr(self):
        return self.binary({'||': lambda a, b: int(bool(a or b))}, self.expr_and)

    def expr_and(self):
        return self.binary({'&&': lambda a, b: int(bool(a and b))}, self.expr_eq)

    def expr_eq(self):
        return self.binary({'==': lambda a, b: int(a == b), '!=': lambda a, b: int(a != b)},
                           self.expr_sum)

    def expr_sum(self):
        return self.binary({'+': lambda a, b: a + b, '-': lambda a, b: a - b}, self.unary)

    def unary(self):
        token = self.take()
        if token == '!':
            value, deps = self.unary()
            return int(not value), deps
        if token == '(':
            if self.peek() in ('int', 'struct') and ')' in self.tokens[self.pos:self.pos + 4]:
                while self.take() != ')':
                    pass
                return self.unary()
            value = self.expr()
            self.take(')')
            return value
        if token == '&':
            return '&' + self.take(), set()
        if token.isdigit():
            return int(token), set()
        if token == '*':
            raise Unknown('plain access')
        if self.peek() == '(':
            return self.call(token)
        if token in self.params:
            return '&' + token, set()
        if token not in self.regs:
            return (0, set()) if not self.live else self.undefined(token)
        return self.regs[token]

    def undefined(self, name):
        raise Unknown('%s is not set' % name)

    def pointer(self):
        """The location that an argument names, and the reads it depends on."""
        starred = self.peek() == '*'
        if starred:
            self.take()
        value, deps = self.unary()
        if not self.live:
            return 'none', set()
        if not isinstance(value, str):
            raise Impossible
        return value[1:], deps

    def call(self, name):
        self.take('(')
        value = self.function(name)
        self.take(')')
        return value

    def function(self, name):
        if name in FENCES:
            self.fence(FENCES[name])
            return 0, set()
        if name in ('READ_ONCE', 'atomic_read', 'rcu_dereference'):
            return self.read('once', self.pointer())[:2]
        if name in ('smp_load_acquire', 'atomic_read_acquire'):
            return self.read('acquire', self.pointer())[:2]
        if name in ('WRITE_ONCE', 'smp_store_release', 'rcu_assign_pointer', 'smp_store_mb',
                    'atomic_set', 'atomic_set_release'):
            first = self.number_first(name)
            tag = 'release' if 'release' in name or 'assign' in name else 'once'
            self.write(tag, first[0], first[1][0], first[1][1])
            if name == 'smp_store_mb':
                self.fence('mb')
            return 0, set()
        match = NORETURN.match(name)
        if match:
            operand, ptr = self.operand(match.group(1))
            old, deps, event = self.read('noreturn', ptr)
            self.write('once', ptr, OPS[match.group(1)](old, operand[0]),
                       deps | operand[1], event)
            return 0, set()
        match = ATOMIC.match(name)
        if match:
            return self.atomic(*match.groups())
        raise Unknown(name + '()')

    def number_first(self, _name):
        ptr = self.pointer()
        self.take(',')
        return ptr, self.expr()

    def operand(self, op):
        """Handles both atomic_add(1, v) and atomic_inc(v)."""
        if op in ('inc', 'dec'):
            return (1, set()), self.pointer()
        value = self.expr()
        self.take(',')
        return value, self.pointer()

    def atomic(self, _atomic, op, order):
        expected = None
        if op in ('xchg', 'cmpxchg'):
            ptr = self.pointer()
            self.take(',')
            if op == 'cmpxchg':
                expected = self.expr()
                self.take(',')
            operand = self.expr()
        else:
            operand, ptr = self.operand(op.replace('fetch_', '').replace('_return', ''))
        if not self.live:
            return 0, set()
        # Success is decided first, because the fences depend on it.
        if self.used == len(self.choices):
            raise NeedChoice(ptr[0])
        if expected is not None and self.choices[self.used] != expected[0]:
            old, deps, event = self.read('once', ptr)
            event.atomic = True
            return old, deps
        if order is None:
            self.fence('mb')
        old, deps, event = self.read('acquire' if order == '_acquire' else 'once', ptr)
        if op in ('xchg', 'cmpxchg'):
            new, data = operand
        else:
            base = op.replace('fetch_', '').replace('_return', '')
            new, data = OPS[base](old, operand[0]), deps | operand[1]
        self.write('release' if order == '_release' else 'once', ptr, new, data, event)
        if order is None:
            self.fence('mb')
        return (new if op.endswith('_return') else old), deps


class Test:
    """A litmus file."""

    def __init__(self, text):
        # In the threads, "(*" is the start of an argument.
        text = re.sub(r'(?m)^\(\*.*?\*\)', ' ', text, flags=re.S)
        text = re.sub(r'(?m)\(\* [^*]*\*\)\s*$', ' ', text)
        text = re.sub(r'//.*', ' ', text)
        text = re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)
        match = re.match(r'\s*C\s+\S+\s*\{(.*?)\}(.*?)^(exists|forall|~exists)\b\s*(.*)', text,
                         re.S | re.M)
        if not match:
            raise Unknown('not a litmus test in C')
        self.init = self.parse_init(match.group(1))
        self.quantifier = match.group(3)
        self.threads = []
        for head in re.finditer(r'\bP(\d+)\s*\(([^)]*)\)\s*\{', match.group(2)):
            params = [p for p in re.findall(r'(\w+)\s*(?:,|$)', head.group(2)) if p != 'void']
            self.threads.append(Thread(int(head.group(1)), params,
                                       self.body(match.group(2), head.end())))
        self.condition = tokenize(match.group(4))

    @staticmethod
    def body(text, start):
        depth, end = 1, start
        while depth:
            depth += {'{': 1, '}': -1}.get(text[end], 0)
            end += 1
        return tokenize(text[start:end - 1])

    @staticmethod
    def parse_init(text):
        init = {}
        for item in filter(None, (i.strip() for i in text.split(';'))):
            match = re.match(r'(?:int\s*\*?\s*|atomic_t\s+|spinlock_t\s+)?(\w+)\s*(?:=\s*([&\w()]+))?$', item)
            if not match:
                raise Unknown('initial value: ' + item)
            value = re.sub(r'ATOMIC_INIT|[()]', '', match.group(2) or '0')
            if value.isalpha() or value.startswith('&'):
                init[match.group(1)] = '&' + value.lstrip('&')
            else:
                init[match.group(1)] = int(value)
        return init

    def paths(self, thread, domain):
        """All ways through a thread, by the values that it reads."""
        todo = [[]]
        while todo:
            choices = todo.pop()
            try:
                thread.run(choices)
            except NeedChoice as need:
                todo += [choices + [value] for value in domain.get(need.args[0], {0})]
                continue
            except Impossible:
                continue
            # Once more, for separate events.
            yield thread.run(choices)

    def domain(self):
        """Readable values by location. Each atomic operation runs at most once."""
        values = {loc: {value} for loc, value in self.init.items()}
        names = [t for thread in self.threads for t in thread.body]
        for _ in range(2 + sum(1 for t in names if ATOMIC.match(re.sub('^atomic_', '', t)) or
                               NORETURN.match(t))):
            found = {loc: set(known) for loc, known in values.items()}
            for thread in self.threads:
                for events, _ in self.paths(thread, values):
                    for event in events:
                        if event.kind == 'W':
                            found.setdefault(event.loc, {0}).add(event.value)
            if found == values:
                break
            values = found
        return values

    def holds(self, regs, final):
        self.tokens, self.at = self.condition, 0
        return self.parse_or(regs, final)

    def parse_or(self, regs, final):
        value = self.parse_and(regs, final)
        while self.at < len(self.tokens) and self.tokens[self.at] == '\\/':
            self.at += 1
            right = self.parse_and(regs, final)
            value = value or right
        return value

    def parse_and(self, regs, final):
        value = self.parse_not(regs, final)
        while self.at < len(self.tokens) and self.tokens[self.at] == '/\\':
            self.at += 1
            right = self.parse_not(regs, final)
            value = value and right
        return value

    def parse_not(self, regs, final):
        token = self.tokens[self.at]
        self.at += 1
        if token == '~':
            return not self.parse_not(regs, final)
        if token == '(':
            value = self.parse_or(regs, final)
            self.at += 1
            return value
        if self.tokens[self.at] == ':':
            have = regs[int(token)].get(self.tokens[self.at + 1])
            self.at += 2
        else:
            have = final.get(token, 0)
        equal = self.tokens[self.at] == '='
        want = self.tokens[self.at + 1]
        self.at += 2
        if want == '&':
            want = '&' + self.tokens[self.at]
            self.at += 1
        elif want.isdigit():
            want = int(want)
        else:
            want = '&' + want
        return (have == want) == equal

    def verdict(self):
        domain = self.domain()
        allowed = good = 0
        ways = [list(self.paths(thread, domain)) for thread in self.threads]
        for way in itertools.product(*ways):
            for execution in executions([events for events, _ in way], self.init):
                if not execution.allowed():
                    continue
                allowed += 1
                regs = {t.number: r for t, (_, r) in zip(self.threads, way)}
                good += self.holds(regs, execution.final())
        if not allowed:
            raise Unknown('no execution is allowed')
        found = 'Never' if not good else 'Always' if good == allowed else 'Sometimes'
        if self.quantifier != 'exists':
            raise Unknown(self.quantifier)
        return found


def executions(threads, init):
    """All candidates: initial writes, threads, rf and co."""
    events = [e for thread in threads for e in thread]
    locs = sorted({e.loc for e in events if e.loc})
    initial = {loc: Event(-1, 'W', 'init', loc, init.get(loc, 0)) for loc in locs}
    writes = {loc: [e for e in events if e.kind == 'W' and e.loc == loc] for loc in locs}
    reads = [e for e in events if e.kind == 'R']
    sources = [[w for w in [initial[r.loc]] + writes[r.loc] if w.value == r.value]
               for r in reads]
    if not all(sources):
        return
    orders = [list(itertools.permutations(writes[loc])) for loc in locs]
    everything = list(initial.values()) + events
    for rf in itertools.product(*sources):
        for co in itertools.product(*orders):
            yield Execution(threads, everything, list(zip(rf, reads)),
                            [[initial[loc]] + list(o) for loc, o in zip(locs, co)])


class Execution:
    """One candidate. A relation is a list of bit masks, a row for each event."""

    def __init__(self, threads, events, rf, co):
        self.threads, self.events = threads, events
        self.size = len(events)
        self.index = {e: i for i, e in enumerate(events)}
        self.rf = self.relation(rf)
        self.orders = co
        self.co = self.relation((a, b) for o in co for a, b in itertools.combinations(o, 2))
        self.po = self.relation((a, b) for t in threads for a, b in itertools.combinations(t, 2))

    def relation(self, pairs):
        rows = [0] * self.size
        for a, b in pairs:
            rows[self.index[a]] |= 1 << self.index[b]
        return rows

    def identity(self, test=lambda e: True):
        return [1 << i if test(e) else 0 for i, e in enumerate(self.events)]

    def seq(self, *relations):
        result = relations[0]
        for right in relations[1:]:
            rows = []
            for row in result:
                out = 0
                while row:
                    low = row & -row
                    out |= right[low.bit_length() - 1]
                    row ^= low
                rows.append(out)
            result = rows
        return result

    def union(self, *relations):
        return [self.either(rows) for rows in zip(*relations)]

    @staticmethod
    def either(rows):
        out = 0
        for row in rows:
            out |= row
        return out

    def both(self, a, b):
        return [x & y for x, y in zip(a, b)]

    def inverse(self, a):
        rows = [0] * self.size
        for i, row in enumerate(a):
            for j in range(self.size):
                if row >> j & 1:
                    rows[j] |= 1 << i
        return rows

    def maybe(self, a):
        return self.union(a, self.identity())

    def star(self, a):
        result = self.maybe(a)
        for _ in range(self.size.bit_length()):
            result = self.seq(result, result)
        return result

    def cyclic(self, a):
        closure = self.seq(a, self.star(a))
        return any(row >> i & 1 for i, row in enumerate(closure))

    def final(self):
        return {order[-1].loc: order[-1].value for order in self.orders}

    def where(self, kind=None, tag=None):
        return self.identity(lambda e: (kind is None or e.kind in kind) and
                             (tag is None or e.tag == tag))

    def allowed(self):
        same = [self.either(1 << j for j, b in enumerate(self.events) if a.thread == b.thread)
                for a in self.events]
        ext = [~row & ((1 << self.size) - 1) for row in same]
        loc = [self.either(1 << j for j, b in enumerate(self.events) if a.loc and a.loc == b.loc)
               for a in self.events]
        fr = [row & ~(1 << i) for i, row in enumerate(self.seq(self.inverse(self.rf), self.co))]
        if self.cyclic(self.union(self.both(self.po, loc), self.rf, self.co, fr)):
            return False
        rmw = self.relation((e.rmw, e) for e in self.events if e.rmw)
        if any(self.both(rmw, self.seq(self.both(fr, ext), self.both(self.co, ext)))):
            return False
        return self.ordered(same, ext, fr, rmw)

    def fences(self):
        """Strong fences, and all fences."""
        access, writes, po = self.where('RW'), self.where('W'), self.po
        marked_reads = self.identity(lambda e: e.kind == 'R' and e.tag != 'noreturn')
        in_rmw = self.identity(lambda e: e.atomic)

        def between(tag):
            return self.seq(po, self.where('F', tag), po)

        mb = self.union(
            self.seq(access, between('mb'), access),
            self.seq(access, between('before'), in_rmw, self.maybe(po), access),
            self.seq(access, self.maybe(po), in_rmw, between('after'), access))
        strong = self.union(mb, self.seq(po, self.where('F', 'sync'), self.maybe(po)))
        release = self.seq(access, po, self.where('W', 'release'))
        acquire = self.seq(self.where('R', 'acquire'), po, access)
        wmb = self.seq(writes, between('wmb'), writes)
        rmb = self.seq(marked_reads, between('rmb'), marked_reads)
        return strong, release, wmb, self.union(strong, release, acquire, wmb, rmb)

    def dependencies(self, name):
        return self.relation((a, b) for b in self.events for a in getattr(b, name))

    def ordered(self, same, ext, fr, rmw):
        strong, release, wmb, fence = self.fences()
        addr, data, ctrl = (self.dependencies(n) for n in ('addr', 'data', 'ctrl'))
        dep = self.union(addr, data)
        rfe, rfi = self.both(self.rf, ext), self.both(self.rf, same)
        overwrite = self.union(self.co, fr)
        ppo = self.union(
            self.seq(addr, self.where('R')), self.seq(dep, rfi),
            self.seq(self.union(dep, ctrl), self.where('W')),
            self.both(overwrite, same), self.both(fence, same))
        cumul = self.seq(
            self.union(self.seq(self.maybe(rfe), self.union(strong, release)), wmb),
            self.star(self.seq(self.rf, rmw)))
        prop = self.seq(self.maybe(self.both(overwrite, ext)), self.star(cumul),
                        self.maybe(rfe))
        others = [row & ~(1 << i) for i, row in enumerate(prop)]
        hb = self.union(ppo, rfe, self.both(others, same))
        if self.cyclic(hb):
            return False
        pb = self.seq(prop, strong, self.star(hb))
        if self.cyclic(pb):
            return False
        return self.grace_periods(prop, hb, pb)

    def sections(self):
        pairs = []
        for thread in self.threads:
            opened = []
            for event in thread:
                if event.kind == 'F' and event.tag == 'lock':
                    opened.append(event)
                elif event.kind == 'F' and event.tag == 'unlock':
                    pairs.append((event, opened.pop()))
        return self.relation(pairs)

    def grace_periods(self, prop, hb, pb):
        gp, section = self.where('F', 'sync'), self.sections()
        if not any(gp):
            return True
        after = self.seq(self.star(hb), self.star(pb))
        link = self.seq(self.maybe(self.po), after, prop, self.po)
        order = gp
        while True:
            more = self.union(
                order, self.seq(gp, link, section), self.seq(section, link, gp),
                self.seq(gp, link, order, link, section),
                self.seq(section, link, order, link, gp), self.seq(order, link, order))
            if more == order:
                break
            order = more
        fence = self.seq(self.po, order, self.maybe(self.po))
        rb = self.seq(prop, fence, after)
        return not any(row >> i & 1 for i, row in enumerate(rb))


def main():
    for path in sys.argv[1:]:
        try:
            with open(path, encoding='utf-8') as file:
                print('%s: %s' % (path, Test(file.read()).verdict()), flush=True)
        except Unknown as reason:
            print('%s: Unknown: %s' % (path, reason), flush=True)


if __name__ == '__main__':
    main()
