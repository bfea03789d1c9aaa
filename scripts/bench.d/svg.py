# SPDX-License-Identifier: GPL-2.0-only
"""Charts as SVG, with Python's standard library only.

A Figure is a page of Panels; a Panel has two axes and draws lines, bands or bars. Each
series has a colour, a dash and a marker, so that readers can tell them apart even
without colours. The colours follow the reader's light or dark theme.
"""

import math
from html import escape

# Colour on a light and on a dark page, dash, marker: by place in the legend.
SERIES = [
    ("#5f6368", "#b0b6bd", "", "circle"),
    ("#0063b1", "#5fb4ff", "", "square"),
    ("#00785a", "#3dd6a7", "", "triangle"),
    ("#c24c00", "#ff9a5c", "6 3", "diamond"),
    ("#8f3a84", "#ea9adf", "2 3", "cross"),
]

PAGE = """\
svg { background: #fff; font-family: system-ui, "DejaVu Sans", sans-serif; font-size: 12px; }
.page { fill: #fff; } text { fill: #202124; } .dim { fill: #5f6368; }
.title { font-size: 15px; font-weight: 600; } .panel { font-weight: 600; }
.axis { stroke: #80868b; fill: none; } .grid { stroke: #e3e5e8; fill: none; }
.limit { stroke: #c5221f; stroke-dasharray: 4 3; fill: none; } .limit-text { fill: #c5221f; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.band { stroke: none; fill-opacity: 0.18; } text.on-bar { fill: #fff; font-weight: 600; }
"""

DARK = """\
svg, .page { background: #16181c; fill: #16181c; } text { fill: #e8eaed; } .dim { fill: #b0b6bd; }
.axis { stroke: #80868b; } .grid { stroke: #32363c; }
.limit { stroke: #ff8a80; } .limit-text { fill: #ff8a80; } text.on-bar { fill: #16181c; }
"""


def _style():
    light, dark = [], []
    for i, (on_light, on_dark, dash, _) in enumerate(SERIES):
        dashes = f" stroke-dasharray: {dash};" if dash else ""
        light.append(f".l{i} {{ stroke: {on_light};{dashes} }} .b{i} {{ fill: {on_light}; }} "
                     f".m{i} {{ fill: {on_light}; stroke: {on_light}; }}")
        dark.append(f".l{i} {{ stroke: {on_dark}; }} .b{i} {{ fill: {on_dark}; }} "
                    f".m{i} {{ fill: {on_dark}; stroke: {on_dark}; }}")
    return (PAGE + "\n".join(light) + "\n@media (prefers-color-scheme: dark) {\n" +
            DARK + "\n".join(dark) + "\n}\n")


