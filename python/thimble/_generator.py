"""Generation: a trained language model that continues texts, token by token, with a KV cache."""

from __future__ import annotations

import ctypes
import json
import os
import warnings
from typing import Any, Callable, Iterable, Iterator, Sequence

from . import _library as lib
from ._arrays import need_numpy
from ._errors import UserError, check
from ._library import c
from ._plan import _settings

_CACHES = {"auto": lib.CACHE_AUTOMATIC, True: lib.CACHE_ON, False: lib.CACHE_OFF}
_FEWEST, _MOST = -2**31, 2**31 - 1


def _numbers(tokens: Iterable[int], what: str) -> Any:
    try:
        numbers = [int(token) for token in tokens]
    except (TypeError, ValueError) as error:
        raise UserError(f"{what} are whole numbers: {error}") from None
    for number in numbers:
        if not _FEWEST <= number <= _MOST:
            raise UserError(f"token {number} is beyond the vocabulary")
    return (ctypes.c_int32 * len(numbers))(*numbers)


class Generator:
    """A trained language model, ready to continue texts.

    source    the folder of a run, a checkpoint, or "hf:FOLDER": a folder of transformers with weights
              of its own
    weights   in place of the model's: a safetensors file, or a folder of adapters (PEFT)
    context   tokens of a text that the model sees at once, prompt and answer; None: the length of its
              records
    memory    the budget on the arena: "600MiB", or bytes; None: the run's, or no limit
    cache     "auto": a KV cache where it fits the budget; True: DoesNotFit where it does not; False: the
              whole text is recomputed for each token
    settings  further settings of the recipe: threads=2, device="cuda"; of hf:FOLDER also
              precision="bf16", frozen="nf4"

    Texts are token ids; a tokenizer is the caller's. Each call is given the whole text, of a chat all turns so
    far: a beginning that the cache holds is not recomputed.
    """

    def __init__(self, source: str | os.PathLike[str], *,
                 weights: str | os.PathLike[str] | None = None, context: int | None = None,
                 memory: str | int | None = None, cache: str | bool = "auto",
                 **settings: Any) -> None:
        self._handle = ctypes.c_void_p()
        self._begun = 0  # texts
        if cache not in _CACHES:
            raise UserError(f"cache is 'auto', True or False, not {cache!r}")
        said = _settings({"memory": memory, **settings})
        options = lib.GeneratorOptions(
            size=ctypes.sizeof(lib.GeneratorOptions), context=context or 0, cache=_CACHES[cache],
            weights=os.fspath(weights).encode() if weights is not None else None,
            settings=json.dumps(said).encode() if said else None)
        check(c.generator_new(os.fspath(source).encode(), ctypes.byref(options),
                              ctypes.byref(self._handle)))
        if self.note:
            warnings.warn(f"thimble: {self.note}", stacklevel=2)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Gives the memory back."""
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            c.generator_free(handle)

    def __enter__(self) -> Generator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def generate(self, tokens: Sequence[int], count: int = 256, *, temperature: float = 1.0,
                 top_k: int = 0, top_p: float = 1.0, seed: int = 1,
                 stop: Iterable[int] = (), stop_text: Iterable[str] = (),
                 decode: Callable[[list[int]], str] | None = None) -> Iterator[int]:
        """Tokens behind `tokens`, one by one, at most `count` of them.

        temperature  what logits are divided by; 0: always the likeliest token
        top_k        only so many of the likeliest; 0: all
        top_p        only the likeliest whose probabilities add up to this (nucleus sampling)
        seed         the same tokens from the same seed
        stop         token ids that end the text; the one that does is not among the results
        stop_text    texts that end it, found in decode(tokens made so far); the token that completes one is
                     the last result
        """
        texts = [stop_text] if isinstance(stop_text, str) else list(stop_text)
        if texts and decode is None:
            raise UserError("stop_text is found in text; say how tokens become text with `decode`")
        ends = _numbers(stop, "stop tokens")
        sampling = lib.Sampling(size=ctypes.sizeof(lib.Sampling), temperature=temperature,
                                top_k=top_k, top_p=top_p, seed=seed, stop=ends,
                                stop_count=len(ends))
        text = _numbers(tokens, "tokens")
        check(c.generator_begin(self._open(), text, len(text), ctypes.byref(sampling)))
        self._begun += 1
        return self._continued(self._begun, count, texts, decode)

    def _continued(self, begun: int, count: int, texts: list[str],
                   decode: Callable[[list[int]], str] | None) -> Iterator[int]:
        made: list[int] = []
        token = ctypes.c_int32()
        while len(made) < count:
            if begun != self._begun:
                raise UserError("another text was begun; take all tokens of one before the next, or open a Generator "
                                "for each")
            check(c.generator_next(self._open(), ctypes.byref(token)))
            if token.value < 0:
                return
            made.append(token.value)
            yield token.value
            if texts and decode is not None:
                said = decode(made)
                if any(text in said for text in texts):
                    return

    def logits(self, tokens: Sequence[int]) -> Any:
        """Of the token behind `tokens`: a NumPy array with a number for each token there is."""
        numpy = need_numpy()
        text = _numbers(tokens, "tokens")
        made = numpy.empty(self.vocabulary, numpy.float32)
        check(c.generator_logits(self._open(), text, len(text), made.ctypes.data, made.nbytes))
        return made

    def forget(self) -> None:
        """Empties the cache: the next text is computed from its beginning."""
        c.generator_forget(self._open())

    @property
    def bytes(self) -> int:
        """Of the arena: weights, cache and activations."""
        return c.generator_bytes(self._open())

    @property
    def cache_bytes(self) -> int:
        """Of keys and values, in the arena; 0: there is no cache."""
        return c.generator_cache_bytes(self._open())

    @property
    def note(self) -> str:
        """Why there is no cache, or what became of a file of weights; else empty."""
        return c.generator_note(self._open()).decode()

    @property
    def context(self) -> int:
        """Tokens of a text that the model sees at once."""
        return c.generator_context(self._open())

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return c.generator_vocabulary(self._open())

    @property
    def held(self) -> int:
        """Tokens that the cache holds."""
        return c.generator_held(self._open())

    @property
    def computed(self) -> int:
        """Tokens computed so far, of all texts."""
        return c.generator_computed(self._open())

    def _open(self) -> ctypes.c_void_p:
        if not self._handle:
            raise UserError("the generator is closed")
        return self._handle
