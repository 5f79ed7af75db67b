"""Fine-tuning's data: records, what counts in the loss, and the prepared folder."""

import contextlib
import importlib.util
import io
import json
import math
import os
import struct
import subprocess
import sys
import unittest
from array import array
from unittest import mock

import numpy

import thimble
from conversations import ANSWER, LAST, MORE, QUESTION, SPECIAL, SYSTEM, THOUGHT
from support import Case
from thimble.__main__ import main as program
from thimble.__main__ import own_command
from thimble.finetune import chat, command, gguf, settings, show
from thimble.finetune.documents import Spool, read_documents, whole_folder
from thimble.finetune.prepare import Settings, _held, prepare
from thimble.finetune.records import as_turns, read_records
from thimble.finetune.render import rendered
from thimble.finetune.template import ChatTemplate, NoPrefix, answers_in, find_template, special_tokens
from thimble.finetune.tokens import Document, Text, Tokens, counted_of

HAS = all(importlib.util.find_spec(name) for name in ("tokenizers", "jinja2"))
CHATML = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
          "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


class Plain:
    """A template without Jinja; `forgets`: earlier answers are shortened once others follow."""

    def __init__(self, forgets=False):
        self.forgets = forgets

    def render(self, messages, *, tools=None, answer=False):
        text = ""
        for place, message in enumerate(messages):
            content = message["content"]
            if self.forgets and message["role"] == "assistant" and place + 1 < len(messages):
                content = content[:1]
            text += f"<{message['role']}>{content}</>"
        return text + ("<assistant>" if answer else "")


def turns(*contents):
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(contents)]


class Records(Case):
    def file(self, *lines):
        path = self.path("chat.jsonl")
        with open(path, "wb") as file:
            for line in lines:
                file.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
        return path

    def read(self, *lines):
        return list(read_records(self.file(*lines)))

    def test_three_forms(self):
        chat, pair, text, mixed = self.read(
            {"messages": turns("a", "b")}, {"prompt": "p", "completion": "c"}, b"\n", {"text": "t"},
            {"prompt": turns("x"), "completion": [{"role": "assistant", "content": "y"}]})
        self.assertEqual((chat.line, chat.first, [m["content"] for m in chat.messages]), (1, 0, ["a", "b"]))
        self.assertEqual((pair.text, pair.first, pair.pair), ("pc", 1, True))
        self.assertEqual((text.line, text.text, text.pair), (4, "t", False))
        self.assertEqual((mixed.first, len(mixed.messages)), (1, 2))
        self.assertEqual([m["content"] for m in as_turns(pair).messages], ["p", "c"])

    def test_broken_lines_are_named(self):
        good = {"text": "t"}
        for line, word in [(b"{\n", "JSON"), (b"[1]\n", "object"), (b"\xff\n", "UTF-8"), ({"txt": "t"}, "neither"),
                           (b'{"text": "\\ud83d"}\n', "UTF-8"), ({"text": 3}, "text"), ({"messages": []}, "messages"),
                           ({"messages": [{"content": "a"}]}, "role"), (b"[" * 100000 + b"\n", "line 3"),
                           ({"messages": [{"role": "user", "content": 1}]}, "content"),
                           ({"prompt": "a", "completion": 1}, "prompt")]:
            with self.assertSays(thimble.UserError, "chat.jsonl", "line 3", word):
                self.read(good, good, line)
        with self.assertSays(thimble.UserError, "nowhere.jsonl"):
            list(read_records(self.path("nowhere.jsonl")))


