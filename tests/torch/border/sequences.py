"""Nets of tokens and of time: attention with masks of all kinds, positions, recurrent layers, graphs."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from . import ROWS, adamw, batches, case, labels, of_series, of_tokens, some_ignored


def per_token(output, target):
    return F.cross_entropy(output.flatten(0, 1), target.flatten())


def lengths():
    """Of sequences of six, of which one is whole and one has a token alone."""
    return torch.tensor([6, 1, 4, 3, 5, 2])[torch.randperm(ROWS)]


def padded(vocabulary=11):
    """Tokens, their mask, and labels of -100 where there are none."""
    mask = torch.arange(6) < lengths()[:, None]
    tokens = labels(vocabulary, ROWS, 6) * mask
    return {"tokens": tokens, "mask": mask, "labels": torch.where(mask, labels(vocabulary, ROWS, 6), -100)}


class Attention(nn.Module):
    """Written out, with something that changes its scores."""

    def __init__(self, width=8, heads=2):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, change=lambda scores: scores):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = change(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Tagged(nn.Module):
    """Something between a table and a head, tied to it."""

    def __init__(self, part, vocabulary=11, width=8):
        super().__init__()
        self.table, self.part = nn.Embedding(vocabulary, width), part
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens, *more):
        return self.head(self.part(self.table(tokens), *more))


@case("GPT: tied weights, a causal buffer, learnt positions, AdamW", optimizer=adamw)
def tied_language_model():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.norm = Attention(), nn.LayerNorm(8)
            self.places = nn.Parameter(0.1 * torch.randn(6, 8))
            self.register_buffer("causal", torch.tril(torch.ones(6, 6)).view(1, 1, 6, 6))

        def forward(self, x):
            x = x + self.places
            masked = self.attention(self.norm(x), lambda s: s.masked_fill(self.causal[:, :, :6, :6] == 0, -torch.inf))
            return x + F.gelu(masked, approximate="tanh")

    return Tagged(Block()), per_token, of_tokens()


@case("Llama: RMS norm, rotary positions, grouped heads, SwiGLU")
def llama_block():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = nn.Parameter(torch.ones(8))
            self.q, self.k, self.v = nn.Linear(8, 8, False), nn.Linear(8, 4, False), nn.Linear(8, 4, False)
            self.gate, self.up, self.down = nn.Linear(8, 12), nn.Linear(8, 12), nn.Linear(12, 8)
            angles = torch.outer(torch.arange(6.0), 100.0 ** (-torch.arange(0, 4, 2) / 4))
            self.register_buffer("cos", torch.cat([angles, angles], 1).cos(), persistent=False)
            self.register_buffer("sin", torch.cat([angles, angles], 1).sin(), persistent=False)

        def turned(self, x):
            half = torch.cat([-x[..., 2:], x[..., :2]], -1)
            return x * self.cos + half * self.sin

        def forward(self, x):
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.gain
            q, k, v = (part(y).unflatten(-1, (-1, 4)).transpose(1, 2) for part in (self.q, self.k, self.v))
            k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
            y = F.scaled_dot_product_attention(self.turned(q), self.turned(k), v, is_causal=True)
            x = x + y.transpose(1, 2).flatten(2)
            return x + self.down(F.silu(self.gate(x)) * self.up(x))

    return Tagged(Block()), per_token, of_tokens()


@case("BERT: a mask of padding, labels of -100, the module's own loss")
def padded_encoder():
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Tagged(Attention())

        def forward(self, tokens, mask, labels):
            far = torch.where(mask, 0.0, -1e4)[:, None, None]
            x = self.net.part(self.net.table(tokens), lambda scores: scores + far)
            return F.cross_entropy(self.net.head(x).transpose(1, 2), labels)

    return Encoder(), None, batches(padded)


@case("nn.MultiheadAttention with key_padding_mask and attn_mask")
def multihead_masks():
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(11, 8, padding_idx=0), nn.Linear(8, 11)
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
            self.register_buffer("ahead", torch.ones(6, 6).triu(1).bool())

        def forward(self, tokens, mask, labels):
            x = self.table(tokens)
            x = x + self.attention(x, x, x, key_padding_mask=~mask, attn_mask=self.ahead, need_weights=False)[0]
            return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())

    return Encoder(), None, batches(padded)


@case("relative positions: a bias by distance (T5), slopes (ALiBi)")
def relative_positions():
    class Relative(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = Attention(), Attention()
            self.bias = nn.Embedding(11, 2)
            apart = torch.arange(6)[:, None] - torch.arange(6)
            self.register_buffer("apart", apart + 5)
            self.register_buffer("slopes", torch.tensor([0.5, 0.25]).view(2, 1, 1) * -apart.abs())

        def forward(self, x):
            x = x + self.one(x, lambda scores: scores + self.bias(self.apart).permute(2, 0, 1))
            return x + self.two(x, lambda scores: scores + self.slopes)

    return Tagged(Relative()), per_token, of_tokens()


@case("nn.Transformer with tgt_mask: translation with padding and ignore_index")
def transformer_with_masks():
    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(11, 8), nn.Linear(8, 11)
            self.net = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)

        def forward(self, source, made, target):
            ahead = nn.Transformer.generate_square_subsequent_mask(made.shape[1])
            x = self.net(self.table(source), self.table(made), tgt_mask=ahead, tgt_is_causal=True)
            return F.cross_entropy(self.head(x).flatten(0, 1), target.flatten(), ignore_index=0)

    def make():
        target = some_ignored(1 + labels(10, ROWS, 5), 0)
        return {"source": labels(11, ROWS, 6), "made": labels(11, ROWS, 5), "target": target}

    return Translator(), None, batches(make)


@case("nn.TransformerEncoder with src_key_padding_mask, dropout")
def encoder_with_padding():
    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(11, 8), nn.Linear(8, 11)
            layer = nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True, norm_first=True)
            self.net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, tokens, mask, labels):
            x = self.net(self.table(tokens), src_key_padding_mask=~mask)
            pooled = (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            return F.cross_entropy(self.head(pooled), labels[:, 0].clamp(min=0))

    return Classifier(), None, batches(padded)


@case("attention with values narrower and wider than keys")
def uneven_values():
    class Latent(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k = nn.Linear(8, 12), nn.Linear(8, 12)
            self.narrow, self.wide, self.out = nn.Linear(8, 4), nn.Linear(8, 24), nn.Linear(28, 8)

        def forward(self, x):
            q, k, n, w = (p(x).unflatten(-1, (2, -1)).transpose(1, 2) for p in (self.q, self.k, self.narrow, self.wide))
            made = [F.scaled_dot_product_attention(q, k, v, is_causal=True) for v in (n, w)]
            return self.out(torch.cat([m.transpose(1, 2).flatten(2) for m in made], -1))

    return Tagged(Latent()), per_token, of_tokens()


@case("linear attention and a state-space layer, by cumulative sums")
def linear_attention():
    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.decay = nn.Linear(8, 24), nn.Parameter(torch.randn(8))

        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, -1)
            q, k = F.elu(q) + 1, F.elu(k) + 1
            state = torch.einsum("btd,bte->btde", k, v).cumsum(1)
            made = torch.einsum("btd,btde->bte", q, state) / (q * k.cumsum(1)).sum(-1, keepdim=True)
            share, left = torch.sigmoid(self.decay), torch.zeros_like(x[:, 0])
            steps = []
            for now in made.unbind(1):
                left = share * left + (1 - share) * now
                steps.append(left)
            return x + torch.stack(steps, 1)

    return Tagged(Linear()), per_token, of_tokens()


@case("an LSTM in both directions, a GRU, an RNN on top of each other")
def recurrent():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(8, 6, bidirectional=True, batch_first=True)
            self.gru, self.rnn = nn.GRU(12, 6, batch_first=True), nn.RNN(6, 6, batch_first=True)
            self.head = nn.Linear(6, 5)

        def forward(self, x):
            return self.head(self.rnn(self.gru(self.lstm(x)[0])[0])[1][-1])

    return Recurrent(), F.cross_entropy, of_series()


@case("seq2seq: an encoder's state, teacher forcing, attention, padding ignored")
def seq2seq():
    class Seq2Seq(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(11, 8), nn.Linear(16, 11)
            self.encoder, self.decoder = nn.GRU(8, 8, batch_first=True), nn.GRU(8, 8, batch_first=True)

        def forward(self, source, made, target):
            seen, state = self.encoder(self.table(source))
            x, _ = self.decoder(self.table(made), state)
            scores = (x @ seen.transpose(1, 2)).masked_fill((source == 0)[:, None], -1e4)
            x = torch.cat([x, scores.softmax(-1) @ seen], -1)
            each = F.nll_loss(F.log_softmax(self.head(x), -1).transpose(1, 2), target, ignore_index=0)
            return each

    def make():
        target = some_ignored(1 + labels(10, ROWS, 5), 0)
        return {"source": labels(11, ROWS, 6), "made": labels(11, ROWS, 5), "target": target}

    return Seq2Seq(), None, batches(make)


@case("an LSTM cell by hand, the step that each sequence ends at taken")
def cells_and_last_steps():
    class Cells(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = nn.LSTMCell(8, 6), nn.Linear(6, 5)

        def forward(self, x, length, target):
            state, made = None, []
            for t in range(x.shape[1]):
                state = self.cell(x[:, t], state)
                made.append(state[0])
            made = torch.stack(made, 1)
            last = made[torch.arange(made.shape[0]), length - 1]
            return F.cross_entropy(self.head(last), target)

    return Cells(), None, batches(lambda: {"x": torch.randn(ROWS, 6, 8), "length": lengths(), "target": labels(5)})


@case("packed sequences: their lengths are numbers that Python reads", refused="cannot trace the module")
def packed_sequences():
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(8, 6, batch_first=True), nn.Linear(6, 5)

        def forward(self, x, length, target):
            packed = nn.utils.rnn.pack_padded_sequence(x, length, batch_first=True, enforce_sorted=False)
            return F.cross_entropy(self.head(self.lstm(packed)[1][0][-1]), target)

    return Packed(), None, batches(lambda: {"x": torch.randn(ROWS, 6, 8), "length": lengths(), "target": labels(5)})


@case("causal convolutions with dilations and gates (WaveNet)")
def wavenet():
    class Wave(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList([nn.Conv1d(8, 16, 2, dilation=d) for d in (1, 2)])
            self.head = nn.Conv1d(8, 5, 1)

        def forward(self, x):
            x, skipped = x.transpose(1, 2), 0
            for part in self.parts:
                a, b = part(F.pad(x, (part.dilation[0], 0))).chunk(2, 1)
                x = x + torch.tanh(a) * torch.sigmoid(b)
                skipped = skipped + x
            return self.head(skipped)[..., -1]

    return Wave(), F.cross_entropy, of_series()


@case("EmbeddingBag written out, masked means and maxima over tokens")
def bags():
    class Bags(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(11, 8, padding_idx=0), nn.Linear(16, 11)

        def forward(self, tokens, mask, labels):
            x = self.table(tokens)
            mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
            most = x.masked_fill(~mask[..., None], -1e4).max(1).values
            return F.cross_entropy(self.head(torch.cat([mean, most], 1)), labels[:, 0].clamp(min=0))

    return Bags(), None, batches(padded)
