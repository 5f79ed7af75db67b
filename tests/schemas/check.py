#!/usr/bin/env python3
"""Files that the program writes, held to docs/reference/schemas.

usage: check.py PROGRAM

Each file is valid, and none of its keys may be missing, unknown or of another type: the schema says
so of a copy without the key, with one more, and with a value of no type that it has.
"""
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCHEMAS = ROOT / "docs" / "reference" / "schemas"
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
# Words of JSON Schema that this reads; a schema with another one is refused rather than half read.
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "enum", "const", "minimum",
         "pattern", "items", "minItems", "maxItems", "required", "properties",
         "patternProperties", "additionalProperties", "anyOf"}


def has_type(value, name):
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def faults(value, schema, root, where="it"):
    """Sentences on what of `value` is not as `schema` has it."""
    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError(f"{where}: the schema has {sorted(unknown)}, which are not read here")
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    found = []
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(has_type(value, name) for name in names):
        return [f"{where} is no {' or '.join(names)}: {value!r:.60}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{where} is {value!r:.60}, not {schema['const']!r}")
    if "enum" in schema and not any(value == one and type(value) is type(one)
                                    for one in schema["enum"]):
        found.append(f"{where} is {value!r:.60}, none of {schema['enum']}")
    if "minimum" in schema and has_type(value, "number") and not value >= schema["minimum"]:
        found.append(f"{where} is {value}, below {schema['minimum']}")
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        found.append(f"{where} is {value!r:.60}, which does not match {schema['pattern']}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{where} has {len(value)} entries")
        for number, entry in enumerate(value):
            found += faults(entry, schema.get("items", {}), root, f"{where}[{number}]")
    if isinstance(value, dict):
        found += [f"{where} has no '{key}'" for key in schema.get("required", [])
                  if key not in value]
        for key, entry in value.items():
            patterns = [part for pattern, part in schema.get("patternProperties", {}).items()
                        if re.search(pattern, key)]
            if key in schema.get("properties", {}):
                below = schema["properties"][key]
            else:
                below = patterns[0] if patterns else schema.get("additionalProperties", {})
            if below is False:
                found.append(f"{where} has a key too many, '{key}'")
            elif below is not True:
                found += faults(entry, below, root, f"{where}.{key}")
    if "anyOf" in schema:
        kinds = [faults(value, one, root, where) for one in schema["anyOf"]]
        if all(kinds):
            found += min(kinds, key=len)
    return found


def check(name, value):
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    found = faults(value, schema, schema)
    assert not found, f"{name}: {found[:5]}"
    for key in [key for key in schema.get("required", []) if key in value]:
        assert faults({k: v for k, v in value.items() if k != key}, schema, schema), (
            f"{name}: '{key}' may be missing")
    other = copy.deepcopy(value)
    other["no_such_key"] = 1
    assert faults(other, schema, schema), f"{name}: any key may be added"
    for key in schema.get("properties", {}).keys() & value.keys():
        if faults({**value, key: None}, schema, schema):
            continue
        assert "null" in str(schema["properties"][key]), f"{name}: '{key}' may be null"


def toml_of(path):
    try:
        import tomllib
    except ImportError:  # before Python 3.11
        return None
    return tomllib.loads(pathlib.Path(path).read_text())


def check_recipe(path):
    recipe = toml_of(path)
    if recipe is not None:
        check("recipe", {key.replace("-", "_"): value for key, value in recipe.items()})


def check_run(program, folder, words):
    out = folder / "run"
    run = subprocess.run([program, "train", *words, "--out", out, "--overwrite", "--json"],
                         check=True, capture_output=True, text=True, cwd=folder,
                         env={**os.environ, "THIMBLE_CALIBRATE": "off",
                              "THIMBLE_CACHE": str(folder / "cache")})
    check("run", json.loads(run.stdout))
    check_recipe(out / "recipe.toml")
    check("plan", json.loads((out / "plan.json").read_text()))
    check("trace", json.loads((out / "trace.json").read_text()))
    check("checkpoint", json.loads((out / "latest" / "state.json").read_text()))
    lines = (out / "metrics.jsonl").read_text().splitlines()
    for line in lines:
        check("metrics", json.loads(line))
    assert any("test_loss" in line for line in lines)


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    for path in sorted((ROOT / "recipes").glob("**/*.toml")):
        check_recipe(path)
    digits = ["mlp", "--data", "digits", "--batch", "50", "--steps", "6", "--hidden", "32"]
    with tempfile.TemporaryDirectory(prefix="thimble-schemas-") as folder:
        for words in ([*digits, "--losses", "--times", "--patience", "9"],
                      [*digits, "--microbatch", "25", "--precision", "fp16", "--loss-scale",
                       "dynamic", "--density", "0.5"],
                      [*digits, "--memory", "120KiB"],
                      ["lstm", "--data", "sequences", "--length", "8", "--hidden", "8", "--batch",
                       "8", "--steps", "3", "--sequences", "64"]):
            check_run(program, pathlib.Path(folder), words)
    print("schemas: ok")


if __name__ == "__main__":
    main()