class Counting(Case):
    def test_answers_are_found_by_rendering_without_them(self):
        text, spans = answers_in(Plain(), turns("q", "one", "q2", "two"))
        self.assertEqual([text[a:b] for a, b in spans], ["one</>", "two</>"])
        _, later = answers_in(Plain(), turns("q", "one", "q2", "two"), first=3)
        self.assertEqual(later, spans[1:])
        self.assertEqual(answers_in(Plain(), turns("q"))[1], [])

    def test_a_template_that_is_no_prefix_is_refused(self):
        answers_in(Plain(forgets=True), turns("q", "long answer"))
        with self.assertSays(NoPrefix, "turn 2", "--loss-on all"):
            answers_in(Plain(forgets=True), turns("q", "long answer", "q2", "x"))

    def test_a_token_counts_where_it_begins(self):
        offsets = [(0, 0), (0, 3), (3, 5), (5, 6), (6, 6), (6, 9), (9, 12)]
        self.assertEqual(list(counted_of(offsets, [(4, 6), (6, 9)])), [0, 0, 0, 1, 0, 1, 0])
        self.assertEqual(list(counted_of(offsets, None)), [1] * 7)
        self.assertEqual(list(counted_of(offsets, [])), [0] * 7)

    def test_a_prompt_is_turns_where_there_is_a_template(self):
        with open(self.path("a.jsonl"), "w") as file:
            file.write(json.dumps({"prompt": "p", "completion": "c"}) + "\n" + json.dumps({"text": "t"}))
        record, text = read_records(self.path("a.jsonl"))
        self.assertEqual(as_turns(record).messages[1]["role"], "assistant")
        self.assertEqual(rendered(record, Plain(), "assistant", "a").text, "<user>p</><assistant>c</>")
        alone = rendered(record, None, "assistant", "a")
        self.assertEqual((alone.text, alone.spans, alone.whole), ("pc", [(1, 2)], True))
        self.assertIsNone(rendered(record, None, "all", "a").spans)
        self.assertEqual(rendered(text, Plain(), "assistant", "a"), Text(2, "t", None, True))

    def test_messages_need_a_template(self):
        with open(self.path("a.jsonl"), "w") as file:
            file.write(json.dumps({"messages": turns("a", "b")}))
        record = next(read_records(self.path("a.jsonl")))
        with self.assertSays(thimble.UserError, "line 1", "--template"):
            rendered(record, None, "assistant", "a.jsonl")


class Files(Case):
    DOCUMENTS = [Document(1, array("i", [5, 6, 7]), b"\0\0\1"), Document(2, array("i", [8]), b"\1"),
                 Document(3, array("i", [9, 10]), b"\1\1")]

    def test_bytes_are_those_of_the_format(self):
        with Spool(self.folder) as spool:
            for document in self.DOCUMENTS:
                spool.add(document)
            about = spool.write(self.path("train.documents"), [0, 2])
        self.assertEqual(about, {"records": 2, "tokens": 5, "counted": 2})
        with open(self.path("train.documents"), "rb") as file:
            raw = file.read()
        self.assertEqual(raw, b"thimdocs" + struct.pack("<IIQ3Q5i5B", 1, 0, 2, 0, 3, 5, 5, 6, 7, 9, 10, 0, 0, 1, 1, 1))
        back = read_documents(self.path("train.documents"))
        self.assertEqual([(list(d.tokens), d.counted) for d in back], [([5, 6, 7], b"\0\0\1"), ([9, 10], b"\1\1")])
        for damaged in (raw[:-1], raw[:20], b"x" + raw[1:]):
            with open(self.path("bad"), "wb") as file:
                file.write(damaged)
            with self.assertRaises(thimble.UserError):
                read_documents(self.path("bad"))

    def test_a_folder_is_written_whole_or_not_at_all(self):
        with self.assertRaises(ZeroDivisionError), whole_folder(self.path("made")) as made:
            open(os.path.join(made, "part"), "w").close()
            1 / 0
        self.assertEqual(os.listdir(self.folder), [])
        for _ in range(2):  # the second finds it there, and leaves it
            with whole_folder(self.path("made")) as made:
                open(os.path.join(made, "part"), "w").close()
            self.assertEqual(os.listdir(self.folder), ["made"])

    def test_a_held_out_share(self):
        train, test = _held(100, Settings(held_out=0.05), "f")
        self.assertEqual((len(train), len(test)), (95, 5))
        self.assertEqual(sorted(train + test), list(range(100)))
        self.assertEqual(_held(100, Settings(held_out=0.05), "f"), (train, test))
        with self.assertSays(thimble.UserError, "nothing to test on", "--test FILE"):
            _held(9, Settings(held_out=0.05), "f")
        with self.assertSays(thimble.UserError, "nothing to train on"):
            _held(1, Settings(held_out=0.9), "f")


