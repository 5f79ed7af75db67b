"""Faults of C++ text: places where a small change makes another program that still compiles.

An expression is found by its brackets and by operators that bind less; there is no parser. A place found wrongly
does not compile, mostly, and is left out then (tools/mutate).
"""
import dataclasses
import re

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
LOGIC = [" && ", " || ", " ? ", " : ", " = ", " += ", " -= ", " *= ", " /= ", " |= ", " &= "]
RELATIONS = [f" {op} " for op in COMPARISONS] + [" <=> ", " << ", " >> ", " & ", " | ", " ^ "]
SUMS = [" + ", " - "]
PRODUCTS = [" * ", " / ", " % "]
WORDS = re.compile(r"\b(return|else|case|throw|co_return|delete)\s$")


@dataclasses.dataclass(frozen=True)
class Site:
    path: str
    kind: str
    begin: int  # of the text that changes
    end: int
    original: str
    mutated: str
    form: str  # with {n}: what stands there instead
    line: int = 0


def masked(text):
    """The text with comments, literals and directives blotted out, every other character in its place."""
    def blot(match):
        found = match[0]
        if found.startswith(("//", "/*")) or found.lstrip().startswith("#"):
            return re.sub(r"[^\n]", " ", found)
        return re.sub(r"[^\n]", '"', found)
    pattern = (r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
               r'|(?m:^[ \t]*#(?:\\\n|[^\n])*)')
    return re.sub(pattern, blot, text, flags=re.S)


def left_of(text, at, stops):
    """Where the expression begins that ends at `at`; None: it is not found."""
    depth = 0
    i = at
    while i > 0:
        char = text[i - 1]
        if char in ")]":
            depth += 1
        elif char in "([":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and (char in ";{}," or WORDS.search(text[max(0, i - 12):i])):
            break
        elif depth == 0 and any(text.endswith(stop, 0, i) for stop in stops):
            break
        i -= 1
    while i < at and text[i].isspace():
        i += 1
    return i if i < at else None


def right_of(text, at, stops):
    depth = 0
    i = at
    while i < len(text):
        char = text[i]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and (char in ";," or any(text.startswith(stop, i) for stop in stops)):
            break
        i += 1
    while i > at and text[i - 1].isspace():
        i -= 1
    return i if i > at else None


def close_of(text, at):
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += text[i] in "([{"
        depth -= text[i] in ")]}"
        if depth == 0:
            return i + 1
    return None


def flat(text):
    return " ".join(text.split())


def choice(path, kind, text, begin, end, mutated):
    original = text[begin:end]
    form = f"(thimble_mutant({{n}}) ? ({mutated}) : ({original}))"
    return Site(path, kind, begin, end, original, mutated, form)


def guarded(path, kind, text, begin, end):
    statement = text[begin:end]
    return Site(path, kind, begin, end, statement, "nothing", "if (!thimble_mutant({n})) " + statement)


def binary_sites(path, text, mask):
    def each(names, stops_left, stops_right, make):
        names = "|".join(re.escape(name) for name in names)
        for found in re.finditer(rf"(?<=[\w)\]}}\"]) ({names})[ \n]\s*(?=[\w(\-!*&\":])", mask):
            begin = left_of(mask, found.start(), stops_left)
            end = right_of(mask, found.end(), stops_right)
            if begin is None or end is None or end - begin > 300:
                continue
            yield from make(found[1], text[begin:found.start()], text[found.end():end], begin, end)

    def compare(op, left, right, begin, end):
        yield choice(path, "comparison", text, begin, end, f"{left} {COMPARISONS[op]} {right}")

    def logic(op, left, right, begin, end):
        yield choice(path, "dropped term", text, begin, end, left)
        yield choice(path, "dropped term", text, begin, end, right)

    def arithmetic(op, left, right, begin, end):
        if '"' in left + right:  # strings, joined
            return
        yield choice(path, "dropped term", text, begin, end, left)
        if op in "+-":
            yield choice(path, "sign", text, begin, end, f"{left} {'-' if op == '+' else '+'} {right}")
        if op in "-/":
            yield choice(path, "swapped operands", text, begin, end, f"{right} {op} ({left})")

    yield from each(COMPARISONS, LOGIC, LOGIC + [" == ", " != "], compare)
    yield from each(["&&"], LOGIC[1:], LOGIC, logic)
    yield from each(["||"], LOGIC[2:], LOGIC[1:], logic)
    yield from each(["+", "-"], LOGIC + RELATIONS, LOGIC + RELATIONS + SUMS, arithmetic)
    yield from each(["*", "/", "%"], LOGIC + RELATIONS + SUMS, LOGIC + RELATIONS + SUMS + PRODUCTS, arithmetic)


