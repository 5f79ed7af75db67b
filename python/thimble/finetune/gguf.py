"""A Hugging Face folder as one GGUF file, in F16 or Q8_0, for llama.cpp and programs that read its files."""

from __future__ import annotations

import json
import os
import struct
from typing import Any, BinaryIO, Iterator

from .._arrays import need_numpy
from .._errors import UserError
from .template import find_template, read_json, special_tokens

ARCHITECTURES = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
F32, F16, Q8_0 = 0, 1, 8  # types of tensors
KINDS = {"f16": F16, "q8_0": Q8_0}
_FILE_TYPES = {"f16": 1, "q8_0": 7}
ALIGNMENT, BLOCK = 32, 32
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4  # types of tokens

_NAMES = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
          "lm_head.weight": "output.weight"}
_OF_LAYER = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
             "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
             "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
             "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def theirs(name: str) -> str:
    """A tensor's name in GGUF."""
    if name in _NAMES:
        return _NAMES[name]
    parts = name.split(".")
    module = ".".join(parts[3:-1])
    if parts[:2] != ["model", "layers"] or module not in _OF_LAYER:
        raise UserError(f"GGUF has no name for the tensor '{name}'")
    return f"blk.{parts[2]}.{_OF_LAYER[module]}.{parts[-1]}"


def tensors_of(folder: str) -> Iterator[tuple[str, Any]]:
    """name, float32 array; one at a time is in memory."""
    numpy = need_numpy()
    index = read_json(os.path.join(folder, "model.safetensors.index.json"))
    for file in sorted(set(index["weight_map"].values())) if index else ["model.safetensors"]:
        path = os.path.join(folder, file)
        if not os.path.exists(path):
            raise UserError(f"'{path}' is not there")
        with open(path, "rb") as opened:
            size, = struct.unpack("<Q", opened.read(8))
            header = json.loads(opened.read(size))
        raw = numpy.memmap(path, numpy.uint8, "r", 8 + size)
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            bits, kind = raw[begin:end], entry["dtype"]
            if kind == "BF16":
                values = (bits.view("<u2").astype(numpy.uint32) << 16).view(numpy.float32)
            elif kind in ("F16", "F32"):
                values = bits.view("<f" + kind[1:].replace("16", "2").replace("32", "4")).astype(numpy.float32)
            else:
                raise UserError(f"'{path}': the tensor '{name}' is in {kind}; merge into a base of floating numbers")
            yield name, values.reshape(entry["shape"])


def interleaved(values: Any, heads: int) -> Any:
    """Rows of a head whose halves turn together, as pairs beside each other: so llama.cpp turns them."""
    split = values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:])
    return split.swapaxes(1, 2).reshape(values.shape)


def q8_0(values: Any) -> bytes:
    """Blocks of 32: a scale in 16 bits, and numbers of 8."""
    numpy = need_numpy()
    blocks = values.reshape(-1, BLOCK)
    scale = numpy.abs(blocks).max(axis=1, keepdims=True) / 127
    with numpy.errstate(divide="ignore"):
        inverse = numpy.where(scale == 0, 0, 1 / scale)
    codes = blocks * inverse
    codes = numpy.trunc(codes + numpy.copysign(0.5, codes)).astype(numpy.int8)  # half goes away from 0
    return numpy.concatenate([scale.astype("<f2").view(numpy.uint8), codes.view(numpy.uint8)], axis=1).tobytes()


def pre_tokenizer(tokenizer: dict, folder: str) -> str:
    """llama.cpp's name of how a text is cut before bytes are joined."""
    said = json.dumps(tokenizer.get("pre_tokenizer"))
    if tokenizer.get("model", {}).get("type") != "BPE" or "ByteLevel" not in said:
        raise UserError(f"'{folder}': its tokenizer joins no bytes, and only such ones are written to GGUF; convert the "
                        "merged folder with llama.cpp's convert_hf_to_gguf.py")
    for mark, name in ((r"\\p{N}{1,3}", "llama-bpe"), (r"\\p{N}|", "qwen2"), ('"Digits"', "smollm")):
        if mark in said:
            return name
    return "gpt-2"


class _Fields:
    """Keys and values of the head of a file."""

    def __init__(self) -> None:
        self.count, self._parts = 0, []

    def _add(self, key: str, code: int, raw: bytes) -> None:
        self.count += 1
        self._parts += [_text(key), struct.pack("<I", code), raw]

    def whole(self, key: str, value: int) -> None:
        self._add(key, 4, struct.pack("<I", value))

    def real(self, key: str, value: float) -> None:
        self._add(key, 6, struct.pack("<f", value))

    def flag(self, key: str, value: bool) -> None:
        self._add(key, 7, struct.pack("<?", value))

    def text(self, key: str, value: str) -> None:
        self._add(key, 8, _text(value))

    def texts(self, key: str, values: list[str]) -> None:
        self._add(key, 9, struct.pack("<IQ", 8, len(values)) + b"".join(map(_text, values)))

    def wholes(self, key: str, values: list[int]) -> None:
        self._add(key, 9, struct.pack(f"<IQ{len(values)}i", 5, len(values), *values))

    def bytes(self) -> bytes:
        return b"".join(self._parts)


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def _settings(fields: _Fields, config: dict, architecture: str, kind: str, folder: str) -> None:
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if scaling.get("rope_type", scaling.get("type", "default")) != "default":
        raise UserError(f"'{folder}': its positions are scaled, which GGUF keeps otherwise; convert the merged folder with "
                        "llama.cpp's convert_hf_to_gguf.py")
    heads, width = config["num_attention_heads"], config["hidden_size"]
    size = config.get("head_dim") or width // heads
    fields.text("general.architecture", architecture)
    fields.text("general.type", "model")
    fields.text("general.name", os.path.basename(os.path.abspath(folder)))
    fields.whole("general.file_type", _FILE_TYPES[kind])
    fields.whole("general.quantization_version", 2)
    for key, value in {"block_count": config["num_hidden_layers"], "context_length": config["max_position_embeddings"],
                       "embedding_length": width, "feed_forward_length": config["intermediate_size"],
                       "attention.head_count": heads, "vocab_size": config["vocab_size"],
                       "attention.head_count_kv": config.get("num_key_value_heads", heads),
                       "attention.key_length": size, "attention.value_length": size,
                       "rope.dimension_count": size}.items():
        fields.whole(f"{architecture}.{key}", value)
    fields.real(f"{architecture}.rope.freq_base", scaling.get("rope_theta", config.get("rope_theta", 10000.0)))
    fields.real(f"{architecture}.attention.layer_norm_rms_epsilon", config["rms_norm_eps"])


