"""GGUF files of a folder, read by the package gguf, beside the tensors of the folder.

usage: gguf_files.py FOLDER

F16 is within half a last place of 16 bits, Q8_0 within half a step of its block's scale (and its rounding to 16 bits). The
names and shapes are all there. Exits 1 where one is not.
"""

import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))

import gguf  # noqa: E402
import numpy  # noqa: E402

from thimble.finetune.gguf import interleaved, tensors_of, theirs, write_gguf  # noqa: E402
from thimble.finetune.template import read_json  # noqa: E402


def main():
    folder = sys.argv[1]
    config = read_json(os.path.join(folder, "config.json"))
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    wrong = 0
    with tempfile.TemporaryDirectory() as home:
        for kind in ("f16", "q8_0"):
            path = os.path.join(home, kind + ".gguf")
            write_gguf(folder, path, kind)
            there = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
            worst = 0.0
            for name, values in tensors_of(folder):
                part = name.split(".")[-2]
                if part in heads and config["model_type"] in ("llama", "mistral"):
                    values = interleaved(values, heads[part])
                tensor = there.pop(theirs(name))
                read = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(values.shape)
                step = numpy.abs(values).max() * (2 ** -11 if kind == "f16" else (0.5 + 127 * 2 ** -11) / 127)
                worst = max(worst, float(numpy.abs(read - values).max() / step))
            wrong += worst > 1 or len(there) > 0
            print(f"{kind}: {os.path.getsize(path)} bytes, differences up to {worst:.3f} of half a step", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
