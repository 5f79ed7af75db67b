"""A seeded mutator: bytes, and JSON one level up, where checks behind the parser are reached.

All choices come from one random.Random, so that seed and number name a mutant for good.
"""
import json

EXTREMES = ["0", "-0", "-1", "1", "2", "255", "65536", "2147483647", "2147483648", "-2147483648",
            "4294967295", "4294967296", "9007199254740993", "9223372036854775807",
            "9223372036854775808", "-9223372036854775808", "18446744073709551616", "1e308",
            "-1e308", "1e400", "1e-320", "0.5", "1e9", "-0.0", "0.1e1"]
WHOLE = [each for each in EXTREMES if each.lstrip("-").isdigit()]
OTHER_TYPES = ["null", "true", "false", "[]", "{}", '""', '"x"', '"4294967296"', "[[]]",
               '{"a":1}', "[1,2,3]", '"\\u0000"', '"\\ud800"']
DEPTHS = [10, 1000, 100_000]
WORDS = ["", "x" * 100_000, "../../etc", "%s%n", "*", "mlp", "wrn-10-1", "resnet:[1,1,1,1]", "unet",
         "lstm", "cuda", "null", "adam", "adafactor", "group", "carried", "f16", "bf16", "int4",
         "auto", "stochastic", "kahan", "dynamic", "log_recursive:3", "4294967296", "caf\u00e9\0"]


def mutate_bytes(rng, data, times=None):
    data = bytearray(data)
    for _ in range(times or rng.choice([1, 1, 1, 2, 4, 8])):
        if not data:
            return bytes(rng.randbytes(rng.randrange(1, 64)))
        at = rng.randrange(len(data))
        length = min(len(data) - at, rng.choice([1, 2, 4, 8, 64, 1024]))
        kind = rng.randrange(9)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, 0x20, 0x22, 0x7B, 0x5B])
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at:at + length]
        elif kind == 4:  # a piece of the file, somewhere else
            data[at:at] = data[(other := rng.randrange(len(data))):other + length]
        elif kind == 5:
            data[at:at + length] = rng.randbytes(length)
        elif kind == 6:  # whole numbers of 4 and 8 bytes at their ends
            width, order = rng.choice([4, 8]), rng.choice(["little", "big"])
            number = rng.choice([0, 1, (1 << 8 * width) - 1, 1 << 8 * width - 1,
                                 (1 << 8 * width - 1) - 1, 1 << 32 & (1 << 8 * width) - 1])
            data[at:at + width] = number.to_bytes(width, order)
        elif kind == 7:
            mutate_digits(rng, data)
        else:
            data += rng.randbytes(length)
    return bytes(data)


def mutate_digits(rng, data):
    """A number written in digits becomes an extreme one."""
    starts = [i for i, byte in enumerate(data)
              if 48 <= byte < 58 and (i == 0 or not 48 <= data[i - 1] < 58)]
    if starts:
        begin = end = rng.choice(starts)
        while end < len(data) and 48 <= data[end] < 58:
            end += 1
        data[begin:end] = rng.choice(EXTREMES).encode()


def places(value, path=()):
    """Every value inside a JSON value, by the keys that lead to it."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(
        value, list) else ()
    for key, each in inside:
        yield from places(each, (*path, key))


def mutate_json(rng, text, below=()):
    """A mutant that still parses, mostly. `below`: keys that lead to the part to change."""
    root = json.loads(text)
    top = root
    for key in below:
        top = top[key]
    raw = {}  # what JSON's writer cannot write, put in afterwards

    def literal(written):
        raw[name := f"@{len(raw)}@"] = written
        return name

    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        path = rng.choice([p for p in places(top) if p] or [()])
        if not path:
            return rng.choice(OTHER_TYPES).encode()
        parent = top
        for key in path[:-1]:
            parent = parent[key]
        key, old = path[-1], parent[path[-1]]
        kind = rng.randrange(16)
        if kind >= 8:  # of the same type, so that what checks the value is reached
            parent[key] = (not old if isinstance(old, bool) else
                           literal(rng.choice(WHOLE)) if isinstance(old, int) else
                           literal(rng.choice(EXTREMES)) if isinstance(old, float) else
                           rng.choice(WORDS) if isinstance(old, str) else
                           list(reversed(old)) if isinstance(old, list) else {})
        elif kind <= 2:
            parent[key] = literal(rng.choice(EXTREMES))
        elif kind == 3:
            parent[key] = literal(rng.choice(OTHER_TYPES))
        elif kind == 4:
            del parent[key]
        elif kind == 5 and isinstance(parent, dict):
            parent[rng.choice([str(key) + "x", "", str(key).upper(), "\0"])] = parent.pop(key)
        elif kind == 6:
            depth, (left, right) = rng.choice(DEPTHS), rng.choice([("[", "]"), ('{"a":', "}")])
            parent[key] = literal(left * depth + "1" + right * depth)
        elif isinstance(old, list):
            parent[key] = (old * 3)[:rng.randrange(3 * len(old) + 1)]
        else:
            parent[key] = rng.choice(WORDS)
    written = json.dumps(root)
    for name, value in raw.items():
        written = written.replace(f'"{name}"', value)
    return written.encode()


def mutate_json_text(rng, text, below=()):
    return mutate_bytes(rng, text.encode()) if rng.random() < 0.25 else mutate_json(rng, text, below)
