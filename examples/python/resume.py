"""A run that is stopped and goes on ends with the same weights, to the bit, as one that never was."""
import shutil

import thimble

recipe = {"batch": 50, "epochs": 3, "hidden": 64, "memory": "1MiB"}
for folder in ("runs/whole", "runs/stopped"):
    shutil.rmtree(folder, ignore_errors=True)
whole = thimble.train("mlp", "digits", out="runs/whole", **recipe)

try:
    thimble.train("mlp", "digits", out="runs/stopped", **recipe,
                  progress=lambda at: at.step >= 40)
except thimble.Stopped as stopped:
    print("stopped:", stopped)
resumed = thimble.train("mlp", "digits", out="runs/stopped", resume=True, **recipe)
print(resumed.result["weights_sha256"])
assert resumed.result["weights_sha256"] == whole.result["weights_sha256"]
