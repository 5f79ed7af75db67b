"""Plots as SVG, by hand: axes with ticks, lines, markers, a legend. No library, the same bytes
every time. Several panels may stand under each other with the same x axis."""
import math
from html import escape

WIDTH, PANEL = 760, 300
LEFT, RIGHT, TOP, BOTTOM = 76, 200, 34, 52
COLOURS = ["#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#0a7d8c", "#bf3989", "#57606a",
           "#bc4c00", "#4d2d00", "#2da44e"]
MARKERS = ["circle", "square", "diamond", "triangle"]


class Axis:
    def __init__(self, label, log=False, low=None, high=None, base=10):
        self.label, self.log, self.base = label, log, base
        self.low, self.high = low, high

    def fit(self, values):
        """Takes in all values, and a little more."""
        values = [v for v in values if v is not None]
        low = self.low if self.low is not None else min(values, default=1)
        high = self.high if self.high is not None else max(values, default=10)
        if self.log:
            pad = (high / low) ** 0.04 if high > low else 1.5
            self._low, self._high = low / pad, high * pad
        else:
            pad = (high - low) * 0.05 or 1
            self._low = low if self.low is not None else low - pad
            self._high = high if self.high is not None else high + pad

    def place(self, value):
        """From 0 to 1."""
        if self.log:
            return math.log(value / self._low) / math.log(self._high / self._low)
        return (value - self._low) / (self._high - self._low)

    def ticks(self):
        if not self.log:
            return linear_ticks(self._low, self._high)
        steps = (1,) if self.base == 2 else (1, 2, 5)
        if self.base != 2 and self._high / self._low > 3000:
            steps = (1,)
        power = math.floor(math.log(self._low, self.base))
        found = []
        while self.base ** power <= self._high:
            found += [m * self.base ** power for m in steps
                      if self._low <= m * self.base ** power <= self._high]
            power += 1
        return found[::max(1, len(found) // 9)]


def linear_ticks(low, high):
    rough = (high - low) / 7
    power = 10 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    first = math.ceil(low / step - 1e-9)
    return [round(n * step, 12) for n in range(first, math.floor(high / step + 1e-9) + 1)]


class Panel:
    def __init__(self, y):
        self.y = y
        self.series = []
        self.levels = []

    def add(self, name, points, line=True, colour=None, marker=None, hollow=False, dashed=False):
        """`points`: (x, y), or (x, y, tip), where the tip is shown by a mouse over it."""
        self.series.append({"name": name, "points": [p for p in points if p[1] is not None],
                            "line": line, "colour": colour, "marker": marker, "hollow": hollow,
                            "dashed": dashed})
        return self

    def level(self, y, name):
        """A dashed line across, with its name."""
        self.levels.append((y, name))
        return self


def short(value):
    """A tick's label."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            scaled = value / (1e3 if unit == "k" else size)
            return f"{scaled:g}{unit}"
    return f"{value:g}"


def marker(shape, x, y, colour, hollow, tip=""):
    paint = f'fill="{"#ffffff" if hollow else colour}" stroke="{colour}" stroke-width="1.5"'
    title = f"<title>{escape(tip)}</title>" if tip else ""
    if shape == "square":
        return (f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7" {paint}>'
                f"{title}</rect>")
    if shape == "diamond":
        path = f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z"
    elif shape == "triangle":
        path = f"M{x:.1f} {y - 5:.1f}l5 9h-10z"
    else:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.8" {paint}>{title}</circle>'
    return f'<path d="{path}" {paint}>{title}</path>'


class Plot:
    def __init__(self, title, x):
        self.title, self.x = title, x
        self.panels = []

    def panel(self, y):
        self.panels.append(Panel(y))
        return self.panels[-1]

    def svg(self):
        self.x.fit([p[0] for panel in self.panels for s in panel.series for p in s["points"]])
        height = TOP + len(self.panels) * (PANEL + 18) + BOTTOM - 18
        out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
               f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
               f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
               text(LEFT, 21, self.title, size=14, weight="bold")]
        for number, panel in enumerate(self.panels):
            out += self.draw(panel, TOP + number * (PANEL + 18), number == len(self.panels) - 1)
        out.append("</svg>")
        return "\n".join(out) + "\n"

    def draw(self, panel, top, last):
        panel.y.fit([p[1] for s in panel.series for p in s["points"]]
                    + [y for y, _ in panel.levels])
        right, bottom = WIDTH - RIGHT, top + PANEL

        def at(x, y):
            return (LEFT + self.x.place(x) * (right - LEFT),
                    bottom - panel.y.place(y) * PANEL)

        out = []
        for value in self.x.ticks():
            x = LEFT + self.x.place(value) * (right - LEFT)
            out.append(rule(x, top, x, bottom))
            if last:
                out.append(text(x, bottom + 17, short(value), "middle"))
        for value in panel.y.ticks():
            y = bottom - panel.y.place(value) * PANEL
            out += [rule(LEFT, y, right, y), text(LEFT - 7, y + 4, short(value), "end")]
        out.append(f'<rect x="{LEFT}" y="{top}" width="{right - LEFT}" height="{PANEL}" '
                   'fill="none" stroke="#57606a"/>')
        if last:
            out.append(text((LEFT + right) / 2, bottom + 38, self.x.label, "middle"))
        middle = (top + bottom) / 2
        out.append(f'<text transform="rotate(-90 18 {middle:.0f})" x="18" y="{middle:.0f}" '
                   f'text-anchor="middle" fill="#24292f">{escape(panel.y.label)}</text>')
        for y, name in panel.levels:
            _, height = at(1 if not self.x.log else self.x._low, y)
            out += [f'<line x1="{LEFT}" y1="{height:.1f}" x2="{right}" y2="{height:.1f}" '
                    'stroke="#57606a" stroke-dasharray="4 3"/>',
                    text(LEFT + 5, height - 4, name, size=11)]
        for number, series in enumerate(panel.series):
            out += self.draw_series(series, number, at)
            out += self.legend(series, number, right + 14, top + 12 + 19 * number)
        return out

    def draw_series(self, series, number, at):
        colour = series["colour"] or COLOURS[number % len(COLOURS)]
        shape = series["marker"] or MARKERS[number % len(MARKERS)]
        places = [at(p[0], p[1]) for p in series["points"]]
        out = []
        if series["line"] and len(places) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            dashes = ' stroke-dasharray="6 4"' if series["dashed"] else ""
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                       f'stroke-width="1.8"{dashes}/>')
        if series["marker"] != "none":
            out += [marker(shape, x, y, colour, series["hollow"], *point[2:])
                    for (x, y), point in zip(places, series["points"])]
        return out

    def legend(self, series, number, x, y):
        if not series["name"]:
            return []
        colour = series["colour"] or COLOURS[number % len(COLOURS)]
        shape = series["marker"] or MARKERS[number % len(MARKERS)]
        out = []
        if series["line"]:
            out.append(f'<line x1="{x}" y1="{y}" x2="{x + 22}" y2="{y}" stroke="{colour}" '
                       'stroke-width="1.8"/>')
        if series["marker"] != "none":
            out.append(marker(shape, x + 11, y, colour, series["hollow"]))
        return [*out, text(x + 29, y + 4, series["name"])]


def text(x, y, words, anchor="start", size=12, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'font-weight="{weight}" fill="#24292f">{escape(words)}</text>')


def rule(x1, y1, x2, y2):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            'stroke="#d0d7de"/>')
