"""Walks both graphs of an export side by side, node by node. Nodes that cannot be mapped are collected and raised at
the end, with the caller's lines.
"""

from __future__ import annotations

import operator

import torch

from . import ops
from .decompose import arguments_of, functional, pieces_of
from .values import (
    DTYPES,
    Buffer,
    CannotExport,
    Complex,
    Known,
    Node,
    Unsupported,
    Value,
    check_same,
    known_of,
    size_of,
    where_of,
)


class Graph:
    """The contents of the file that `write` makes."""

    def __init__(self):
        self.inputs: list[dict] = []
        self.parameters: dict[str, dict] = {}
        self.buffers: dict[str, dict] = {}
        self.constants: dict[str, torch.Tensor] = {}
        self.tensors: dict[str, torch.Tensor] = {}  # first values of parameters and buffers
        self.counters: list[str] = []  # buffers that count forward passes
        self.nodes: list[Node] = []
        self.loss = ""
        self.outputs: list[dict] = []


class Reader:
    def __init__(self, model, exports, batch, targets):
        self.model, self.exports, self.batch, self.targets = model, exports, batch, targets
        self.graph = Graph()
        self.env: list[dict] = [{}, {}]  # by export: node -> cell of one item, shared by aliases
        self.faults: list[str] = []
        self.at = ""
        self.made = 0
        self.inside = ""  # the line of the op whose pieces are read
        self.settled: dict = {}  # node -> what it gives, where a handler saw further than its own

    # Entrances.

    def read(self) -> Graph:
        graphs = [export.graph_module.graph for export in self.exports]
        pairs = list(zip(*(graph.nodes for graph in graphs)))
        check_same(pairs, graphs)
        self._bind_placeholders(graphs)
        self._walk(pairs, [export.graph_module for export in self.exports])
        self._finish(pairs[-1][0])
        if self.faults:
            raise CannotExport(
                "this module has what Thimble cannot train (yet):\n  "
                + "\n  ".join(dict.fromkeys(self.faults))
            )
        return self.graph

    def _walk(self, pairs, modules):
        unread = _unread([a for a, _ in pairs])
        for a, b in pairs:
            if a in unread:
                continue
            if a.op == "call_function":
                self._call(a, b)
            elif a.op == "get_attr":
                self._bind((a, b), tuple(getattr(m, n.target) for m, n in zip(modules, (a, b))))

    def _bind(self, pair, item):
        cell = [item]
        for env, node in zip(self.env, pair):
            env[node] = cell

    def _bind_placeholders(self, graphs):
        named = dict(self.model.named_parameters(remove_duplicate=False))
        first_name, others = {}, {}
        for name, parameter in named.items():
            if id(parameter) in first_name:
                others.setdefault(first_name[id(parameter)], []).append(name)
            else:
                first_name[id(parameter)] = name
        signature = self.exports[0].graph_signature
        users = iter(self.batch.items())
        values: dict[str, Value] = {}
        for pair in zip(*([n for n in g.nodes if n.op == "placeholder"] for g in graphs)):
            node = pair[0]
            name = signature.inputs_to_parameters.get(node.name)
            if name is not None:
                if not name.startswith("model."):
                    raise CannotExport(
                        f"the loss has a parameter of its own, '{name}'; make it part of the module"
                    )
                parameter = named[name.removeprefix("model.")]
                name = first_name[id(parameter)]
                if name not in values:
                    values[name] = self._parameter(name, parameter, others.get(name, []))
                self._bind(pair, values[name])
                continue
            name = signature.inputs_to_buffers.get(node.name)
            if name is not None:
                buffer = (
                    self.model.get_buffer(name.removeprefix("model."))
                    if name.startswith("model.")
                    else None
                )
                tensor = buffer if buffer is not None else self._of_loss(name)
                self._bind(pair, Buffer(name.removeprefix("model."), tensor))
                continue
            name = signature.inputs_to_lifted_tensor_constants.get(node.name)
            if name is not None:
                self._bind(
                    pair, Known(tuple(e.constants[name].detach().clone() for e in self.exports))
                )
                continue
            name, tensor = next(users)
            self._bind(pair, self._input(name, tensor))

    def _of_loss(self, name) -> torch.Tensor:
        """A buffer of the loss: weights of classes, say."""
        export = self.exports[0]
        return export.state_dict[name] if name in export.state_dict else export.constants[name]

    def _parameter(self, name, parameter, others) -> Value:
        if parameter.dtype != torch.float32:
            self.faults.append(
                f"parameter '{name}' is {parameter.dtype}; make it float32 (precision is a setting of the run)"
            )
        shape = list(parameter.shape)
        self.graph.parameters[name] = {
            "name": name,
            "shape": shape,
            "trained": parameter.requires_grad,
            "also": others,
            "group": 0,
        }
        self.graph.tensors[name] = parameter.detach()
        return Value(name, shape, "f32")

    def _input(self, name, tensor) -> Value:
        shape = ["rows", *tensor.shape[1:]]
        dtype = DTYPES[tensor.dtype]
        self.graph.inputs.append(
            {
                "name": name,
                "dtype": dtype,
                "shape": shape,
                "target": name in self.targets or name == "labels",
            }
        )
        return Value(name, shape, dtype)

    def buffer(self, item) -> Value:
        """A buffer that the net changes as it runs: running statistics."""
        name, tensor = item.name, item.tensor
        if not any(tensor is own for own in self.model.buffers()):
            raise CannotExport(f"the loss changes a buffer of its own, '{name}'; make it part of the module")
        self.graph.buffers[name] = {"name": name, "shape": list(tensor.shape)}
        self.graph.tensors[name] = tensor.detach()
        return Value(name, list(tensor.shape), "f32")

    # Nodes.

    def _call(self, a, b):
        self.at = self.inside or where_of(a)
        try:
            if a.target is operator.getitem and not _is_open(a):
                given = self._item(a.args[0])
                lost = isinstance(given, Value)  # what was to be several, and is not there
                self._bind((a, b), self._stand_in(a, b) if lost else given[a.args[1]])
                return
            name = a.target.name() if hasattr(a.target, "name") else str(a.target)
            items = [self._item(node) for node in a.all_input_nodes]
            if any(_is_lost(node, item) for node, item in zip(a.all_input_nodes, items)):
                self._bind((a, b), self._stand_in(a, b))  # it was said where it began
            elif _is_open(a) and not _is_known(a.target, items):
                raise Unsupported("its size, or a number that Python reads, depends on numbers in a tensor")
            elif a in self.settled:
                self._bind((a, b), self.settled[a])
            elif name in _WRAPPERS:
                self._inline(name, a, b)
            else:
                self._bind((a, b), self._result(name, a, b))
        except Unsupported as fault:
            self.faults.append(
                f"{name if a.target is not operator.getitem else 'getitem'}: {fault}"
                + (f" ({self.at})" if self.at else "")
            )
            self._bind((a, b), self._stand_in(a, b))

    def _inline(self, name, a, b):
        """A part of the graph that is wrapped into one of its own, since gradients are off there, say."""
        at = next(i for i, item in enumerate(a.args) if isinstance(self._item(item), tuple))
        modules = self._item(a.args[at])
        inner = list(zip(*(module.graph.nodes for module in modules)))
        check_same(inner, [module.graph for module in modules])
        given = iter(zip(a.args[at + 1 :], b.args[at + 1 :]))
        for pair in inner:
            if pair[0].op == "placeholder":
                for env, node, argument in zip(self.env, pair, next(given)):
                    env[node] = env[argument]
        self._walk(inner, modules)
        results = [self._item(leaf) for leaf in inner[-1][0].args[0]]
        if "set_grad" in name and not a.args[0]:
            results = [
                self.emit("detach", [item], item.shape, item.dtype)
                if isinstance(item, Value) and item.dtype == "f32"
                else item
                for item in results
            ]
        self._bind((a, b), results)

    def _of_pieces(self, a, b, fault):
        """The result of an op, computed by its decomposition. Raises `fault` where there is none."""
        graphs = [pieces_of(node, ops.HANDLERS) for node in (a, b)]
        pairs = list(zip(*(graph.graph.nodes for graph in graphs))) if all(graphs) else []
        if not pairs or any(x.target != y.target for x, y in pairs if x.op == "call_function"):
            raise fault
        entrances = [pair for pair in pairs if pair[0].op == "placeholder"]
        for pair, given in zip(entrances, zip(arguments_of(a), arguments_of(b))):
            for env, node, argument in zip(self.env, pair, given):
                env[node] = env[argument]
        known, outer, self.inside = len(self.faults), self.inside, self.inside or self.at
        self._walk(pairs, graphs)
        self.at, self.inside = self.inside, outer
        if len(self.faults) > known:
            piece = self.faults[known].removesuffix(f" ({self.at})")
            del self.faults[known:]
            raise Unsupported(f"{fault}, and of what it is made of, {piece}") if isinstance(fault, _NoSuchOp) else fault
        made = pairs[-1][0].args[0]
        return self._item(made) if isinstance(made, torch.fx.Node) else [self._item(one) for one in made]

    def _item(self, node):
        return self.env[0][node][0] if isinstance(node, torch.fx.Node) else node

    def _result(self, name, a, b):
        items = [self.env[0][node][0] for node in a.all_input_nodes]
        self._check_written(name, a)
        if any(argument.is_out for argument in getattr(a.target, "_schema", _NO_SCHEMA).arguments):
            return self._written(a, b, items)
        if _is_known(a.target, items):
            return self._fold(a, b)
        handler = ops.HANDLERS.get(name)
        in_place = handler is None and ops.HANDLERS.get(_out_of_place(name))
        result = self._handled(handler or in_place, a, b)
        if handler is None and _out_of_place(name) != name:
            self.env[0][a.args[0]][0] = result
            base = self._put_back(a.args[0], result)
            self._check_in_place(a, a.args[0])
            while base is not None:
                self._check_in_place(a, base)
                base = self._put_back(base, self.env[0][base][0])
        return result

    def _written(self, a, b, items):
        """Of an op that writes into a tensor that it is given, which then is what the op gives."""
        written, op = a.kwargs.get("out"), functional(a.target)
        if not isinstance(written, torch.fx.Node) or op is None:
            raise Unsupported("writes into tensors that it is given (out=...); use what it returns")
        if _is_known(op, [item for node, item in zip(a.all_input_nodes, items) if node is not written]):
            return self._fold(a, b)
        result = self._handled(ops.HANDLERS.get(op.name()), a, b)
        self.env[0][written][0] = result
        self._check_in_place(a, written)
        return result

    def _handled(self, handler, a, b):
        """By its handler; where there is none, or it cannot, by what the op is made of."""
        before = len(self.graph.nodes)
        try:
            if handler is None:
                raise _NoSuchOp("there is no such op here")
            return handler(self, ops.Arguments(self, a, b))
        except Unsupported as fault:
            del self.graph.nodes[before:]
            return self._of_pieces(a, b, fault)
        except (TypeError, IndexError, ValueError, AttributeError, KeyError) as error:
            del self.graph.nodes[before:]
            fault = Unsupported(f"with arguments that it is not known here with ({type(error).__name__}: {error})")
            return self._of_pieces(a, b, fault)

    def _check_written(self, name, node):
        """Numbers that a net keeps from step to step would be those of the first in all of them."""
        if ops.changes_statistics(name) or not isinstance(node.target, torch._ops.OpOverload):
            return
        given = dict(zip((argument.name for argument in node.target._schema.arguments), node.args))
        given.update(node.kwargs)
        for argument in node.target._schema.arguments:
            written = given.get(argument.name)
            if not (argument.alias_info and argument.alias_info.is_write and isinstance(written, torch.fx.Node)):
                continue
            kept = self._item(written)
            if isinstance(kept, Buffer) and (kept.tensor.is_floating_point() or argument.is_out):
                raise Unsupported(_spectral(self.model, kept.name) or _changes(kept.name))

    def _put_back(self, part, changed):
        """Where a slice is changed, what it is a slice of has that in its place: which node, or None."""
        if not _is_slice(part):
            return None
        base, cell = part.args[0], self.env[0][part.args[0]]
        whole, where = self.value(cell[0]), part.args[1:]
        if part.target is torch.ops.aten.select.int:
            axis, index = where[0] % len(whole.shape), where[1]
            where = (axis, index, index + 1 or None)
            changed = self.value(changed)
            one = whole.shape[:axis] + [1] + whole.shape[axis + 1 :]
            changed = self.emit("reshape", [changed], one, changed.dtype)
        self.env[0][base][0] = ops.with_part(self, whole, where, changed)
        return base

    def _check_in_place(self, node, changed):
        """A view of what is changed, read later, would have to change too."""
        order = {n: i for i, n in enumerate(node.graph.nodes)}
        own = _is_slice(changed)
        base = changed.args[0] if ops.is_view(changed) and not own else None
        views = [user for user in changed.users if ops.is_view(user) and order[user] < order[node]]
        for other in views + ([base] if base is not None else []):
            if (
                any(order[user] > order[node] for user in other.users)
                and other is not node.args[0]
                and self.env[0][other] is not self.env[0][changed]
            ):
                raise Unsupported(
                    "changes a tensor in place that another view of it is read of later; write it out of place"
                )

    def _fold(self, a, b):
        """Of known tensors alone: computed here, once for each number of rows."""
        results = []
        for at, node in enumerate((a, b)):

            def number(item, at=at):
                item = known_of(self.env[at][item][0])
                if isinstance(item, list):
                    return [one.tensors[at] for one in item]
                return (
                    item.tensors[at]
                    if isinstance(item, Known)
                    else item[at] if isinstance(item, tuple) else item
                )

            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), number)
            with torch.no_grad():
                results.append(node.target(*args, **kwargs))
        self._count(a)
        if isinstance(results[0], torch.Tensor):
            return Known(tuple(results))
        if isinstance(results[0], (int, float)) and results[0] != results[1]:
            raise Unsupported("a number that depends on how many rows there are")
        if isinstance(results[0], (tuple, list)):
            return [
                Known(pair) if isinstance(pair[0], torch.Tensor) else pair[0]
                for pair in zip(*results)
            ]
        return results[0]

    def _count(self, node):
        """Batch norms count their forward passes in a buffer."""
        if node.args and isinstance(node.args[0], torch.fx.Node):
            item = self.env[0][node.args[0]][0]
            if (
                isinstance(item, Buffer)
                and not item.tensor.is_floating_point()
                and "add_" in str(node.target)
            ):
                self.graph.counters.append(item.name)

    def _stand_in(self, a, b):
        """So that what follows a fault is looked at too."""

        def one(x, y):
            return Value(
                "?", [size_of(p, q) for p, q in zip(x.shape, y.shape)], DTYPES.get(x.dtype, "f32")
            )

        try:
            first, second = a.meta["val"], b.meta["val"]
            if isinstance(first, (tuple, list)):
                return [one(x, y) for x, y in zip(first, second)]
            return one(first, second)
        except (Unsupported, KeyError, AttributeError):
            return Value(_LOST, [], "f32")

    def emit(self, op, inputs, shape, dtype="f32", **attrs) -> Value:
        return self.emit_all(op, inputs, [(shape, dtype)], **attrs)[0]

    def emit_all(self, op, inputs, types, **attrs) -> list[Value]:
        self.made += 1
        values = [
            Value(f"%{self.made}" + (f".{k}" if len(types) > 1 else ""), list(shape), dtype)
            for k, (shape, dtype) in enumerate(types)
        ]
        self.graph.nodes.append(
            Node(
                op,
                [self._operand(item) for item in inputs],
                [value.name for value in values],
                {name: ops.finite(value) for name, value in attrs.items() if value is not None},
                self.at,
                [value.shape for value in values],
            )
        )
        return values

    def _operand(self, item):
        if isinstance(item, Value):
            return item.name
        if isinstance(item, (Known, Buffer)):
            return self.value(item).name
        return item

    def value(self, item) -> Value:
        """The tensor as a value of the graph, whatever it is."""
        if isinstance(item, Value):
            return item
        item = known_of(item)
        if isinstance(item, (int, float)):
            item = Known((torch.tensor(item), torch.tensor(item)))
        tensor, axis = item.one_row()
        if tensor.dtype not in DTYPES and not tensor.is_floating_point():
            raise Unsupported(f"numbers of type {tensor.dtype}")
        tensor = (
            tensor.to(torch.float32)
            if tensor.is_floating_point()
            else tensor.to(torch.uint8 if tensor.dtype == torch.bool else torch.int32)
        )
        tensor = tensor.contiguous().clone()
        name = next(
            (
                n
                for n, t in self.graph.constants.items()
                if t.dtype == tensor.dtype and torch.equal(t, tensor)
            ),
            None,
        )
        if name is None:
            name = f"constant.{len(self.graph.constants)}"
            self.graph.constants[name] = tensor
        value = Value(name, list(tensor.shape), DTYPES[tensor.dtype])
        if axis is None:
            return value
        if value.shape[axis] != 1:  # k of an axis of rows*k
            apart = value.shape[:axis] + [1] + value.shape[axis:]
            value = self.emit("reshape", [value], apart, value.dtype)
            apart = apart[:axis] + ["rows"] + apart[axis + 1 :]
            value = self.emit("expand", [value], apart, value.dtype)
            return self.emit("reshape", [value], item.shape, value.dtype)
        return self.emit("expand", [value], item.shape, value.dtype)

    # Exits.

    def _finish(self, output):
        leaves = [
            self.env[0][leaf][0] if isinstance(leaf, torch.fx.Node) else leaf
            for leaf in torch.utils._pytree.tree_leaves(output.args)
        ]
        mutated = len(self.exports[0].graph_signature.buffers_to_mutate)
        loss, *rest = leaves[mutated:]
        if not isinstance(loss, Value) or any(extent != 1 for extent in loss.shape):
            self.faults.append(
                "the loss is not one number: it is "
                + (str(loss.shape) if isinstance(loss, Value) else type(loss).__name__)
            )
            return
        self.graph.loss = loss.name
        for at, value in enumerate(rest):
            if isinstance(value, Value):
                self.graph.outputs.append(
                    {"name": "output" if at == 0 else f"output{at}", "value": value.name}
                )


