"""Records of a JSONL file: one JSON object a line.

    {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}
    {"prompt": "...", "completion": "..."}      (texts, or lists of messages)
    {"text": "..."}
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Iterator

from .._errors import UserError

Message = dict


@dataclass(frozen=True)
class Record:
    """Either messages, of which those from `first` on may count, or a text, which counts from `first` on."""

    line: int
    messages: tuple | None = None
    text: str = ""
    first: int = 0
    """Messages that are none of the answer's; of a text: characters."""
    tools: Any = None
    pair: bool = False
    """A prompt and its completion, as texts: a template makes turns of them."""


def _place(path: str, line: int) -> str:
    return f"'{path}', line {line}"


def _without_surrogates(value: Any) -> bool:
    """JSON may spell half a character (\\ud83d), which is no text."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
    elif isinstance(value, dict):
        return all(map(_without_surrogates, value)) and all(map(_without_surrogates, value.values()))
    elif isinstance(value, list):
        return all(map(_without_surrogates, value))
    return True


def _messages(value: Any, where: str, name: str) -> tuple:
    if not isinstance(value, list) or not value:
        raise UserError(f"{where}: its {name} is no list of messages; write [{{\"role\": ..., \"content\": ...}}, ...]")
    for number, message in enumerate(value, 1):
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str):
            raise UserError(f"{where}: message {number} has no role; write \"user\", \"assistant\" or \"system\"")
        content = message.get("content")
        # Calls of tools come without a content; parts of it, each of a type, are left to the template.
        if not isinstance(content, (str, list)) and not message.get("tool_calls"):
            raise UserError(f"{where}: the content of message {number} is no text")
    return tuple(value)


def parse_record(found: Any, line: int, path: str) -> Record:
    """UserError, with the line's number, of what is none of the three forms."""
    where = _place(path, line)
    if not isinstance(found, dict):
        raise UserError(f"{where}: it is no JSON object; write one a line")
    if not _without_surrogates(found):
        raise UserError(f"{where}: it has half a character (\\ud800 to \\udfff), which is no UTF-8")
    tools = found.get("tools")
    if "messages" in found:
        return Record(line, _messages(found["messages"], where, "messages"), tools=tools)
    if "prompt" in found and "completion" in found:
        prompt, completion = found["prompt"], found["completion"]
        if isinstance(prompt, str) and isinstance(completion, str):
            return Record(line, text=prompt + completion, first=len(prompt), pair=True)
        before = _messages(prompt, where, "prompt")
        return Record(line, before + _messages(completion, where, "completion"), first=len(before), tools=tools)
    if "text" in found:
        if not isinstance(found["text"], str):
            raise UserError(f"{where}: its text is no text")
        return Record(line, text=found["text"])
    raise UserError(f"{where}: it has neither \"messages\", nor \"prompt\" and \"completion\", nor \"text\"")


def as_turns(record: Record) -> Record:
    """A prompt and its completion as a user's turn and an assistant's."""
    prompt, completion = record.text[:record.first], record.text[record.first:]
    messages = ({"role": "user", "content": prompt}, {"role": "assistant", "content": completion})
    return Record(record.line, messages, first=1)


def read_records(path: str | os.PathLike[str]) -> Iterator[Record]:
    """One at a time. Empty lines are passed over."""
    path = os.fspath(path)
    try:
        file = open(path, "rb")
    except OSError as error:
        raise UserError(f"'{path}' cannot be read: {error.strerror}") from error
    with file:
        for number, raw in enumerate(file, 1):
            if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
                raw = raw[3:]
            if not raw.strip():
                continue
            try:
                found = json.loads(raw.decode())
            except UnicodeDecodeError as error:
                raise UserError(f"{_place(path, number)}: byte {error.start + 1} is no UTF-8") from error
            except RecursionError as error:
                raise UserError(f"{_place(path, number)}: its lists are too deep") from error
            except ValueError as error:
                said = str(error).split(": line")[0]
                raise UserError(f"{_place(path, number)}: it is no JSON: {said}") from error
            yield parse_record(found, number, path)
