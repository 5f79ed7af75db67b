"""Conversations that chat templates are held to, by what they have."""

QUESTION = {"role": "user", "content": "  Wie geht's, \"du\" <da> & {{ x }}?\n"}
ANSWER = {"role": "assistant", "content": "Gut – danke! \U0001f642 "}
MORE = {"role": "user", "content": "und\ndann"}
LAST = {"role": "assistant", "content": "Schluß"}
SYSTEM = {"role": "system", "content": "Antworte kurz. "}
TOOL = {"type": "function", "function": {"name": "wetter", "description": "sagt's <b>", "parameters": {
    "type": "object", "properties": {"ort": {"type": "string"}}, "required": ["ort"]}}}
CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"type": "function", "function": {"name": "wetter", "arguments": {"ort": "Köln", "tage": 2}}}]}
RESULT = {"role": "tool", "content": "12 °C"}
THOUGHT = {"role": "assistant", "reasoning": "Hm.\n", "content": "Ja."}

CONVERSATIONS = {
    "one turn": ([QUESTION, ANSWER], None),
    "a question": ([QUESTION], None),
    "two turns": ([QUESTION, ANSWER, MORE, LAST], None),
    "a system's": ([SYSTEM, QUESTION, ANSWER, MORE], None),
    "tools": ([QUESTION], [TOOL]),
    "a call": ([QUESTION, CALL, RESULT, LAST], [TOOL]),
    "thoughts": ([QUESTION, THOUGHT, MORE, THOUGHT], None),
    "no order": ([QUESTION, QUESTION], None),
}
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}


def turns(*contents):
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(contents)]