class Entries(Case):
    def test_a_missing_package_is_one_sentence(self):
        with open(self.path("config.json"), "w") as file:
            file.write('{"vocab_size": 3}')
        open(self.path("tokenizer.json"), "w").close()
        with mock.patch.dict(sys.modules, {"tokenizers": None}):
            with self.assertSays(thimble.UserError, "tokenizers", r"pip install thimble\[finetune\]"):
                Tokens(self.folder)

    def test_folders_that_are_none(self):
        with self.assertSays(thimble.UserError, "no config.json"):
            Tokens(self.folder)
        open(self.path("config.json"), "w").close()
        with self.assertSays(thimble.UserError, "no tokenizer.json"):
            Tokens(self.folder)

    def test_commands_are_the_packages_own(self):
        self.assertEqual(own_command(["finetune", "f"]), (command.finetune_command, ["f"]))
        self.assertEqual(own_command(["data", "show", "f"]), (show.show_command, ["f"]))
        self.assertIsNone(own_command(["data", "get"]))
        self.assertIsNone(own_command(["train", "mlp"]))

    def test_flags_that_are_none_of_its_own_pass_through(self):
        parsed = command.parse(["folder", "--data", "a.jsonl", "--memory=3MiB", "--full", "--length=64", "--steps", "3"],
                               settings.CHOICES, "finetune")
        self.assertEqual(parsed, ("folder", {"data": "a.jsonl", "full": True, "length": 64},
                                  ["--memory=3MiB", "--steps", "3"]))
        for words, said in [([], "begins with a folder"), (["--data", "a"], "begins with a folder"),
                            (["f", "--data"], "--data wants a value"), (["f", "--length", "x"], "--length is a number")]:
            with self.assertSays(thimble.UserError, said):
                command.parse(words, settings.CHOICES, "finetune")

    def test_the_folder_of_the_data_is_its_own(self):
        for words in (["--data-dir", "d"], ["--data-dir=d"]):
            with self.assertSays(thimble.UserError, "--data-dir", "leave it out"):
                command.arguments_of(["f", "--data", "a.jsonl", *words])

    def test_exit_codes_are_those_of_the_program(self):
        for error, code in [(thimble.UserError("a"), 2), (thimble.DoesNotFit("a", 1), 3), (thimble.Bug("a"), 1)]:
            with mock.patch("thimble.__main__.own_command", return_value=(mock.Mock(side_effect=error), [])):
                with contextlib.redirect_stderr(io.StringIO()):
                    self.assertEqual(program(), code)

    def test_usual_settings(self):
        about = {"length": 128, "train": {"tokens": 1280}}
        prepared = mock.Mock(about=about)
        with mock.patch.object(settings, "multiplies_bf16", return_value=False):
            usual = settings.of_run(prepared, {}, {})
            self.assertEqual((usual["lora"], usual["lr"], usual["epochs"], usual["batch"]), ("rank=16", 2e-4, 3, 8))
            self.assertNotIn("precision", usual)
            steps = settings.of_run(prepared, {"full": True}, {"steps": "200"})
            self.assertEqual((steps["warmup"], steps["lr"]), ("6 steps", 2e-5))
            self.assertFalse({"lora", "epochs"} & set(steps))
        with mock.patch.object(settings, "multiplies_bf16", return_value=True):
            self.assertEqual(settings.of_run(prepared, {}, {})["precision"], "bf16")
            self.assertEqual(settings.of_run(prepared, {"full": True}, {})["rounding"], "stochastic")
            self.assertNotIn("rounding", settings.of_run(prepared, {"full": True}, {"precision": "fp32"}))
        with self.assertSays(thimble.UserError, "--full", "--lora"):
            settings.of_run(prepared, {"full": True, "lora": "rank=2"}, {})

    def test_processors_that_multiply_bf16(self):
        for flags, does in [("fpu avx512f avx512_bf16", True), ("fpu avx512f", False)]:
            with open(self.path("cpuinfo"), "w") as file:
                file.write(f"processor : 0\nflags : {flags}\n")
            with mock.patch("platform.machine", return_value="x86_64"):
                self.assertEqual(settings.multiplies_bf16(self.path("cpuinfo")), does)

    def test_templates_of_a_folder(self):
        self.assertIsNone(find_template(self.folder))
        for said, found in [("one", "one"), ([{"name": "tool", "template": "a"}, {"name": "default", "template": "b"}], "b")]:
            with open(self.path("tokenizer_config.json"), "w") as file:
                json.dump({"chat_template": said, "eos_token": {"content": "</s>"}, "bos_token": None}, file)
            self.assertEqual(find_template(self.folder), found)
        with open(self.path("tokenizer_config.json")) as file:
            self.assertEqual(special_tokens(json.load(file)), {"eos_token": "</s>"})
        with open(self.path("chat_template.jinja"), "w") as file:
            file.write("file")
        self.assertEqual(find_template(self.folder), "file")

    def test_tokens_in_lines_and_in_colours(self):
        pieces = [(7, "hi\n", False), (12, "\033x", True)]
        self.assertEqual(show.listed(pieces), "    0        7     hi\\n\n    1       12  *  \\x1bx")
        self.assertEqual(show.coloured(pieces), "\033[2mhi\\n\033[0m\n\033[32m\\x1bx\033[0m")


class Letters:
    """A tokenizer of letters: token 0 ends an answer."""

    ends = {0}

    def encode(self, text):
        return [ord(c) for c in text]

    def decode(self, tokens):
        return bytes(tokens).decode("utf-8", errors="replace")

    def is_special(self, token):
        return False