# Ops whose argument is a graph.
_WRAPPERS = ("wrap_with_set_grad_enabled", "wrap_with_autocast")


_NO_SCHEMA = torch.ops.aten.alias.default._schema  # of what is no op: nothing is written


def _changes(name) -> str:
    return (
        f"changes the buffer '{name}' from step to step; only the statistics of batch norms can be; leave it out, or "
        "call eval() of what changes it"
    )


def _spectral(model, name) -> str:
    """A note on the buffers 'layer.weight_u' and 'layer.parametrizations.weight.0._u'. "" for others."""
    owner, _, buffer = name.rpartition(".")
    module = model.get_submodule(owner)
    if type(module).__name__ == "_SpectralNorm":
        layer, _, weight = owner.removesuffix(".0").rpartition(".")
        layer = layer.removesuffix("parametrizations").removesuffix(".")
        off = f"parametrize.remove_parametrizations(layer, '{weight}')"
    elif any(type(hook).__name__ == "SpectralNorm" for hook in module._forward_pre_hooks.values()):
        layer, weight = owner, buffer.rpartition("_")[0]
        off = f"remove_spectral_norm(layer, '{weight}')"
    else:
        return ""
    return (
        f"spectral_norm of '{'.'.join(filter(None, (layer, weight)))}' changes its buffers by a power iteration in every "
        f"forward pass; only the statistics of batch norms can be changed; call torch.nn.utils.{off}, or use weight_norm"
    )


