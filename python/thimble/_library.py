"""libthimble.so as ctypes sees it: include/thimble/thimble.h, function by function."""

from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int, c_int32, c_int64,
                    c_size_t, c_uint64, c_void_p)
from typing import Any

MOST_DIMS = 8
OK, BUG, MISTAKE, NO_FIT, DEVICE, MEMORY, STOPPED, CALLBACK = range(8)
START, RESUME, RESUME_OR_START = range(3)
CACHE_AUTOMATIC, CACHE_ON, CACHE_OFF = range(3)


class Tensor(Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_int), ("rank", c_int32),
                ("shape", c_int64 * MOST_DIMS), ("bytes", c_int64), ("data", c_void_p),
                ("row_axis", c_int32), ("trained", c_int32), ("limit", c_int64)]


class Batch(Structure):
    _fields_ = [("test", c_int32), ("step", c_int64), ("batch", c_int64), ("first", c_int64),
                ("rows", c_int64), ("field_count", c_int32), ("fields", POINTER(Tensor)),
                ("filled", c_int64)]


class Metric(Structure):
    _fields_ = [("name", c_char_p), ("value", c_double)]


class Figures(Structure):
    _fields_ = [("steps", c_int64), ("loss", c_double), ("records", c_int64), ("rate", c_double),
                ("metric_count", c_int32), ("metrics", POINTER(Metric))]


class Progress(Structure):
    _fields_ = [("step", c_int64), ("steps", c_int64), ("steps_per_epoch", c_int64),
                ("rate", c_double), ("rows_per_second", c_double), ("seconds_left", c_double),
                ("train", Figures), ("tested", c_int32), ("test", Figures)]


Fill = CFUNCTYPE(c_int32, c_void_p, POINTER(Batch))
Prepare = CFUNCTYPE(c_int32, c_void_p, c_int64)
Rate = CFUNCTYPE(c_int32, c_void_p, c_int64, POINTER(c_double))
Watch = CFUNCTYPE(c_int32, c_void_p)
Give = CFUNCTYPE(c_int32, c_void_p, c_char_p, c_int64, c_int64, c_void_p)
Take = CFUNCTYPE(c_int32, c_void_p, POINTER(Tensor), c_int64)
Show = CFUNCTYPE(c_int32, c_void_p, POINTER(Progress))


class RunOptions(Structure):
    _fields_ = [("size", c_size_t), ("out", c_char_p), ("resume", c_int), ("overwrite", c_int32),
                ("weights", c_char_p), ("context", c_void_p), ("fill", Fill), ("prepare", Prepare),
                ("rate", Rate), ("steps_per_epoch", c_int64), ("tests", c_int32),
                ("optimizer_steps", c_int64), ("give", Give)]


class GeneratorOptions(Structure):
    _fields_ = [("size", c_size_t), ("weights", c_char_p), ("settings", c_char_p),
                ("context", c_int64), ("cache", c_int)]


class Sampling(Structure):
    _fields_ = [("size", c_size_t), ("temperature", c_double), ("top_k", c_int64),
                ("top_p", c_double), ("seed", c_uint64), ("stop", POINTER(c_int32)),
                ("stop_count", c_int64)]


_HANDLE = c_void_p
_OUT = POINTER(c_void_p)

