"""Fine-tuning from a folder with a tokenizer: templates, prepared data, training and what comes out."""

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
from unittest import mock

import numpy

import thimble
from conversations import ANSWER, LAST, MORE, QUESTION, SPECIAL, SYSTEM, THOUGHT, turns
from support import Case
from thimble.finetune import command, settings, show
from thimble.finetune.documents import read_documents
from thimble.finetune.prepare import Settings, prepare
from thimble.finetune.template import ChatTemplate, NoPrefix, answers_in
from thimble.finetune.tokens import Text, Tokens

HAS = all(importlib.util.find_spec(name) for name in ("tokenizers", "jinja2"))
CHATML = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
          "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


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