_LOST = "??"  # the name of what is not there, and of which not even the shape is known


def _is_lost(node, item) -> bool:
    """Whether nothing can be said of what is made of an input but that the input is not there."""
    return isinstance(item, Value) and (item.name == _LOST or _is_open(node))


class _NoSuchOp(Unsupported):
    """There is no handler of an op; what it is made of may say more."""


def _is_known(target, items) -> bool:
    """Whether what an op gives, of such inputs, can be computed here."""
    given = any(isinstance(item, (Value, Complex)) for item in items)
    name = target.name() if hasattr(target, "name") else ""
    return not given and not ops.draws(target) and not ops.changes_statistics(name)


def _is_open(node) -> bool:
    """Whether what a node gives has sizes that nobody knows before it runs, or is such a number."""
    for leaf in torch.utils._pytree.tree_leaves(node.meta.get("val")):
        sizes = leaf.shape if isinstance(leaf, torch.Tensor) else [leaf]
        if any(isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)) for size in sizes):
            return True
    return False


def _unread(nodes) -> set:
    """Nodes without effect: assertions about numbers, and computations for those alone."""
    unread: set = set()
    for node in reversed(nodes):
        if node.op == "call_function" and all(user in unread for user in node.users):
            if _leaves_no_trace(node.target):
                unread.add(node)
    return unread


def _leaves_no_trace(target) -> bool:
    """Whether an op does nothing but give its result."""
    if not isinstance(target, torch._ops.OpOverload):
        return getattr(target, "__module__", "") == "_operator"
    asserts = target.name().startswith(("aten::_assert", "aten::sym_constrain"))
    return asserts or not (target._schema.is_mutable or ops.changes_statistics(target.name()))


def _is_slice(node) -> bool:
    return node.op == "call_function" and node.target in (
        torch.ops.aten.slice.Tensor,
        torch.ops.aten.select.int,
    )


def _out_of_place(name: str) -> str:
    """aten::relu_ -> aten::relu; aten::add_.Tensor -> aten::add.Tensor."""
    base, dot, overload = name.partition(".")
    return base.removesuffix("_") + dot + overload