def _tokens(fields: _Fields, config: dict, folder: str) -> None:
    tokenizer = read_json(os.path.join(folder, "tokenizer.json"))
    own = read_json(os.path.join(folder, "tokenizer_config.json"))
    pre = pre_tokenizer(tokenizer, folder)
    rows = config["vocab_size"]
    tokens, kinds = [f"[PAD{i}]" for i in range(rows)], [5] * rows  # 5: unused
    for token, number in tokenizer["model"]["vocab"].items():
        tokens[number], kinds[number] = token, NORMAL
    for added in tokenizer.get("added_tokens", []):
        number = added["id"]
        tokens[number], kinds[number] = added["content"], CONTROL if added["special"] else USER_DEFINED
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
    fields.text("tokenizer.ggml.model", "gpt2")
    fields.text("tokenizer.ggml.pre", pre)
    fields.texts("tokenizer.ggml.tokens", tokens)
    fields.wholes("tokenizer.ggml.token_type", kinds)
    fields.texts("tokenizer.ggml.merges", merges)
    numbers = {token: number for number, token in enumerate(tokens)}
    special = special_tokens(own)
    for name, key in (("bos_token", "bos"), ("eos_token", "eos"), ("unk_token", "unknown"), ("pad_token", "padding")):
        if special.get(name) in numbers:
            fields.whole(f"tokenizer.ggml.{key}_token_id", numbers[special[name]])
    fields.flag("tokenizer.ggml.add_bos_token", bool(own.get("add_bos_token", pre == "llama-bpe")))
    template = find_template(folder)
    if template is not None:
        fields.text("tokenizer.chat_template", template)


def _kind_of(shape: tuple, kind: str) -> int:
    if len(shape) < 2:
        return F32
    return F16 if kind == "q8_0" and shape[-1] % BLOCK else KINDS[kind]


def _size(shape: tuple, code: int) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return {F32: 4 * count, F16: 2 * count, Q8_0: count // BLOCK * (BLOCK + 2)}[code]


def _pad(file: BinaryIO) -> None:
    file.write(b"\0" * (-file.tell() % ALIGNMENT))


def write_gguf(folder: str | os.PathLike[str], path: str | os.PathLike[str], kind: str = "q8_0") -> None:
    """The folder (a base, or one that save_merged wrote) as one file; kind: "f16" or "q8_0"."""
    folder, path = os.fspath(folder), os.fspath(path)
    if kind not in KINDS:
        raise UserError(f"GGUF is written in 'f16' or 'q8_0', not '{kind}'")
    config = read_json(os.path.join(folder, "config.json"))
    architecture = ARCHITECTURES.get(config.get("model_type", ""))
    if architecture is None:
        raise UserError(f"'{folder}' is of the type '{config.get('model_type')}'; {', '.join(ARCHITECTURES)} are written to "
                        "GGUF")
    numpy = need_numpy()
    fields = _Fields()
    _settings(fields, config, architecture, kind, folder)
    _tokens(fields, config, folder)
    heads = config["num_attention_heads"]
    turned = {"q_proj": heads, "k_proj": config.get("num_key_value_heads", heads)} if architecture == "llama" else {}
    shapes = {name: values.shape for name, values in tensors_of(folder)}
    if config.get("tie_word_embeddings"):
        shapes.pop("lm_head.weight", None)
    at, table = 0, []
    for name, shape in shapes.items():
        code = _kind_of(shape, kind)
        table.append(_text(theirs(name)) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), code, at))
        at += -(-_size(shape, code) // ALIGNMENT) * ALIGNMENT
    partial = path + ".partial"
    try:
        with open(partial, "wb") as file:
            file.write(struct.pack("<4sIQQ", b"GGUF", 3, len(shapes), fields.count))
            file.write(fields.bytes() + b"".join(table))
            _pad(file)
            for name, values in tensors_of(folder):
                if name not in shapes:
                    continue
                module = name.split(".")[-2]
                if module in turned:
                    values = interleaved(values, turned[module])
                code = _kind_of(values.shape, kind)
                file.write(q8_0(values) if code == Q8_0 else values.astype("<f2" if code == F16 else "<f4").tobytes())
                _pad(file)
        os.replace(partial, path)
    except OSError as error:
        raise UserError(f"'{path}' cannot be written: {error.strerror}") from error
    finally:
        if os.path.exists(partial):
            os.remove(partial)