class Echo:
    """A generator that answers with the last letters of its text."""

    def __init__(self, context, answer=b"ok"):
        self.context, self.answer, self.asked = context, answer, []

    def generate(self, ids, most, stop, **sampling):
        self.asked.append(("".join(map(chr, ids)), most, list(stop), sampling))
        return iter(self.answer[:most])


class Gguf(Case):
    def test_blocks_of_eight_bits(self):
        values = numpy.zeros((2, 32), numpy.float32)
        values[0, :4] = [127, -63.5, 0.5, -0.4]
        raw = gguf.q8_0(values)
        self.assertEqual(len(raw), 2 * 34)
        self.assertEqual(struct.unpack_from("<e5b", raw), (1.0, 127, -64, 1, 0, 0))
        self.assertEqual(raw[34:], bytes(34))

    def test_halves_that_turn_are_pairs(self):
        rows = numpy.arange(8).reshape(8, 1)
        self.assertEqual(gguf.interleaved(rows, 2).ravel().tolist(), [0, 2, 1, 3, 4, 6, 5, 7])

    def test_names(self):
        for ours, theirs in [("model.layers.3.self_attn.q_proj.bias", "blk.3.attn_q.bias"),
                             ("model.layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight"),
                             ("model.embed_tokens.weight", "token_embd.weight"), ("lm_head.weight", "output.weight")]:
            self.assertEqual(gguf.theirs(ours), theirs)
        with self.assertSays(thimble.UserError, "model.vision.weight"):
            gguf.theirs("model.vision.weight")

    def test_kinds_of_tokenizers(self):
        cut = lambda pre, model="BPE": {"model": {"type": model}, "pre_tokenizer": pre}
        plain = {"type": "ByteLevel"}
        self.assertEqual(gguf.pre_tokenizer(cut(plain), "f"), "gpt-2")
        self.assertEqual(gguf.pre_tokenizer(cut([plain, {"Regex": r"\p{N}{1,3}|x"}]), "f"), "llama-bpe")
        self.assertEqual(gguf.pre_tokenizer(cut([plain, {"Regex": r"\p{L}+|\p{N}|x"}]), "f"), "qwen2")
        self.assertEqual(gguf.pre_tokenizer(cut([plain, {"type": "Digits"}]), "f"), "smollm")
        with self.assertSays(thimble.UserError, "convert_hf_to_gguf.py"):
            gguf.pre_tokenizer(cut(plain, "Unigram"), "f")

    def test_folders_that_are_refused(self):
        for config, said in [({"model_type": "bert"}, "bert"), ({"model_type": "llama", "rope_scaling": {"type": "yarn"}}, "scaled")]:
            with open(self.path("config.json"), "w") as file:
                json.dump(config, file)
            with self.assertSays(thimble.UserError, said):
                gguf.write_gguf(self.folder, self.path("x.gguf"))
        with self.assertSays(thimble.UserError, "q8_0"):
            gguf.write_gguf(self.folder, self.path("x.gguf"), "q4_1")
        self.assertEqual(os.listdir(self.folder), ["config.json"])


class Talking(Case):
    def test_pieces_are_whole_characters(self):
        made = list(chat.pieces(iter("aé🙂".encode() + b"\xff"), Letters().decode))
        self.assertEqual(made, ["a", "é", "🙂", "\ufffd"])
        self.assertEqual(list(chat.pieces(iter([]), Letters().decode)), [])

    def test_a_conversation_keeps_what_was_said(self):
        echo = Echo(100)
        talk = chat.Conversation(echo, Letters(), Plain(), system="s")
        self.assertEqual("".join(talk.ask("q", 7, temperature=0.5)), "ok")
        self.assertEqual("".join(talk.ask("r", 7)), "ok")
        self.assertEqual(echo.asked[0], ("<system>s</><user>q</><assistant>", 7, [0], {"temperature": 0.5}))
        self.assertEqual(echo.asked[1][0], "<system>s</><user>q</><assistant>ok</><user>r</><assistant>")
        talk.reset()
        self.assertEqual([m["role"] for m in talk.messages], ["system"])

    def test_an_answer_that_is_stopped_stays_as_far_as_it_came(self):
        talk = chat.Conversation(Echo(100, b"abcdef"), Letters(), Plain())
        answer = talk.ask("q", 6)
        self.assertEqual([next(answer), next(answer)], ["a", "b"])
        answer.close()
        self.assertEqual(talk.messages[-1], {"role": "assistant", "content": "ab"})

    def test_a_context_that_is_full_loses_its_first_turns(self):
        echo = Echo(60)
        talk = chat.Conversation(echo, Letters(), Plain())
        for _ in range(3):
            list(talk.ask("qqqq", 10))
        self.assertEqual(echo.asked[-1][0].count("<user>"), 1)
        self.assertEqual(talk.forgotten, 4)
        with self.assertSays(thimble.UserError, "60 at once", "--context"):
            list(talk.ask("q" * 60, 10))

    def test_questions_that_are_no_text(self):
        with self.assertSays(thimble.UserError, "no UTF-8"):
            chat.chat_command(["run", "--once", "a\udcff"])
        with mock.patch("sys.stdin", mock.Mock(buffer=io.BytesIO(b"ab\xff"))):
            with self.assertSays(thimble.UserError, "byte 3"):
                chat.chat_command(["run", "--once", "-"])

    def test_runs_that_are_none(self):
        with self.assertSays(thimble.UserError, "neither a run nor a Hugging Face folder"):
            chat.run_settings(self.folder)
        os.mkdir(self.path("latest"))
        with open(self.path("latest/state.json"), "w") as file:
            json.dump({"recipe": {"model": "mlp"}}, file)
        with self.assertSays(thimble.UserError, "'mlp'", "no Hugging Face folder"):
            chat.opened(self.folder, {})
        for words, said in [(["run", "--one", "x"], "--one"), (["run", "--most", "0"], "--most"), ([], "")]:
            if words:
                with self.assertSays(thimble.UserError, said):
                    chat.chat_command(words)


