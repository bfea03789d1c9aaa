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
import ast
import dataclasses
import itertools
import keyword
import operator
import re
import sys
import textwrap


class Unknown(Exception):
    """The test uses something that is not modelled."""


class Impossible(Exception):
    """No execution reads this: a value that is not an address is dereferenced."""


class NeedChoice(Exception):
    """A read needs a value; the argument is the location that it reads."""


# --- what threads do ----------------------------------------------------------


@dataclasses.dataclass(eq=False)
class Event:
    """An access or a fence: R, W or F. The tag is the model's: once, acquire, mb, ..."""
    thread: int
    kind: str
    tag: str
    loc: str = None
    value: object = None
    # The reads that it depends on, by its address, its value and a branch.
    addr: set = frozenset()
    data: set = frozenset()
    ctrl: set = frozenset()
    rmw: object = None      # the read that this write belongs to
    atomic: bool = False    # part of an atomic operation, even of a failed one


FENCES = {
    'smp_mb': 'mb', 'smp_rmb': 'rmb', 'smp_wmb': 'wmb', 'barrier': 'barrier',
    'smp_mb__before_atomic': 'before', 'smp_mb__after_atomic': 'after',
    'rcu_read_lock': 'lock', 'rcu_read_unlock': 'unlock',
    'synchronize_rcu': 'sync', 'synchronize_rcu_expedited': 'sync',
}
READS = {
    'READ_ONCE': 'once', 'atomic_read': 'once', 'rcu_dereference': 'once',
    'smp_load_acquire': 'acquire', 'atomic_read_acquire': 'acquire',
}
WRITES = {
    'WRITE_ONCE': 'once', 'atomic_set': 'once', 'smp_store_mb': 'once',
    'smp_store_release': 'release', 'atomic_set_release': 'release',
    'rcu_assign_pointer': 'release',
}
OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.And: lambda *values: all(values), ast.Or: lambda *values: any(values),
}
# Of those that return something, the order is that of the suffix, or a full barrier.
ATOMIC = re.compile(r'\b(?:atomic_)?(xchg|cmpxchg|fetch_(?:add|sub|inc|dec)'
                    r'|(?:add|sub|inc|dec)_return)(_relaxed|_acquire|_release)?(?=\(|$)'
                    r'|\batomic_(add|sub|inc|dec)(?=\(|$)')


def to_python(text):
    """C in the kernel's layout is nearly Python: a block is what is indented; *x is an argument."""
    if re.search(r'^(\t+)(if|else)\b[^{\n]*\n\1\t.*\n\1\t', text, re.M):
        raise Unknown('cannot tell what an if is about: no brackets')
    for pattern, replacement in [
            (r'^\s*(int|bool|atomic_t) [^=\n]*;$', ''),             # declarations
            (r'\b(int|bool|atomic_t) \**(?=\w+ =)', ''),
            (r'\((int|struct \w+) *\**\)(?=[\w(&*])', ''),          # casts
            (r'\belse if\b', 'elif'),
            (r'^(\s*)(?:\} )?(if|elif|else)\b(.*?)(?: \{)?$', r'\1\2\3:'),
            (r'^\s*\}$', ''), (r';', ''),
            (r'&&', ' and '), (r'\|\|', ' or '), (r'!(?!=)', '~'), (r'&(?=\w)', 'address_of.')]:
        text = re.sub(pattern, replacement, text, flags=re.M)
    try:
        return ast.parse(textwrap.dedent(text)).body
    except SyntaxError as error:
        raise Unknown(f'cannot read: {error.text.strip()}') from error


