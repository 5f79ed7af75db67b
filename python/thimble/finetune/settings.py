"""Usual settings of fine-tuning: everything but the folder and the data has one."""

from __future__ import annotations

import math
import os
import platform
from typing import Any, Callable, Mapping

from .._errors import UserError
from .prepare import Prepared, Settings, prepare

# Flags of fine-tuning alone, and what they are; others are the run's.
CHOICES: dict[str, Callable] = {"data": str, "test": str, "held-out": float, "length": int, "longer": str,
                                "loss-on": str, "template": str, "lora": str, "full": bool}
RUN = ("steps", "epochs", "device", "precision")  # flags of the run that usual ones depend on
LORA_RATE, FULL_RATE = 2e-4, 2e-5
ROWS = 8  # of a step, at most
WARM_UP = 0.03  # of the run
EPOCHS = 3


def multiplies_bf16(path: str = "/proc/cpuinfo") -> bool:
    """Whether the processor has instructions for products of bfloat16."""
    if platform.machine() == "aarch64":
        names = {"bf16"}
    else:
        names = {"avx512_bf16", "amx_bf16"}
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith(("flags", "Features")):
                    return not names.isdisjoint(line.split())
    except OSError:
        pass
    return False


def prepared_for(folder: str, own: Mapping[str, Any], say: Callable[[str], None]) -> Prepared:
    """The data as the choices say."""
    if "test" in own and "held-out" in own:
        raise UserError("--test and --held-out say two things of what is tested; leave one of both out")
    chosen = Settings(length=own.get("length"), loss_on=own.get("loss-on", "assistant"),
                      longer=own.get("longer", "cut"), held_out=own.get("held-out", 0.05))
    return prepare(folder, own["data"], chosen, test=own.get("test"), template=own.get("template"), say=say)


def of_run(prepared: Prepared, own: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of `thimble train` by their names, for those that nobody gave. `given`: those of RUN, where they are."""
    if own.get("full") and ("lora" in own or given.get("lora", "none") != "none"):
        raise UserError("--full trains all weights and --lora adapters alone; leave one of both out")
    about = prepared.about
    length = about["length"]
    rows = max(1, about["train"]["tokens"] // length)
    settings: dict[str, Any] = {"length": length, "batch": max(1, min(ROWS, rows))}
    if not own.get("full"):
        settings["lora"] = own.get("lora", "rank=16")
    settings.update(optimizer="adamw", lr=FULL_RATE if own.get("full") else LORA_RATE, schedule="cosine")
    settings["clip-norm"] = 1
    if given.get("steps") is not None:
        settings["warmup"] = f"{max(1, math.ceil(WARM_UP * whole(given['steps'])))} steps"
    else:
        epochs = given.get("epochs")
        if epochs is None:
            settings["epochs"] = EPOCHS
        settings["warmup"] = round(WARM_UP * float(EPOCHS if epochs is None else epochs), 4)
    precision = given.get("precision")
    if precision is None and (given.get("device") not in (None, "cpu") or multiplies_bf16()):
        precision = settings["precision"] = "bf16"
    if own.get("full") and precision == "bf16":
        settings["rounding"] = "stochastic"
    return settings


def whole(text: Any) -> int:
    try:
        return int(text)
    except (TypeError, ValueError):
        return 1  # the run refuses it with a sentence of its own


def folder_of(model: str) -> str:
    """The folder of a run's model. UserError where it has none."""
    if not model.startswith("hf:"):
        raise UserError(f"the run trained '{model}', which is no Hugging Face folder")
    return os.fspath(model[3:])
