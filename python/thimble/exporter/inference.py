"""A trained module as an ONNX file for inference, by PyTorch's own exporter, and held against onnxruntime where that is
installed."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import tempfile
import warnings

import torch
from torch import nn

from .untouched import untouched
from .values import CannotExport

_CLOSE = 1e-5  # of the largest number of an output


class _Flat(nn.Module):
    """The module on flat tensors of those names; its outputs are the tensors among what it gives."""

    def __init__(self, model, layout, names):
        super().__init__()
        self.model, self.layout, self.names = model, layout, names

    def forward(self, *tensors):
        given = dict(zip(self.names, tensors))
        arguments, keywords, _ = self.layout.call([given.get(name) for name in self.layout.names])
        made = self.model(*arguments, **keywords)
        if hasattr(made, "to_tuple"):  # of transformers
            made = made.to_tuple()
        leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(made) if isinstance(leaf, torch.Tensor)]
        return leaves[0] if len(leaves) == 1 else tuple(leaves)


def write_onnx(model, layout, example: dict, path: str) -> None:
    """`example`: tensors by name, a few rows, without those of the loss alone. CannotExport where PyTorch's exporter
    cannot, or where what it wrote is not what the module computes. The number of rows is open where it can be."""
    names = list(example)
    with untouched(model, None):
        model.eval()
        tensors = tuple(example.values())
        flat = _Flat(model, layout, names).eval()
        with torch.no_grad():
            expected = flat(*tensors)
        expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(path))) as folder:
            written = os.path.join(folder, os.path.basename(path))
            _export(flat, tensors, names, written, len(expected))
            _compare(written, names, tensors, expected)
            for file in os.listdir(folder):
                os.replace(os.path.join(folder, file), os.path.join(os.path.dirname(os.path.abspath(path)), file))


def _export(flat, tensors, names, path, outputs):
    said = {"input_names": names, "output_names": ["output"] if outputs == 1 else [f"output{i}" for i in range(outputs)]}
    rows = torch.export.Dim("rows", min=1)
    ways = [
        {"dynamo": True, "dynamic_shapes": (tuple({0: rows} for _ in tensors),), "external_data": False},
        {"dynamo": False, "dynamic_axes": {name: {0: "rows"} for name in names}},
        {"dynamo": True, "external_data": False},
    ]
    failed = None
    for way in ways:
        known = inspect.signature(torch.onnx.export).parameters
        settings = {key: value for key, value in way.items() if key in known}
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                torch.onnx.export(flat, tensors, path, **said, **settings)
            return
        except Exception as error:  # of many kinds, all of them about the module
            failed = failed or error
    first = next((line.strip() for line in str(failed).splitlines() if line.strip()), type(failed).__name__)
    raise CannotExport(f"PyTorch's ONNX exporter cannot write the module: {first[:300]}") from failed


def _compare(path, names, tensors, expected):
    try:
        import onnxruntime
    except ImportError:
        return
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    taken = {one.name for one in session.get_inputs()}  # an input that nothing follows from is none
    fed = {name: tensor.detach().cpu().numpy() for name, tensor in zip(names, tensors) if name in taken}
    for made, tensor in zip(session.run(None, fed), expected):
        theirs = tensor.detach().cpu()
        apart = (torch.from_numpy(made).double() - theirs.double()).abs().max().item() if theirs.numel() else 0.0
        if not apart <= _CLOSE * max(1.0, theirs.abs().max().item() if theirs.numel() else 0.0):  # nan, too
            raise CannotExport(
                f"the ONNX file that PyTorch's exporter wrote gives {apart:.1e} other numbers than the module; nothing "
                "was left there"
            )