# name: (result, arguments)
_FUNCTIONS = {
    "version": (c_char_p, []),
    "last_error": (c_char_p, []),
    "last_needed": (c_int64, []),
    "set_error": (None, [c_char_p]),
    "main": (c_int, [c_int, POINTER(c_char_p)]),
    "recipe_new": (c_int, [c_char_p, _OUT]),
    "recipe_free": (None, [_HANDLE]),
    "recipe_set": (c_int, [_HANDLE, c_char_p, c_char_p]),
    "recipe_read": (c_int, [_HANDLE, c_char_p]),
    "recipe_resume": (c_int, [_HANDLE, c_char_p]),
    "plan_new": (c_int, [_HANDLE, c_int32, _OUT]),
    "plan_new_watched": (c_int, [_HANDLE, c_int32, Watch, c_void_p, _OUT]),
    "recipe_largest": (c_int, [_HANDLE, c_char_p, Watch, c_void_p, POINTER(c_int64), POINTER(c_int32)]),
    "plan_free": (None, [_HANDLE]),
    "plan_bytes": (c_int64, [_HANDLE]),
    "plan_step_ms": (c_double, [_HANDLE]),
    "plan_tier": (c_char_p, [_HANDLE]),
    "plan_json": (c_char_p, [_HANDLE]),
    "plan_recipe": (c_char_p, [_HANDLE]),
    "plan_notes": (c_char_p, [_HANDLE]),
    "plan_save": (c_int, [_HANDLE, c_char_p]),
    "plan_verify": (c_int, [c_char_p]),
    "plan_field_count": (c_int32, [_HANDLE]),
    "plan_field": (c_int, [_HANDLE, c_int32, POINTER(Tensor)]),
    "run_new": (c_int, [_HANDLE, POINTER(RunOptions), _OUT]),
    "run_free": (None, [_HANDLE]),
    "run_step": (c_int, [_HANDLE, POINTER(Figures)]),
    "run_train": (c_int, [_HANDLE, Show, c_void_p]),
    "run_result": (c_char_p, [_HANDLE]),
    "run_evaluate": (c_int, [_HANDLE, Fill, c_void_p, POINTER(Figures)]),
    "run_predict": (c_int, [_HANDLE, Fill, Take, c_void_p]),
    "run_set_rate": (c_int, [_HANDLE, c_double]),
    "run_stop": (None, [_HANDLE]),
    "run_done": (c_int64, [_HANDLE]),
    "run_steps": (c_int64, [_HANDLE]),
    "run_rest": (c_int, [_HANDLE]),
    "run_save": (c_int, [_HANDLE, POINTER(c_char_p)]),
    "run_export": (c_int, [_HANDLE, c_char_p]),
    "run_export_adapters": (c_int, [_HANDLE, c_char_p]),
    "run_export_merged": (c_int, [_HANDLE, c_char_p]),
    "run_weight_count": (c_int32, [_HANDLE]),
    "run_weight": (c_int, [_HANDLE, c_int32, POINTER(Tensor)]),
    "run_map_weight": (c_int, [_HANDLE, c_int32, _OUT, POINTER(c_int64)]),
    "run_find_weight": (c_int, [_HANDLE, c_char_p, POINTER(c_int32)]),
    "run_read_weight": (c_int, [_HANDLE, c_int32, c_void_p, c_int64]),
    "run_write_weight": (c_int, [_HANDLE, c_int32, c_void_p, c_int64]),
    "run_has_state": (c_int32, [_HANDLE, c_int32, c_char_p]),
    "run_read_state": (c_int, [_HANDLE, c_int32, c_char_p, c_void_p, c_int64]),
    "run_write_state": (c_int, [_HANDLE, c_int32, c_char_p, c_void_p, c_int64]),
    "generator_new": (c_int, [c_char_p, POINTER(GeneratorOptions), _OUT]),
    "generator_free": (None, [_HANDLE]),
    "generator_bytes": (c_int64, [_HANDLE]),
    "generator_cache_bytes": (c_int64, [_HANDLE]),
    "generator_note": (c_char_p, [_HANDLE]),
    "generator_context": (c_int64, [_HANDLE]),
    "generator_vocabulary": (c_int64, [_HANDLE]),
    "generator_held": (c_int64, [_HANDLE]),
    "generator_computed": (c_int64, [_HANDLE]),
    "generator_begin": (c_int, [_HANDLE, POINTER(c_int32), c_int64, POINTER(Sampling)]),
    "generator_next": (c_int, [_HANDLE, POINTER(c_int32)]),
    "generator_logits": (c_int, [_HANDLE, POINTER(c_int32), c_int64, c_void_p, c_int64]),
    "generator_forget": (None, [_HANDLE]),
}

# How OpenMP's threads wait: as the command line has it (src/base/host/openmp_waiting.h). OpenMP reads it as it
# is loaded, and never again.
_WAITING = {"OMP_WAIT_POLICY": "active", "GOMP_SPINCOUNT": "300000"}


def _file() -> str:
    named = os.environ.get("THIMBLE_LIBRARY")
    if named:
        return named
    beside = pathlib.Path(__file__).parent / "lib" / "libthimble.so.0"
    return str(beside) if beside.exists() else "libthimble.so.0"


def _load() -> ctypes.CDLL:
    chosen = not any(name in os.environ for name in _WAITING)
    if chosen:
        os.environ.update(_WAITING)
    try:
        library = ctypes.CDLL(_file())
    except OSError as error:
        raise ImportError(f"thimble: its library cannot be loaded: {error}; install the package "
                          "again, or name the file in THIMBLE_LIBRARY") from error
    finally:
        if chosen:
            for name in _WAITING:
                os.environ.pop(name, None)
    return library


class _Functions:
    """thimble_NAME() as .NAME()."""

    def __init__(self) -> None:
        library = _load()
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, "thimble_" + name)
            function.restype = result
            function.argtypes = arguments
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:  # for those who check types
        raise AttributeError(f"libthimble.so has no thimble_{name}")


c = _Functions()
