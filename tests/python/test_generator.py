import numpy as np

import thimble
from support import Case

GPT = dict(layers=2, heads=2, width=16, vocabulary=31, length=64, batch=2, threads=1,
           optimizer="adamw", schedule="constant", steps=2)


class Generators(Case):
    def trained(self):
        tokens = (np.arange(2 * 64) % 3).astype(np.int32).reshape(2, 64)
        out = self.path("run")
        thimble.train("gpt", [(tokens, tokens)] * 2, out=out, **GPT)
        return out

    def test_continues_a_chat_without_computing_it_again(self):
        out = self.trained()
        text = [3, 1, 4, 1, 5, 9, 2, 6]
        with thimble.Generator(out) as cached, thimble.Generator(out, cache=False) as whole:
            self.assertEqual(cached.cache_bytes, 2 * 2 * 64 * 16 * 4)
            self.assertEqual((whole.cache_bytes, cached.vocabulary, cached.context), (0, 31, 64))
            first = list(cached.generate(text, 12, temperature=0))
            self.assertEqual(list(whole.generate(text, 12, temperature=0)), first)
            text += first + [7]
            before = cached.computed
            logits = cached.logits(text)
            self.assertEqual(cached.computed - before, 2)
            np.testing.assert_allclose(logits, whole.logits(text), atol=2e-5 * abs(logits).max())
            self.assertEqual([int(logits.argmax())], list(cached.generate(text, 1, temperature=0)))
            cached.forget()
            self.assertEqual(cached.held, 0)

    def test_ends_where_it_is_asked_to(self):
        generator = thimble.Generator(self.trained())
        drawn = list(generator.generate([1, 2], 30, temperature=2, top_p=0.95, seed=4))
        again = list(generator.generate([1, 2], 30, temperature=2, top_p=0.95, seed=4,
                                        stop=[drawn[9]]))
        self.assertEqual(again, drawn[:drawn.index(drawn[9])])

        def decode(tokens):
            return "".join(chr(97 + token) for token in tokens)

        wanted = decode(drawn[5:8])
        made = list(generator.generate([1, 2], 30, temperature=2, top_p=0.95, seed=4,
                                       stop_text=[wanted], decode=decode))
        self.assertTrue(decode(made).endswith(wanted))
        self.assertEqual(made, drawn[:len(made)])
        with self.assertSays(thimble.UserError, "decode"):
            generator.generate([1], stop_text=["a"])

    def test_has_one_text_at_a_time(self):
        generator = thimble.Generator(self.trained())
        first = generator.generate([1, 2], 4, temperature=0)
        next(first)
        second = generator.generate([5, 6], 4, temperature=0)
        with self.assertSays(thimble.UserError, "another text was begun"):
            next(first)
        self.assertEqual(len(list(second)), 4)

    def test_says_what_it_cannot_continue(self):
        out = self.trained()
        generator = thimble.Generator(out)
        with self.assertSays(thimble.UserError, "beyond the vocabulary"):
            generator.generate([31])
        with self.assertSays(thimble.UserError, "nothing to go on with"):
            generator.generate([])
        with self.assertSays(thimble.UserError, "whole numbers"):
            generator.generate(["one"])
        with self.assertSays(thimble.UserError, "there is no checkpoint"):
            thimble.Generator(self.path("nowhere"))
        with self.assertSays(thimble.DoesNotFit, "give --memory more"):
            thimble.Generator(out, memory="10KiB")
        generator.close()
        with self.assertSays(thimble.UserError, "closed"):
            generator.generate([1])