def number(value):
    """Format a number readably, with letters for thousands and millions."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


class Log:
    """Logarithmic scale; ticks at powers of ten, or at given values."""

    def __init__(self, low, high, ticks=None):
        self.low, self.high = low, high
        self.ticks = ticks or self._powers()

    def _powers(self):
        first = math.ceil(math.log10(self.low) - 1e-9)
        last = math.floor(math.log10(self.high) + 1e-9)
        return [10.0 ** n for n in range(first, last + 1)]

    def at(self, value):
        value = min(max(value, self.low), self.high)
        return math.log(value / self.low) / math.log(self.high / self.low)

    @staticmethod
    def around(values):
        """From the power of ten below the values to the one above."""
        low = 10.0 ** math.floor(math.log10(min(values)))
        high = 10.0 ** math.ceil(math.log10(max(values)))
        return Log(low, high if high > low else low * 10)

    @staticmethod
    def close(values):
        """From the 1, 2 or 5 times a power of ten below the values to the one above."""
        steps = [factor * 10.0 ** n for n in range(-3, 12) for factor in (1, 2, 5)]
        low = max(step for step in steps if step <= min(values))
        high = min(step for step in steps if step >= max(values))
        return Log(low, high, [step for step in steps if low <= step <= high])


class Linear:
    """Linear scale from 0, or between two values."""

    def __init__(self, low, high, ticks=None):
        self.low, self.high = low, high
        self.ticks = ticks or self._round()

    def _round(self):
        span = self.high - self.low
        step = 10.0 ** math.floor(math.log10(span / 2))
        for factor in (1, 2, 5, 10):
            if span / (step * factor) <= 6:
                step *= factor
                break
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [n * step for n in range(first, last + 1)]

    def at(self, value):
        return (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)


class Panel:
    """Two axes and the lines or bars between them."""

    def __init__(self, x, y, width, height, x_scale, y_scale):
        self.x, self.y, self.width, self.height = x, y, width, height
        self.x_scale, self.y_scale = x_scale, y_scale
        self.parts = []

    def px(self, value):
        return self.x + self.width * self.x_scale.at(value)

    def py(self, value):
        return self.y + self.height * (1 - self.y_scale.at(value))

    def text(self, x, y, text, anchor="middle", style="", turn=False):
        turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
                          f'class="{style}"{turned}>{escape(text)}</text>')

    def rule(self, x1, y1, x2, y2, style):
        self.parts.append(f'<path class="{style}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>')

    def axes(self, x_label="", y_label="", title="", x_names=None, y_ticks=True):
        right, bottom = self.x + self.width, self.y + self.height
        for tick in self.y_scale.ticks:
            y = self.py(tick)
            self.rule(self.x, y, right, y, "grid")
            if y_ticks:
                self.text(self.x - 6, y + 4, number(tick), "end", "dim")
        for tick in self.x_scale.ticks:
            x = self.px(tick)
            if not x_names:
                self.rule(x, self.y, x, bottom, "grid")
            self.text(x, bottom + 16, x_names[tick] if x_names else number(tick), style="dim")
        self.rule(self.x, bottom, right, bottom, "axis")
        self.rule(self.x, self.y, self.x, bottom, "axis")
        if title:
            self.text(self.x + self.width / 2, self.y - 8, title, style="panel")
        if x_label:
            self.text(self.x + self.width / 2, bottom + 34, x_label)
        if y_label:
            self.text(self.x - 44, self.y + self.height / 2, y_label, turn=True)

    def band(self, series, points):
        """The area between two curves: points are (x, low, high)."""
        edge = [(x, high) for x, _, high in points] + [(x, low) for x, low, _ in points[::-1]]
        path = "L".join(f"{self.px(x):.1f} {self.py(y):.1f}" for x, y in edge)
        self.parts.append(f'<path class="band b{series}" d="M{path}z"/>')

    def line(self, series, points):
        points = [(self.px(x), self.py(y)) for x, y in points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.parts.append(f'<path class="line l{series}" d="M{path}"/>')
        for x, y in points:
            self.parts.append(marker(series, x, y))

    def curve(self, series, points, solid=True):
        """A line of many points, which are not marked."""
        path = "L".join(f"{self.px(x):.1f} {self.py(y):.1f}" for x, y in points)
        dash = "" if solid else ' style="stroke-dasharray: 3 3"'
        self.parts.append(f'<path class="line l{series}"{dash} d="M{path}"/>')

    def bar(self, series, middle, width, value, label):
        """The label is inside, where no limit's line runs through it."""
        x, y = self.px(middle) - width / 2, self.py(value)
        self.parts.append(f'<rect class="m{series}" x="{x:.1f}" y="{y:.1f}" '
                          f'width="{width:.1f}" height="{self.y + self.height - y:.1f}"/>')
        self.text(x + width / 2, y + 16, label, style="on-bar")

    def limit(self, value, label, until=None):
        """A line across the panel, or up to a place on its x axis."""
        x, y = self.x + self.width if until is None else self.px(until), self.py(value)
        self.rule(self.x, y, x, y, "limit")
        self.text(x + 5, y + 4, label, "start", "limit-text")


def marker(series, x, y):
    shape, r = SERIES[series][3], 3.2
    if shape == "circle":
        return f'<circle class="m{series}" cx="{x:.1f}" cy="{y:.1f}" r="{r}"/>'
    path = {
        "square": f"M{x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}z",
        "triangle": f"M{x:.1f} {y - r - 1:.1f}l{r + 0.8} {2 * r}h{-2 * r - 1.6}z",
        "diamond": f"M{x:.1f} {y - r - 1:.1f}l{r + 1} {r + 1}l{-r - 1} {r + 1}l{-r - 1} {-r - 1}z",
        "cross": f"M{x - r:.1f} {y - r:.1f}l{2 * r} {2 * r}m0 {-2 * r}l{-2 * r} {2 * r}",
    }[shape]
    return f'<path class="m{series}" stroke-width="1.6" d="{path}"/>'


class Figure:
    """A page: title, remarks, legend, panels."""

    def __init__(self, width, height, title, *remarks):
        # The longest line may be the title or a remark.
        self.width = math.ceil(max(width, 80 + 8.4 * len(title),
                                   *(90 + 6.3 * len(remark) for remark in remarks)))
        self.title, self.remarks = title, remarks
        self.top = 45 + 17 * len(remarks)
        self.height = self.top + height
        self.panels, self.legend = [], []

    def panel(self, x, y, *args):
        """A panel, @y below the remarks."""
        self.panels.append(Panel(x, self.top + y, *args))
        return self.panels[-1]

    def _remarks(self):
        for i, remark in enumerate(self.remarks):
            yield f'<text class="dim" x="60" y="{45 + 17 * i}">{escape(remark)}</text>'

    def _legend(self):
        x, y = 60, self.top + 4
        for series, name in self.legend:
            if series is not None:
                yield f'<path class="line l{series}" d="M{x} {y}h30"/>'
                yield marker(series, x + 15, y)
                x += 37
            yield f'<text x="{x}" y="{y + 4}">{escape(name)}</text>'
            x += 25 + 7 * len(name)

    def write(self, path):
        parts = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            "<!-- SPDX-License-Identifier: GPL-2.0-only; made by scripts/bench -->",
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:g}" '
            f'height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}" role="img">',
            f"<title>{escape(self.title)}</title>",
            f"<style>\n{_style()}</style>",
            f'<rect class="page" width="{self.width:g}" height="{self.height:g}"/>',
            f'<text class="title" x="60" y="26">{escape(self.title)}</text>',
            *self._remarks(),
            *self._legend(),
        ]
        for panel in self.panels:
            parts += panel.parts
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(parts) + "\n</svg>\n")
