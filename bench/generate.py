"""Seconds of a text continued by 512 tokens, with a KV cache and without one, by turns: the tokens are the same,
and the ratio is printed. Weights are drawn; a folder of transformers may be named in their place.

usage: generate.py --thimble PROGRAM [--tokens N] [--rounds N] [--threads N] [--nets NAME,...] [--folder FOLDER]

Exits 1 when the tokens differ, or the cache is less than ten times as fast.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

NETS = {
    "gpt": "gpt:layers=6,heads=6,width=384,vocabulary=4096,length=512",
    "gpt-rotary": "gpt:layers=6,heads=6,width=384,vocabulary=4096,length=512,positions=rotary",
    "smollm2": "gpt:layers=30,heads=9,width=576,vocabulary=49152,length=512,positions=rotary",
}
WANTED = 10


def run(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def trained(program, net, folder):
    """A run of one step on tokens that say nothing."""
    text = folder / "text"
    text.write_bytes(bytes(range(256)) * 64)
    run(program, "data", "tokens", "--by", "bytes", "--out", str(folder / "set"), str(text))
    out = str(folder / net)
    run(program, "train", NETS[net], "--data", "tokens", "--data-dir", str(folder / "set"), "--batch", "1",
        "--steps", "1", "--optimizer", "sgd", "--memory", "least", "--fit", "off", "--no-eval",
        "--out", out, "--json")
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--thimble", required=True)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--nets", default="gpt")
    parser.add_argument("--folder")
    asked = parser.parse_args()
    nets = ["hf:" + asked.folder] if asked.folder else asked.nets.split(",")
    bad = False
    with tempfile.TemporaryDirectory() as temporary:
        for net in nets:
            source = net if asked.folder else trained(asked.thimble, net, pathlib.Path(temporary))
            seconds = {True: [], False: []}
            tokens, sizes = {}, {}
            for turn in range(2 * asked.rounds):
                cached = turn % 2 == 0
                if not cached and turn // 2 >= max(1, asked.rounds // 3):
                    continue  # the slow way is timed less often
                words = ["sample", source, "--numbers", "--prompt", "1", "--length", str(asked.tokens),
                         "--temperature", "0", "--threads", str(asked.threads), "--memory", "1TiB", "--json"]
                made = json.loads(run(asked.thimble, *words, *([] if cached else ["--no-cache"])))
                seconds[cached].append(made["seconds"])
                tokens[cached] = made["tokens"]
                sizes[cached] = made["arena_bytes"], made["cache_bytes"]
            fast, slow = (statistics.median(seconds[cached]) for cached in (True, False))
            same = tokens[True] == tokens[False]
            print(f"{net}: {asked.tokens} tokens in {fast:.2f} s with a cache ({asked.tokens / fast:.1f} a second; "
                  f"arena {sizes[True][0] / 2**20:.1f} MiB, of which {sizes[True][1] / 2**20:.1f} are the cache), "
                  f"{slow:.2f} s without ({asked.tokens / slow:.1f} a second; {sizes[False][0] / 2**20:.1f} MiB): "
                  f"{slow / fast:.1f}x, the same tokens: {'yes' if same else 'no'}", flush=True)
            bad = bad or not same or slow < WANTED * fast
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
