"""An op that has no counterpart here, as the ops that PyTorch itself makes it of."""

from __future__ import annotations

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree


def pieces_of(node, handled) -> torch.fx.GraphModule | None:
    """The graph of a node: its placeholders are the tensors among its arguments, in their order. Ops whose
    names are in `handled` stay whole. None: the op has no known decomposition."""
    target = functional(node.target)
    if target is None:
        return None
    leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
    tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.fx.Node)]
    if not all(isinstance(leaves[i].meta.get("val"), torch.Tensor) for i in tensors):
        return None
    table = {
        op: pieces
        for op, pieces in torch._decomp.core_aten_decompositions().items()
        if not (hasattr(op, "name") and op.name() in handled)
    }

    def call(*given):
        filled = list(leaves)
        for i, tensor in zip(tensors, given):
            filled[i] = tensor
        args, kwargs = pytree.tree_unflatten(filled, spec)
        return target(*args, **kwargs)

    try:
        graph = make_fx(call, decomposition_table=table)(*(leaves[i].meta["val"] for i in tensors))
    except Exception:  # of many kinds; what there is to say is that the op is not there
        return None
    called = [inner.target for inner in graph.graph.nodes if inner.op == "call_function"]
    return None if target in called else graph


def arguments_of(node) -> list:
    """The nodes that the placeholders of the pieces stand for."""
    leaves = pytree.tree_leaves((node.args, node.kwargs))
    return [leaf for leaf in leaves if isinstance(leaf, torch.fx.Node)]


def functional(target):
    """The op, or that which gives what an op in place, or one that writes into a tensor (`out`), leaves behind."""
    if not isinstance(target, torch._ops.OpOverload):
        return None
    if not target._schema.is_mutable:
        return target
    name = target._schema.name.partition("::")[2]
    packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
    if name.endswith("_"):
        return getattr(packet, target._overloadname, None)
    given = _inputs(target)
    return next((op for op in map(packet.__getattr__, packet.overloads()) if _gives(op, given)), None)


def _inputs(target) -> list:
    return [(a.name, str(a.type)) for a in target._schema.arguments if not a.is_out]


def _gives(op, given) -> bool:
    return not op._schema.is_mutable and _inputs(op) == given