class Thread:
    """Runs one thread for a given list of the values that its reads return."""

    def __init__(self, number, params, text):
        self.number, self.params = number, params
        self.body, self.atomics = to_python(text), len(ATOMIC.findall(text))

    def run(self, choices):
        """The events, and the registers in the end."""
        self.choices = list(choices)
        self.events, self.regs, self.ctrl = [], {}, set()
        self.statements(self.body)
        return self.events, {name: value for name, (value, _) in self.regs.items()}

    def paths(self, domain):
        """All ways through it, by the values that it reads."""
        todo = [[]]
        while todo:
            choices = todo.pop()
            try:
                yield self.run(choices)
            except NeedChoice as need:
                todo += [choices + [value] for value in domain.get(need.args[0], {0})]
            except Impossible:
                continue

    def statements(self, nodes):
        for node in nodes:
            match node:
                case ast.If():
                    value, deps = self.value(node.test)
                    self.ctrl = self.ctrl | deps
                    self.statements(node.body if value else node.orelse)
                case ast.Assign(targets=[ast.Name(id=name)]):
                    self.regs[name] = self.value(node.value)
                case ast.Expr(value=ast.Call()):
                    self.value(node.value)
                case _:
                    raise Unknown('cannot run: ' + ast.unparse(node))

    def value(self, node):
        """What an expression is, and the reads that it depends on."""
        match node:
            case ast.Constant(value=number):
                return number, set()
            case ast.Attribute(value=ast.Name(id='address_of'), attr=name):
                return '&' + name, set()
            case ast.Name(id=name) if name in self.params:
                return '&' + name, set()
            case ast.Name(id=name) if name in self.regs:
                return self.regs[name]
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.call(name, args)
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                value, deps = self.value(operand)
                return int(not value), deps
            case ast.BinOp(left=left, op=op, right=right) | \
                    ast.Compare(left=left, ops=[op], comparators=[right]):
                operands = [left, right]
            case ast.BoolOp(op=op, values=operands):
                pass
            case _:
                raise Unknown('cannot evaluate: ' + ast.unparse(node))
        if type(op) not in OPERATORS:
            raise Unknown('cannot evaluate: ' + ast.unparse(node))
        values, deps = zip(*map(self.value, operands))
        return int(OPERATORS[type(op)](*values)), set().union(*deps)

    def pointer(self, node):
        """The location that an argument names, and the reads that it depends on."""
        value, deps = self.value(node.value if isinstance(node, ast.Starred) else node)
        if not isinstance(value, str):
            raise Impossible
        return value[1:], deps

    def add(self, kind, tag, pointer=(None, frozenset()), value=None, data=frozenset()):
        event = Event(self.number, kind, tag, pointer[0], value, pointer[1], data, self.ctrl)
        self.events.append(event)
        return event

    def choice(self, pointer):
        """The value that is read next."""
        if not self.choices:
            raise NeedChoice(pointer[0])
        return self.choices[0]

    def read(self, tag, pointer):
        event = self.add('R', tag, pointer, self.choice(pointer))
        self.choices.pop(0)
        return event

    def call(self, name, args):
        if name in FENCES:
            self.add('F', FENCES[name])
        elif name in READS:
            event = self.read(READS[name], self.pointer(args[0]))
            return event.value, {event}
        elif name in WRITES:
            self.add('W', WRITES[name], self.pointer(args[0]), *self.value(args[1]))
            if name == 'smp_store_mb':
                self.add('F', 'mb')
        elif match := ATOMIC.fullmatch(name):
            return self.atomic(*match.groups(), args)
        else:
            raise Unknown(name + '()')
        return 0, set()

    def atomic(self, op, order, void_op, args):
        op = op or void_op
        pointer = self.pointer(args[0] if 'xchg' in op else args[-1])
        operands = [self.value(arg) for arg in (args[1:] if 'xchg' in op else args[:-1])]
        # Success is decided first, because the fences depend on it.
        if op == 'cmpxchg' and self.choice(pointer) != operands[0][0]:
            event = self.read('once', pointer)
            event.atomic = True
            return event.value, {event}
        full = order is None and not void_op
        if full:
            self.add('F', 'mb')
        read = self.read('noreturn' if void_op else 'acquire' if order == '_acquire' else 'once',
                         pointer)
        if 'xchg' in op:
            new, data = operands[-1]
        else:
            by, deps = operands[0] if operands else (1, set())
            new = read.value + (by if 'add' in op or 'inc' in op else -by)
            data = deps | {read}
        write = self.add('W', 'release' if order == '_release' else 'once', pointer, new, data)
        write.rmw, write.atomic, read.atomic = read, True, True
        if full:
            self.add('F', 'mb')
        return (new if op.endswith('_return') else read.value), {read}


# --- tests --------------------------------------------------------------------


