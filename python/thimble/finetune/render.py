"""A record as the text that is cut into tokens, with what counts in the loss."""

from __future__ import annotations

from .._errors import UserError
from .records import Record, as_turns
from .template import ChatTemplate, answers_in
from .tokens import Text

ASSISTANT, ALL = "assistant", "all"


def rendered(record: Record, template: ChatTemplate | None, loss_on: str, path: str) -> Text:
    """UserError, with the line's number, where the template refuses the record or there is none."""
    if record.pair and template is not None:
        record = as_turns(record)
    if record.messages is None:
        spans = [(record.first, len(record.text))] if record.pair and loss_on == ASSISTANT else None
        return Text(record.line, record.text, spans, whole=True)
    if template is None:
        raise UserError(f"'{path}', line {record.line}: it has messages, and the folder has no chat template; "
                        "name one with --template FILE")
    try:
        if loss_on == ALL:
            return Text(record.line, template.render(record.messages, tools=record.tools), None)
        text, spans = answers_in(template, record.messages, record.first, record.tools)
    except UserError as error:
        raise type(error)(f"'{path}', line {record.line}: {error}") from error
    return Text(record.line, text, spans)
