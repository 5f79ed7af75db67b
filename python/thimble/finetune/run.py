"""Fine-tuning from Python: `thimble.finetune(folder, data, ...)`."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
import weakref
from typing import Any, Callable, Mapping, Sequence

from .._errors import UserError, check
from .._figures import Figures, Progress
from .._generator import Generator
from .._library import c
from .._plan import Plan, _setting
from .._run import Run
from .chat import Conversation, usual_context
from .gguf import write_gguf
from .settings import of_run, prepared_for
from .template import ChatTemplate, find_template
from .tokens import Tokens


class FineTuned:
    """A fine-tuned folder: the run that trained it, its files, and its answers."""

    def __init__(self, run: Run, model: str, out: str, template: str | None) -> None:
        self.run, self.model, self.out = run, model, out
        self._template = template
        self._generator: Any = None
        self._at = -1  # step of the generator's weights

    @property
    def result(self) -> dict[str, Any]:
        """The object that `thimble train --json` prints."""
        return self.run.result

    def evaluate(self) -> Figures:
        """Held-out loss, perplexity and accuracy of tokens."""
        return self.run.evaluate()

    def save_adapter(self, folder: str | os.PathLike[str]) -> None:
        """adapter_config.json and adapter_model.safetensors, as PEFT reads them."""
        check(c.run_export_adapters(self.run._open(), os.fspath(folder).encode()))

    def save_merged(self, folder: str | os.PathLike[str]) -> None:
        """A new folder with the files of the base, the adapters added, and its settings and tokenizer."""
        check(c.run_export_merged(self.run._open(), os.fspath(folder).encode()))

    def save_gguf(self, path: str | os.PathLike[str], kind: str = "q8_0") -> None:
        """The merged weights as one file for llama.cpp, in "f16" or "q8_0"."""
        with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(path))) as folder:
            merged = os.path.join(folder, os.path.basename(os.path.abspath(self.model)))
            self.save_merged(merged)
            write_gguf(merged, path, kind)

    def generate(self, prompt: str | Sequence[Mapping[str, Any]], most: int = 256, **sampling: Any) -> str:
        """The answer to a question, or to a conversation (a list of messages). `sampling` as of
        :meth:`thimble.Generator.generate`: temperature (0: always the likeliest token), top_k, top_p, seed."""
        sampling.setdefault("temperature", 0.0)
        tokens = Tokens(self.model)
        if self._at != self.run.steps:
            if self._generator is not None:
                self._generator.close()
            self.run.save()
            self._generator, self._at = Generator(self.out, context=usual_context(tokens)), self.run.steps
        text = find_template(self.model, self._template)
        chat = None if text is None else ChatTemplate(text, tokens.special)
        talk = Conversation(self._generator, tokens, chat)
        if isinstance(prompt, str):
            return "".join(talk.ask(prompt, most, **sampling))
        talk.messages = [dict(message) for message in prompt]
        return "".join(talk.answer(most, **sampling))

    def close(self) -> None:
        """Gives the memory back."""
        self.run.close()
        if self._generator is not None:
            self._generator.close()

    def __enter__(self) -> FineTuned:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _spec(lora: Any) -> str | None:
    if lora is None or lora is False:
        return None
    return "rank=16" if lora is True else str(_setting(lora, "lora"))


def finetune(folder: str | os.PathLike[str], data: str | os.PathLike[str], *, lora: Any = True,
             test: str | os.PathLike[str] | None = None, held_out: float | None = None, length: int | None = None,
             longer: str | None = None, loss_on: str | None = None, template: str | os.PathLike[str] | None = None,
             memory: str | int | None = None, out: str | os.PathLike[str] | None = None, resume: bool | str = False,
             overwrite: bool = False, progress: Callable[[Progress], Any] | None = None, **recipe: Any) -> FineTuned:
    """Fine-tunes a Hugging Face folder on the records of a JSONL file, inside a budget.

    lora     adapters, dict(rank=16, alpha=32, targets=["q_proj", "v_proj"]); None: all weights are trained
    data     a JSONL file; test: another to test on, in place of the share held_out (0.05)
    length   tokens of a row; longer: what becomes of records of more, "cut", "drop" or "refuse"
    loss_on  "assistant": what it says alone; "all"
    template a file with a chat template, in place of the folder's
    memory   the budget: "300MiB", or bytes
    out      folder of checkpoints; None: one that goes with the run
    recipe   any other flag of `thimble train` by its name: frozen="nf4", epochs=3, lr=2e-4
    """
    model = os.fspath(folder)
    own = {"data": os.fspath(data), "test": test if test is None else os.fspath(test), "held-out": held_out,
           "length": length, "longer": longer, "loss-on": loss_on, "lora": _spec(lora), "full": _spec(lora) is None,
           "template": template if template is None else os.fspath(template)}
    own = {name: value for name, value in own.items() if value is not None}
    prepared = prepared_for(model, own, lambda _: None)
    for note in prepared.notes:
        warnings.warn(f"thimble: {note}", stacklevel=2)
    given = {name.replace("_", "-"): value for name, value in recipe.items() if value is not None}
    if "data-dir" in given:
        raise UserError("data_dir is where the records are prepared; leave it out")
    usual = of_run(prepared, own, given)
    settings = {name.replace("-", "_"): value for name, value in usual.items() if name not in given}
    settings.update(recipe, memory=memory, data="documents", data_dir=prepared.folder)
    own_folder = None
    if out is None:
        if resume:
            raise UserError("resume continues a run that has a folder; say which with out")
        own_folder = out = tempfile.mkdtemp(prefix="thimble-finetune-")
    try:
        plan = Plan("hf:" + model, settings, with_data=True, goes_on=out if resume else None)
        run = Run(plan, out=out, resume=resume, overwrite=overwrite or own_folder is not None)
        if own_folder is not None:
            weakref.finalize(run, shutil.rmtree, own_folder, ignore_errors=True)
    except BaseException:
        if own_folder is not None:
            shutil.rmtree(own_folder, ignore_errors=True)
        raise
    run.train(progress)
    return FineTuned(run, model, os.fspath(out), own.get("template"))