class Test:
    """A litmus file."""

    def __init__(self, text):
        # In the threads, "(*x" is the start of an argument.
        text = re.sub(r'^\(\*.*?\*\)|\(\* [^*]*\*\)|//.*?$|/\*.*?\*/', '', text,
                      flags=re.S | re.M)
        # Names that Python has taken.
        text = re.sub(rf'\b(?!if\b|else\b)({"|".join(keyword.kwlist)})\b', r'\1_', text)
        match = re.match(r'\s*C \S+\s*\{(.*?)\}(.*?)^exists\b(.*)', text, re.S | re.M)
        if not match:
            raise Unknown('not a litmus test in C that asks whether an outcome exists')
        init, threads, self.condition = match.groups()
        self.init = dict(self.initial(item.strip()) for item in init.split(';') if item.strip())
        self.threads = [Thread(int(number), re.findall(r'(\w+)\s*(?:,|$)', params), body)
                        for number, params, body in re.findall(
                            r'^P(\d+)\(([^)]*)\)\s*\{\n(.*?)^\}', threads, re.S | re.M)]
        if len(self.threads) != len(re.findall(r'\bP\d+\s*\(', threads)):
            raise Unknown("a thread is not laid out as the kernel's are")

    @staticmethod
    def initial(item):
        match = re.match(r'(?:int\s*\*?\s*|atomic_t\s+)?(\w+)\s*(?:=\s*([&\w()]+))?$', item)
        if not match:
            raise Unknown('initial value: ' + item)
        value = re.sub(r'ATOMIC_INIT|[()]', '', match[2] or '0')
        return match[1], int(value) if value.isdigit() else '&' + value.lstrip('&')

    def domain(self):
        """Readable values by location. Each atomic operation runs at most once."""
        values = {loc: {value} for loc, value in self.init.items()}
        for _ in range(2 + sum(thread.atomics for thread in self.threads)):
            found = {loc: set(known) for loc, known in values.items()}
            for thread in self.threads:
                for events, _ in thread.paths(values):
                    for event in events:
                        if event.kind == 'W':
                            found.setdefault(event.loc, {0}).add(event.value)
            if found == values:
                break
            values = found
        return values

    def holds(self, regs, final):
        """The condition, such as 0:r1=1 /\\ ~(x=2)."""
        def compare(match):
            thread, name, equal, want = match.groups()
            have = regs[int(thread)].get(name) if thread else final.get(name, 0)
            want = int(want) if want.isdigit() else '&' + want.lstrip('&')
            return str((have == want) == (equal == '='))

        text = re.sub(r'(?:(\d+):)?(\w+)\s*(=|!=)\s*(&?\w+)', compare, self.condition)
        # Now of True and False.
        return eval(text.replace('/\\', ' and ').replace('\\/', ' or ').replace('~', ' not '))

    def verdict(self):
        domain = self.domain()
        allowed = good = 0
        ways = [list(thread.paths(domain)) for thread in self.threads]
        for way in itertools.product(*ways):
            for execution in executions([events for events, _ in way], self.init):
                if not execution.allowed():
                    continue
                allowed += 1
                regs = {thread.number: r for thread, (_, r) in zip(self.threads, way)}
                good += self.holds(regs, execution.final())
        if not allowed:
            raise Unknown('no execution is allowed')
        return 'Never' if not good else 'Always' if good == allowed else 'Sometimes'


def executions(threads, init):
    """All candidates: initial writes, threads, rf and co."""
    events = [e for thread in threads for e in thread]
    locs = sorted({e.loc for e in events if e.loc})
    initial = {loc: Event(-1, 'W', 'init', loc, init.get(loc, 0)) for loc in locs}
    writes = {loc: [e for e in events if e.kind == 'W' and e.loc == loc] for loc in locs}
    reads = [e for e in events if e.kind == 'R']
    sources = [[w for w in [initial[r.loc]] + writes[r.loc] if w.value == r.value]
               for r in reads]
    orders = [list(itertools.permutations(writes[loc])) for loc in locs]
    for rf in itertools.product(*sources):
        for co in itertools.product(*orders):
            yield Execution(threads, [*initial.values(), *events], list(zip(rf, reads)),
                            [[initial[loc], *order] for loc, order in zip(locs, co)])


# --- the model ----------------------------------------------------------------


class Relation:
    """Pairs of events: a row of bits for each. "@" is ";" of the .cat file."""

    def __init__(self, rows):
        self.rows = rows

    def __or__(self, other):
        return Relation([a | b for a, b in zip(self.rows, other.rows)])

    def __and__(self, other):
        return Relation([a & b for a, b in zip(self.rows, other.rows)])

    def __sub__(self, other):
        return Relation([a & ~b for a, b in zip(self.rows, other.rows)])

    def __matmul__(self, other):
        rows = []
        for row in self.rows:
            out = 0
            while row:
                low = row & -row
                out |= other.rows[low.bit_length() - 1]
                row ^= low
            rows.append(out)
        return Relation(rows)

    def __eq__(self, other):
        return self.rows == other.rows

    def __bool__(self):
        return any(self.rows)

    def identity(self):
        return Relation([1 << i for i in range(len(self.rows))])

    def inverse(self):
        return Relation([sum((row >> i & 1) << j for j, row in enumerate(self.rows))
                         for i in range(len(self.rows))])

    def maybe(self):
        return self | self.identity()

    def star(self):
        result = self.maybe()
        while (more := result @ result) != result:
            result = more
        return result

    def reflexive(self):
        """Has it a pair of an event and itself?"""
        return bool(self & self.identity())

    def cyclic(self):
        return (self @ self.star()).reflexive()


