"""Data as they come: a generator makes every batch when the step asks for it, and nothing is kept."""
import numpy as np

import thimble


class Stripes:
    """Pictures with stripes: class 0 across, class 1 down. Every epoch draws others."""

    def __init__(self, batches, seed):
        self.batches, self.draw = batches, np.random.default_rng(seed)

    def __len__(self):
        return self.batches

    def __iter__(self):
        for _ in range(self.batches):
            labels = self.draw.integers(0, 2, 32).astype(np.int32)
            pixels = self.draw.integers(0, 80, (32, 8, 8, 1), dtype=np.uint8)
            for picture, label in zip(pixels, labels):
                stripes = picture[::2] if label == 0 else picture[:, ::2]
                stripes += 120
            yield pixels, labels


run = thimble.train("lenet", Stripes(40, seed=1), test=Stripes(4, seed=2), image=[8, 8, 1],
                    classes=2, batch=32, epochs=3, lr=0.02, schedule="constant",
                    memory="1MiB")
print(f"accuracy {run.result['test_accuracy']:.3f} in {run.result['measured_arena_bytes']} bytes")
assert run.result["test_accuracy"] > 0.95
