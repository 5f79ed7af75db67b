"""A folder's chat template, rendered byte for byte as `apply_chat_template` of transformers does."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from typing import Any, Sequence

from .._errors import UserError
from ._needs import needed
from .records import Message

# Tokens that tokenizer_config.json names and templates use.
SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")

# Thoughts of an assistant before it answers.
REASONING = ("reasoning_content", "thinking", "reasoning")


def read_json(path: str) -> dict:
    """An object; empty where there is no such file."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise UserError(f"'{path}' is no JSON object")
    return found


def special_tokens(config: dict) -> dict[str, str]:
    """name -> text, of those that tokenizer_config.json names."""
    found = {}
    for name in SPECIAL:
        token = config.get(name)
        if isinstance(token, dict):
            token = token.get("content")
        if isinstance(token, str):
            found[name] = token
    return found


def _named(templates: Any, path: str) -> str | None:
    """The usual one of several, as older folders have them."""
    if templates is None or isinstance(templates, str):
        return templates
    if isinstance(templates, list):
        templates = {entry.get("name"): entry.get("template") for entry in templates if isinstance(entry, dict)}
    if isinstance(templates, dict) and isinstance(templates.get("default"), str):
        return templates["default"]
    raise UserError(f"'{path}': none of its chat templates is named \"default\"; choose one with --template FILE")


def find_template(folder: str, chosen: str | None = None) -> str | None:
    """The text of `chosen`, else the folder's own; None: it has none."""
    path = chosen or os.path.join(folder, "chat_template.jinja")
    if chosen or os.path.exists(path):
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except (OSError, ValueError) as error:
            raise UserError(f"the chat template '{path}' cannot be read: {error}") from error
    path = os.path.join(folder, "tokenizer_config.json")
    return _named(read_json(path).get("chat_template"), path)


def _environment() -> Any:
    needed("jinja2")
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace

    class Generation(Extension):
        """{% generation %} marks an answer for trainers, and prints what is inside."""

        tags = {"generation"}

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return nodes.CallBlock(self.call_method("_inside"), [], [], body).set_lineno(line)

        def _inside(self, caller: Any) -> str:
            return caller()

    # A template comes from anywhere: it gets neither the class dict nor names of Python's own.
    class PlainNamespace(Namespace):
        def __init__(*arguments: Any, **named: Any) -> None:  # as Namespace, so that `self` may be a name, too
            attributes = dict(*arguments[1:], **named)
            for name in attributes:
                _check_name(name)
            Namespace.__init__(arguments[0], attributes)

        def __setitem__(self, name: str, value: Any) -> None:
            _check_name(name)
            super().__setitem__(name, value)

    class PlainDict:
        def __call__(self, *arguments: Any, **named: Any) -> dict:
            return dict(*arguments, **named)

        def fromkeys(self, *arguments: Any) -> dict:
            return dict.fromkeys(*arguments)

    def _check_name(name: Any) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise TemplateError(f"a namespace has no name that begins with an underscore: {name!r}")

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def tojson(value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None,
               sort_keys: bool = False) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    made.filters["tojson"] = tojson
    made.globals.update(raise_exception=raise_exception, namespace=PlainNamespace, dict=PlainDict())
    made.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return made


def _as_templates_read(message: Message) -> Message:
    """Without keys of no value, and what was thought under each of the names that templates know."""
    said = {key: value for key, value in message.items() if value is not None}
    thought = next((said[name] for name in REASONING if name in said), None)
    return said if thought is None else {"thinking": thought, **said, "reasoning_content": thought}


class ChatTemplate:
    """A template in a sandbox: it sees messages and the names of special tokens, and changes neither."""

    def __init__(self, text: str, special: dict[str, str] | None = None) -> None:
        self.text, self._special = text, special or {}
        environment = _environment()
        self._failed = needed("jinja2").TemplateError
        try:
            self._compiled = environment.from_string(text)
        except self._failed as error:
            raise UserError(f"the chat template is no Jinja: {error}") from error

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def render(self, messages: Sequence[Message], *, tools: Any = None, answer: bool = False) -> str:
        """The text of a conversation; `answer`: with the beginning of the assistant's next turn."""
        try:
            return self._compiled.render(messages=list(map(_as_templates_read, messages)), tools=tools, documents=None,
                                         add_generation_prompt=answer, **self._special)
        except (self._failed, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            raise UserError(f"the chat template refuses the conversation: {error or type(error).__name__}") from error


def _begun(template: ChatTemplate, messages: Sequence[Message], tools: Any) -> str:
    """The text up to the assistant's words. Of no messages at all, which templates may refuse: nothing."""
    try:
        return template.render(messages, tools=tools, answer=True)
    except UserError:
        if messages:
            raise
        return ""


class NoPrefix(UserError):
    """The text of a conversation does not begin with that of its first turns."""


def answers_in(template: ChatTemplate, messages: Sequence[Message], first: int = 0, tools: Any = None
               ) -> tuple[str, list[tuple[int, int]]]:
    """The text of a conversation, and where in it what the assistant says lies (first character, one behind).

    A turn is found by rendering the conversation with and without it. NoPrefix where a template changes earlier turns.
    """
    whole = template.render(messages, tools=tools)
    spans = []
    for turn, message in enumerate(messages):
        if turn < first or message.get("role") != "assistant":
            continue
        before = _begun(template, messages[:turn], tools)
        behind = whole if turn + 1 == len(messages) else template.render(messages[:turn + 1], tools=tools)
        if not whole.startswith(before) or not whole.startswith(behind) or len(behind) <= len(before):
            raise NoPrefix(f"the chat template renders turn {turn + 1} otherwise once others follow it, so what counts "
                           "cannot be told apart; give records of one answer, a template that keeps earlier turns "
                           "(--template FILE), or --loss-on all")
        spans.append((len(before), len(behind)))
    return whole, spans