def constant_sites(path, text, mask):
    for found in re.finditer(r"(?<=[+-] )1(?![\w.'])", mask):
        yield choice(path, "off by one", text, found.start(), found.end(), "0")
    for found in re.finditer(r"(?<![\w.'\"<])(?<![+-] )\d+(?![\w.'>\"])", mask):
        before = mask[max(0, found.start() - 60):found.start()]
        if re.search(r"\)[\w ]*= $", before):  # a function without a body
            continue
        yield choice(path, "wrong constant", text, found.start(), found.end(), f"{found[0]} + 1")
    for found in re.finditer(r"(?<![\w.'\"])\d+\.\d*(e[+-]?\d+)?f?(?![\w.])", mask):
        if float(found[0].rstrip("f")) != 0:
            yield choice(path, "wrong constant", text, found.start(), found.end(), f"2 * {found[0]}")
    for found in re.finditer(r"(?<=[(,=?:] )-(?=[\w(])|(?<=\()-(?=[\w(])|(?<=return )-(?=[\w(])", mask):
        yield Site(path, "sign", found.start(), found.end(), "-", "+", "(thimble_mutant({n}) ? 1 : -1) * ")


def condition_sites(path, text, mask):
    for found in re.finditer(r"\b(else )?if \(", mask):
        begin, close = found.end(), close_of(mask, found.end() - 1)
        if close is None:
            continue
        condition = mask[begin:close - 1]
        if ";" in condition or re.search(r" = ", condition):
            continue
        kind = "missing case" if found[1] else "skipped check"
        original = text[begin:close - 1]
        yield Site(path, kind, begin, close - 1, f"if ({original})", "if (false)",
                   f"!thimble_mutant({{n}}) && ({original})")
    for found in re.finditer(r" \? ", mask):
        begin = left_of(mask, found.start(), LOGIC[2:])
        if begin is not None and found.start() - begin < 200:
            original = text[begin:found.start()]
            yield Site(path, "missing case", begin, found.start(), f"{original} ? ... : ...", "false ? ... : ...",
                       f"(!thimble_mutant({{n}}) && static_cast<bool>({original}))")
    for found in re.finditer(r"\bstd::(min|max)(<[\w:]+>)?\(", mask):
        close = close_of(mask, found.end() - 1)
        if close is not None and close - found.start() < 300:
            other = "max" if found[1] == "min" else "min"
            rest = text[found.start(1) + 3:close]
            yield choice(path, "swapped operands", text, found.start(), close, f"std::{other}{rest}")


def statement_sites(path, text, mask):
    starts = re.finditer(r"(?<=[;{}])\n\s*(?=[a-zA-Z_*+(])", mask)
    for start in starts:
        begin = start.end()
        end = right_of(mask, begin, [])
        if end is None or not mask.startswith(";", end) or end - begin > 300:
            continue
        end += 1
        statement = mask[begin:end]
        if re.match(r"\s*else\b", mask[end:end + 20]):
            continue
        if re.match(r"(user_check|internal_check|graph_check|check\w*)\(", statement):
            yield guarded(path, "skipped check", text, begin, end)
        elif re.search(r"(\.|->)(clear|reset|erase)\(.*\);$|^(forget\w*|invalidate\w*)\(\);$|^[\w.\->]+ = \{\};$",
                       statement):
            yield guarded(path, "stale cache", text, begin, end)
        elif re.match(r"[\w.\->\[\]()*]+ (=|\+=|-=|\*=|\|=|&=) ", statement) and not statement.startswith("return"):
            yield guarded(path, "dropped term", text, begin, end)


def skipped_spans(mask):
    """Text that the compiler evaluates, or that is no expression."""
    for found in re.finditer(r"\bstatic_assert\(|\bif constexpr \(|\bdecltype\(|\brequires\b", mask):
        yield found.start(), close_of(mask, mask.index("(", found.start())) or len(mask)
    for found in re.finditer(r"^[ \t]*(template <|using |enum |case |extern |friend |#)[^;{\n]*", mask, re.M):
        yield found.span()
    for found in re.finditer(r"^[ \t]*(static |inline )*constexpr [^;()]*?[={][^;]*;", mask, re.M):
        yield found.span()
    for found in re.finditer(r"\[\[\w+\]\]|\boperator\W+\(", mask):
        yield found.span()


def sites(path, text):
    """All faults of one file, by their place."""
    mask = masked(text)
    skipped = list(skipped_spans(mask))
    found = []
    for make in (binary_sites, constant_sites, condition_sites, statement_sites):
        for site in make(path, text, mask):
            inside = text[site.begin:site.end]
            if "//" in inside or any(b < site.end and site.begin < e for b, e in skipped):
                continue
            found.append(dataclasses.replace(site, line=text.count("\n", 0, site.begin) + 1))
    return sorted(found, key=lambda site: (site.begin, site.end, site.kind, site.mutated))


def planted(text, chosen):
    """The text with numbered faults in it: [(number, Site)], none of which overlap."""
    for number, site in sorted(chosen, key=lambda each: -each[1].begin):
        inside = site.form.replace("{n}", str(number)).replace("\n", " ")
        lines = text.count("\n", site.begin, site.end)
        text = text[:site.begin] + inside + "\n" * lines + text[site.end:]
    return text