class Execution:
    """One candidate. The names are those of linux-kernel.cat."""

    def __init__(self, threads, events, rf, orders):
        self.threads, self.events, self.orders = threads, events, orders
        self.index = {event: i for i, event in enumerate(events)}
        self.rf = self.relation(rf)
        self.co = self.relation(pair for order in orders
                                for pair in itertools.combinations(order, 2))
        self.po = self.relation(pair for thread in threads
                                for pair in itertools.combinations(thread, 2))
        self.int = self.alike(lambda event: event.thread)
        self.loc = self.alike(lambda event: event.loc)

    def relation(self, pairs):
        rows = [0] * len(self.events)
        for a, b in pairs:
            rows[self.index[a]] |= 1 << self.index[b]
        return Relation(rows)

    def alike(self, key):
        return self.relation((a, b) for a in self.events for b in self.events if key(a) == key(b))

    def where(self, test):
        """[set] of the .cat file."""
        return self.relation((event, event) for event in self.events if test(event))

    def tagged(self, kind, tag):
        return self.where(lambda event: event.kind == kind and event.tag == tag)

    def final(self):
        return {order[-1].loc: order[-1].value for order in self.orders}

    def allowed(self):
        fr = (self.rf.inverse() @ self.co) - self.po.identity()
        if ((self.po & self.loc) | self.rf | self.co | fr).cyclic():
            return False
        rmw = self.relation((event.rmw, event) for event in self.events if event.rmw)
        if rmw & ((fr - self.int) @ (self.co - self.int)):
            return False
        return self.ordered(fr, rmw)

    def fences(self):
        """Strong fences, releases, write barriers, and all of them."""
        po = self.po
        access, writes = self.where(lambda e: e.kind in 'RW'), self.where(lambda e: e.kind == 'W')
        reads = self.where(lambda e: e.kind == 'R' and e.tag != 'noreturn')
        atomic = self.where(lambda e: e.atomic)

        def between(tag):
            return po @ self.tagged('F', tag) @ po

        mb = access @ (between('mb') | between('before') @ atomic @ po.maybe() |
                       po.maybe() @ atomic @ between('after')) @ access
        strong = mb | po @ self.tagged('F', 'sync') @ po.maybe()
        release = access @ po @ self.tagged('W', 'release')
        acquire = self.tagged('R', 'acquire') @ po @ access
        wmb = writes @ between('wmb') @ writes
        rmb = reads @ between('rmb') @ reads
        return strong, release, wmb, strong | release | acquire | wmb | rmb

    def dependencies(self, name):
        return self.relation((a, b) for b in self.events for a in getattr(b, name))

    def ordered(self, fr, rmw):
        reads, writes = self.where(lambda e: e.kind == 'R'), self.where(lambda e: e.kind == 'W')
        strong, release, wmb, fence = self.fences()
        addr, data, ctrl = (self.dependencies(name) for name in ('addr', 'data', 'ctrl'))
        dep = addr | data
        rfe = self.rf - self.int
        overwrite = self.co | fr
        ppo = addr @ reads | dep @ (self.rf & self.int) | (dep | ctrl) @ writes | \
            (overwrite | fence) & self.int
        cumul = (rfe.maybe() @ (strong | release) | wmb) @ (self.rf @ rmw).star()
        prop = (overwrite - self.int).maybe() @ cumul.star() @ rfe.maybe()
        hb = ppo | rfe | (prop - prop.identity()) & self.int
        pb = prop @ strong @ hb.star()
        return not hb.cyclic() and not pb.cyclic() and self.grace_periods(prop, hb, pb)

    def sections(self):
        pairs = []
        for thread in self.threads:
            opened = []
            for event in thread:
                if event.tag == 'lock':
                    opened.append(event)
                elif event.tag == 'unlock':
                    pairs.append((event, opened.pop()))
        return self.relation(pairs)

    def grace_periods(self, prop, hb, pb):
        gp, section = self.tagged('F', 'sync'), self.sections()
        after = hb.star() @ pb.star()
        link = self.po.maybe() @ after @ prop @ self.po
        order = gp
        while True:
            more = order | gp @ link @ section | section @ link @ gp | \
                gp @ link @ order @ link @ section | section @ link @ order @ link @ gp | \
                order @ link @ order
            if more == order:
                break
            order = more
        fence = self.po @ order @ self.po.maybe()
        return not (prop @ fence @ after).reflexive()


def main():
    for path in sys.argv[1:]:
        try:
            with open(path, encoding='utf-8') as file:
                print(f'{path}: {Test(file.read()).verdict()}', flush=True)
        except Unknown as reason:
            print(f'{path}: Unknown: {reason}', flush=True)
        except (IndexError, KeyError, SyntaxError) as error:
            print(f'{path}: Unknown: cannot read: {error}', flush=True)


if __name__ == '__main__':
    main()
