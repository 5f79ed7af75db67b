"""Fine-tuning's data: records, what counts in the loss, and the prepared folder."""

import contextlib
import importlib.util
import io
import json
import os
import struct
import sys
import unittest
from array import array
from unittest import mock

import numpy

import thimble
from conversations import turns
from support import Case
from thimble.__main__ import main as program
from thimble.__main__ import own_command
from thimble.finetune import chat, command, gguf, settings, show
from thimble.finetune.documents import Spool, read_documents, whole_folder
from thimble.finetune.prepare import Settings, _held
from thimble.finetune.records import as_turns, read_records
from thimble.finetune.render import rendered
from thimble.finetune.template import NoPrefix, answers_in, find_template, special_tokens
from thimble.finetune.tokens import Document, Text, Tokens, counted_of



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


if __name__ == "__main__":
    unittest.main()