def tiny_folder(folder, rows=None, template=CHATML):
    """A tokenizer of bytes, with the tokens of chatml."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    made.save(os.path.join(folder, "tokenizer.json"))
    config = dict(model_type="llama", hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
                  num_key_value_heads=1, vocab_size=rows or made.get_vocab_size(), max_position_embeddings=256,
                  rms_norm_eps=1e-5, tie_word_embeddings=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as file:
        json.dump({"eos_token": "<|im_end|>", "chat_template": template}, file)
    return made


@unittest.skipUnless(HAS, "needs tokenizers and jinja2")
class Families(Case):
    """Templates of the structure that six families have; tests/torch/templates.py holds them to transformers."""

    def template(self, name):
        with open(os.path.join(os.path.dirname(__file__), "templates", name + ".jinja"), encoding="utf-8") as file:
            return ChatTemplate(file.read(), SPECIAL)

    def test_answers_of_two_turns(self):
        first, last = ANSWER["content"], LAST["content"]
        for name, said in {"llama3": [first.strip() + "<|eot_id|>", last + "<|eot_id|>"],
                           "qwen2.5": [first + "<|im_end|>\n", last + "<|im_end|>\n"],
                           "mistral": [" " + first.strip() + "</s>", " " + last + "</s>"],
                           "gemma": [first.strip() + "<end_of_turn>\n", last + "<end_of_turn>\n"],
                           "smollm2": [first + "<|im_end|>\n", last + "<|im_end|>\n"]}.items():
            text, spans = answers_in(self.template(name), [QUESTION, ANSWER, MORE, LAST])
            self.assertEqual([text[a:b] for a, b in spans], said, name)

    def test_templates_that_change_what_was_said(self):
        text, spans = answers_in(self.template("qwen3"), [QUESTION, THOUGHT])
        self.assertEqual([text[a:b] for a, b in spans], ["<think>\nHm.\n</think>\n\nJa.<|im_end|>\n"])
        for name, messages in [("qwen3", [QUESTION, THOUGHT, MORE, THOUGHT]), ("mistral", [SYSTEM, QUESTION, ANSWER])]:
            with self.assertSays(NoPrefix, "--loss-on all"):
                answers_in(self.template(name), messages)

    def test_refusals_of_a_template(self):
        for name, messages in [("gemma", [SYSTEM, QUESTION]), ("mistral", [QUESTION, QUESTION])]:
            with self.assertSays(thimble.UserError, "refuses the conversation"):
                self.template(name).render(messages)

    def test_a_template_is_kept_in_its_sandbox(self):
        for text in ("{{ ''.__class__.__mro__ }}", "{% set n = namespace(_x=1) %}", "{{ messages.append(1) }}"):
            with self.assertRaises(thimble.UserError, msg=text):
                print(ChatTemplate(text).render([QUESTION]))


class WithFolder(Case):
    def setUp(self):
        super().setUp()
        self.model = self.path("model")
        os.mkdir(self.model)
        self.tokenizer = tiny_folder(self.model)

    def records(self, count, name="chat.jsonl", *more):
        with open(self.path(name), "w") as file:
            for i in range(count):
                file.write(json.dumps({"messages": turns(f"say {i}", f"it is {i}é")}) + "\n")
            for record in more:
                file.write(json.dumps(record) + "\n")
        return self.path(name)


@unittest.skipUnless(HAS, "needs tokenizers and jinja2")
class Preparing(WithFolder):
    def prepare(self, path, settings=None, **more):
        return prepare(self.model, path, settings or Settings(length=64), cache=self.path("cache"), **more)

    def test_tokens_and_what_counts(self):
        made = self.prepare(self.records(20))
        self.assertEqual((made.about["train"]["records"], made.about["test"]["records"]), (19, 1))
        self.assertEqual(made.about["vocabulary"], 258)
        for document in read_documents(os.path.join(made.folder, "train.documents")):
            said = self.tokenizer.decode(list(document.tokens), skip_special_tokens=False)
            number = said.split("say ")[1].split("<")[0]
            self.assertEqual(said, f"<|im_start|>user\nsay {number}<|im_end|>\n<|im_start|>assistant\n"
                                   f"it is {number}é<|im_end|>\n")
            answer = [t for t, c in zip(document.tokens, document.counted) if c]
            self.assertEqual(self.tokenizer.decode(answer, skip_special_tokens=False), f"it is {number}é<|im_end|>\n")
        with open(os.path.join(made.folder, "chat_template.jinja")) as file:
            self.assertEqual(file.read(), CHATML)

    def test_a_second_time_finds_it(self):
        path = self.records(20)
        first = self.prepare(path)
        again = self.prepare(path)
        self.assertEqual((first.reused, again.reused, again.folder, again.about), (False, True, first.folder, first.about))
        self.assertNotEqual(self.prepare(path, Settings(length=65)).folder, first.folder)
        with open(path, "a") as file:
            file.write('{"text": "more"}\n')
        self.assertNotEqual(self.prepare(path).folder, first.folder)

    def test_long_and_silent_records(self):
        path = self.records(20, "long.jsonl", {"messages": turns("no answer")}, {"messages": turns("q", "x" * 90)},
                            {"messages": turns("q" * 90, "never seen")})
        cut = self.prepare(path)
        self.assertEqual([note.split(": ", 1)[1] for note in cut.notes],
                         ["1 records have nothing that counts in the loss and are left out (the first in line 21)",
                          "1 records are longer than 64 tokens and are left out (the first in line 23)",
                          "1 records are cut to 64 tokens (the first in line 22)"])
        self.assertEqual(cut.about["train"]["records"] + cut.about["test"]["records"], 21)
        self.assertEqual(max(len(d.tokens) for part in ("train", "test")
                             for d in read_documents(os.path.join(cut.folder, part + ".documents"))), 64)
        dropped = self.prepare(path, Settings(length=64, longer="drop"))
        self.assertEqual(dropped.about["train"]["records"] + dropped.about["test"]["records"], 20)
        with self.assertSays(thimble.UserError, "line 22", "--longer cut"):
            self.prepare(path, Settings(length=64, longer="refuse"))
        every = self.prepare(path, Settings(length=64, loss_on="all", longer="drop"))
        self.assertEqual(every.about["train"]["records"] + every.about["test"]["records"], 21)

    def test_what_a_record_is_cut_to_is_of_the_key(self):
        path = self.records(20, "long.jsonl", {"messages": turns("q", "x" * 300)})
        first = self.prepare(path, Settings())
        config = os.path.join(self.model, "config.json")
        with open(config) as file:
            said = json.load(file)
        with open(config, "w") as file:
            json.dump({**said, "max_position_embeddings": 128}, file)
        second = self.prepare(path, Settings())
        self.assertEqual((first.about["length"], second.reused, second.about["length"]), (256, False, 128))

    def test_usual_length(self):
        self.assertEqual(self.prepare(self.records(20), Settings()).about["length"], 128)

    def test_a_file_to_test_on(self):
        made = self.prepare(self.records(5), test=self.records(2, "test.jsonl"))
        self.assertEqual((made.about["train"]["records"], made.about["test"]["records"]), (5, 2))
        with self.assertSays(thimble.UserError, "silent.jsonl", "no record to test on", "nothing that counts"):
            self.prepare(self.records(5), test=self.records(0, "silent.jsonl", {"messages": turns("q")}))
        self.assertEqual(len(os.listdir(self.path("cache"))), 1)  # nothing of what was refused

    def test_texts_end(self):
        made = self.prepare(self.records(0, "text.jsonl", {"text": "abc"}, {"text": "de"}), Settings(length=64, held_out=0.5))
        for part in ("train", "test"):
            document, = read_documents(os.path.join(made.folder, part + ".documents"))
            self.assertEqual(document.tokens[-1], self.tokenizer.token_to_id("<|im_end|>"))
            self.assertEqual(document.counted, b"\1" * len(document.tokens))

    def test_the_end_that_a_tokenizer_adds_counts(self):
        from tokenizers import processors
        end = self.tokenizer.token_to_id("<|im_end|>")
        self.tokenizer.post_processor = processors.TemplateProcessing(single="$A <|im_end|>",
                                                                      special_tokens=[("<|im_end|>", end)])
        self.tokenizer.save(os.path.join(self.model, "tokenizer.json"))
        document, = Tokens(self.model).documents([Text(1, "abcd", [(2, 4)], True)])
        self.assertEqual((list(document.tokens).count(end), document.counted), (1, b"\0\0\1\1\1"))

    def test_refusals(self):
        path = self.records(20)
        for chosen, words in [(Settings(length=257), ["256", "max_position_embeddings"]), (Settings(length=1), ["--length"]),
                              (Settings(length=64, held_out=0), ["--held-out"]), (Settings(longer="?"), ["--longer"]),
                              (Settings(loss_on="user"), ["--loss-on"])]:
            with self.assertSays(thimble.UserError, *words):
                self.prepare(path, chosen)
        with self.assertSays(thimble.UserError, "empty.jsonl", "no record"):
            self.prepare(self.records(0, "empty.jsonl"))
        for rows in (200, 1000):
            tiny_folder(self.model, rows)
            with self.assertSays(thimble.UserError, "258 tokens", str(rows)):
                self.prepare(path)
        tiny_folder(self.model, template="{% if %}")
        with self.assertSays(thimble.UserError, "no Jinja"):
            self.prepare(path)
        tiny_folder(self.model, template="{{ raise_exception('roles must alternate') }}")
        with self.assertSays(thimble.UserError, "line 1", "roles must alternate"):
            self.prepare(path)
        tiny_folder(self.model, template="{{ messages[0].__class__ }}")
        with self.assertRaises(thimble.UserError):
            self.prepare(path)

    def test_a_record_is_shown(self):
        path, said = self.records(2), io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(show.show_command([path, "--model", self.model, "--record", "2"]), 0)
        first, *lines = said.getvalue().splitlines()
        self.assertEqual(first, "record 2, line 2: 35 tokens, 11 count")
        self.assertEqual("".join(line[19:] for line in lines if line[16] == "*").replace("éé", "é"), "it is 1é<|im_end|>\\n")
        with self.assertSays(thimble.UserError, "no record 3"):
            show.show_command([path, "--model", self.model, "--record", "3"])

    def test_the_words_of_train(self):
        path = self.records(40)
        with mock.patch.dict(os.environ, {"THIMBLE_CACHE": self.path("cache")}):
            words = command.arguments_of([self.model, "--data", path, "--frozen", "nf4", "--steps", "7", "--out", "run"])
        self.assertEqual(words[:4], ["train", "hf:" + self.model, "--data", "documents"])
        self.assertEqual(words[words.index("--lora") + 1], "rank=16")
        with open(self.path("r.toml"), "w") as file:
            file.write(f'# "x"\nmodel = "hf:{self.model}"  # there\nlength = 48\nclip_norm = 2\nlora = "rank=2"\nsteps = 9\n')
        with mock.patch.dict(os.environ, {"THIMBLE_CACHE": self.path("cache")}):
            of_file = command.arguments_of([self.path("r.toml"), "--data", path])
        self.assertEqual(of_file[1], self.path("r.toml"))
        self.assertFalse({"--clip-norm", "--lora", "--epochs"} & set(of_file))
        self.assertEqual(of_file[of_file.index("--warmup") + 1], "1 steps")
        self.assertEqual(words[-8:], ["--patience", "0", "--frozen", "nf4", "--steps", "7", "--out", "run"])


def write_weights(folder, seed=3):
    """Random numbers for the configuration of tiny_folder, as safetensors."""
    draw = numpy.random.default_rng(seed)
    layer = "model.layers.0."
    shapes = {"model.embed_tokens.weight": (258, 16), "model.norm.weight": (16,), layer + "input_layernorm.weight": (16,),
              layer + "post_attention_layernorm.weight": (16,), layer + "self_attn.q_proj.weight": (16, 16),
              layer + "self_attn.k_proj.weight": (8, 16), layer + "self_attn.v_proj.weight": (8, 16),
              layer + "self_attn.o_proj.weight": (16, 16), layer + "mlp.gate_proj.weight": (32, 16),
              layer + "mlp.up_proj.weight": (32, 16), layer + "mlp.down_proj.weight": (16, 32)}
    header, body = {}, b""
    for name, shape in shapes.items():
        values = numpy.ones(shape) if len(shape) == 1 else draw.normal(0, 0.2, shape)
        raw = values.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


@unittest.skipUnless(HAS, "needs tokenizers and jinja2")
class Training(WithFolder):
    """The whole way of a tiny model."""

    USUAL = dict(length=64, batch=2, threads=1, precision="fp32", lr=1e-2, seed=5)

    def setUp(self):
        super().setUp()
        write_weights(self.model)
        cache = mock.patch.dict(os.environ, {"THIMBLE_CACHE": self.path("cache")})
        cache.start()
        self.addCleanup(cache.stop)

    def test_from_records_to_adapters(self):
        path = self.records(40)
        seen = []
        with thimble.finetune(self.model, path, lora=dict(rank=2), steps=6, eval_every="3 steps", out=self.path("run"),
                              progress=lambda p: seen.append(p.test), **self.USUAL) as tuned:
            self.assertEqual(tuned.result["steps"], 6)
            self.assertEqual(tuned.result["measured_arena_bytes"], tuned.run.plan.bytes)
            tests = [test for test in seen if test]
            self.assertAlmostEqual(tests[-1]["perplexity"], math.exp(tests[-1].loss), delta=1e-3 * math.exp(tests[-1].loss))
            tuned.save_adapter(self.path("adapter"))
            tuned.save_merged(self.path("merged"))
            for kind, least in (("f16", 2 * 258 * 16), ("q8_0", 258 * 16)):
                tuned.save_gguf(self.path(kind), kind)
                with open(self.path(kind), "rb") as file:
                    magic, version, tensors, _ = struct.unpack("<4sIQQ", file.read(24))
                self.assertEqual((magic, version, tensors), (b"GGUF", 3, 11))
                self.assertGreater(os.path.getsize(self.path(kind)), least)
        with open(self.path("adapter/adapter_config.json")) as file:
            self.assertEqual(json.load(file)["r"], 2)
        self.assertEqual(sorted(os.listdir(self.path("merged"))),
                         ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"])
        with open(self.path("merged/model.safetensors"), "rb") as merged:
            with open(os.path.join(self.model, "model.safetensors"), "rb") as base:
                self.assertNotEqual(merged.read(), base.read())

    def test_every_entry_makes_the_same_weights(self):
        path, digests = self.records(40), []
        for memory in (None, "2MiB"):
            run = thimble.finetune(self.model, path, lora="rank=2", steps=4, memory=memory, allow="exact", **self.USUAL)
            digests.append(run.result["weights_sha256"])
            run.close()
        words = command.arguments_of([self.model, "--data", path, "--lora", "rank=2", "--steps", "4", "--length", "64",
                                      "--batch", "2", "--threads", "1", "--precision", "fp32", "--lr", "1e-2", "--seed",
                                      "5", "--out", self.path("run"), "--json"])
        done = subprocess.run([sys.executable, "-m", "thimble", "finetune", *self.typed(words, path)], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual({*digests, result["weights_sha256"]}, {digests[0]})
        self.assertEqual(result["best"]["weights"], self.path("run/best-adapter"))
        self.assertIn("38 records to train on", done.stderr)

    def typed(self, words, path):
        """The words of `finetune` that those of `train` came from."""
        others = words[words.index("--patience"):]
        return [self.model, "--data", path, "--lora", "rank=2", "--length", "64", *others[2:]]

    def test_the_recipe_of_the_repository(self):
        recipes = os.path.join(os.path.dirname(__file__), "..", "..", "recipes")
        with open(os.path.join(recipes, "smollm2-lora.toml"), encoding="utf-8") as file:
            text = file.read()
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(text.replace("hf:SmolLM2-135M-Instruct", "hf:" + self.model))
        done = subprocess.run([sys.executable, "-m", "thimble", "finetune", self.path("recipe.toml"), "--data",
                               self.records(60), "--steps", "2", "--threads", "1", "--json", "--out", self.path("run")],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["best"]["step"], 2)

    def test_refusals_of_the_command(self):
        for words, said in [([self.model], "--data FILE.jsonl"), (["nowhere", "--data", self.records(20)], "no config.json"),
                            ([self.model, "--data", self.records(20), "--frosen", "nf4"], "--frozen")]:
            done = subprocess.run([sys.executable, "-m", "thimble", "finetune", *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)

    def test_refusals_of_the_call(self):
        path = self.records(20)
        for more, said in [(dict(resume=True), "out"), (dict(data_dir="x"), "data_dir"), (dict(lora="rank=0.5"), "rank"),
                           (dict(frozen="nf5"), "nf4")]:
            with self.assertSays(thimble.UserError, said):
                thimble.finetune(self.model, path, **{**self.USUAL, **more})
        with self.assertSays(thimble.UserError, "no adapters"):
            run = thimble.finetune(self.model, path, lora=None, steps=1, **self.USUAL)
            run.save_adapter(self.path("adapter"))


if __name__ == "__main__":
    unittest.main()
