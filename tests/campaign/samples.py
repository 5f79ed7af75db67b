"""A small whole file of every format that the program reads, made by the program or by hand."""
import gzip
import random
import struct

SMALL = ["--batch", "4", "--threads", "1"]
TINY = ["mlp", "--hidden", "4", *SMALL]
NETS = [TINY,
        ["wrn-10-1", *SMALL, "--image", "8,8,1"],
        ["unet", "--layers", "1", "--hidden", "4", "--image", "8,8,1", *SMALL],
        ["lstm", "--hidden", "4", "--length", "3", *SMALL],
        ["resnet:[1,1,1,1]", "--hidden", "8", "--image", "16,16,1", "--classes", "4", *SMALL]]
SHORT = ["--steps", "1", "--no-eval"]


def idx_folder(folder, packed=False):
    """Forty images of 6x5 for training, ten for testing, in MNIST's format."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    for name, count in (("train", 40), ("t10k", 10)):
        images = struct.pack(">4I", 0x803, count, 6, 5) + rng.randbytes(count * 30)
        labels = struct.pack(">2I", 0x801, count) + bytes(i % 10 for i in range(count))
        for kind, data in (("images-idx3-ubyte", images), ("labels-idx1-ubyte", labels)):
            if packed:
                (folder / f"{name}-{kind}.gz").write_bytes(gzip.compress(data, mtime=0))
            else:
                (folder / f"{name}-{kind}").write_bytes(data)
    return folder


def cifar_folder(folder):
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(2)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        records = b"".join(bytes([i % 10]) + rng.randbytes(3072) for i in range(2))
        (folder / f"{name}.bin").write_bytes(records)
    return folder


def plan_file(program, path, words):
    outcome = program.run(["plan", *words, "--save", str(path)])
    assert outcome.code == 0, outcome.err
    return path


def cost_table(program, path):
    """Times of every kernel of the tiny net; where the clock gave none, by hand."""
    outcome = program.run(["calibrate", *TINY, "--seconds", "1", "--costs", str(path)])
    assert outcome.code == 0, outcome.err
    return path


def run_folder(program, path, words=TINY):
    program.train([*words, *SHORT, "--out", str(path)])
    return path


RECIPE = """# Every kind of value that a recipe can have.
model = "mlp"
layers = 1
hidden = 4
batch = 4
threads = 1
image = [8, 8, 1]
classes = 10
dropout = 0.1
label_smoothing = 0.1
optimizer = "sgd"
momentum = 0.9
weight_decay = 5e-4
clip_norm = 1.0
fold = false
memory = "1MiB"
planner = "optimal"
microbatch = 2
norm = "batch"
precision = "fp32"
codec = "none"
seed = 3
keep = ["*hidden1*"]
"""
