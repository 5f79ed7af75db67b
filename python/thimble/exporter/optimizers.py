"""An optimizer of PyTorch's as settings of a recipe, groups of a network file, and state of a run."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any

import torch

from .values import CannotExport

_SAME = ("betas", "eps", "momentum", "nesterov", "amsgrad", "maximize", "dampening", "centered")
_STATE = {  # by what PyTorch calls it
    "SGD": {"momentum_buffer": "momentum"},
    "Adam": {"exp_avg": "first_moment", "exp_avg_sq": "second_moment"},
    "AdamW": {"exp_avg": "first_moment", "exp_avg_sq": "second_moment"},
}
_FRESH = "fresh=True leaves behind what it gathered"
# Steps of runs that have kept what an optimizer gathered in them.
_elsewhere: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = weakref.WeakKeyDictionary()


def settings_of(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """An optimizer of PyTorch's as settings of a recipe: {"optimizer": "adamw", "lr": ...}."""
    kind = type(optimizer).__name__
    group = optimizer.param_groups[0]
    for other in optimizer.param_groups[1:]:
        differ = [key for key in _SAME if other.get(key) != group.get(key)]
        if differ:
            raise CannotExport(
                f"groups of parameters differ in {', '.join(differ)}; rates and decays may"
            )
    for key in ("amsgrad", "maximize", "dampening", "differentiable", "centered"):
        if group.get(key):
            raise CannotExport(f"{kind} with {key}={group[key]} is not there; leave it out")
    settings: dict[str, Any] = {
        "lr": next((rate for rate in rates_of(optimizer) if rate > 0), 0.0),
        "weight-decay": group.get("weight_decay", 0.0),
        "schedule": "constant",
    }
    if kind == "SGD":
        settings.update(
            optimizer="nesterov" if group["nesterov"] else "sgd", momentum=group["momentum"]
        )
    elif kind in ("Adam", "AdamW"):
        decoupled = kind == "AdamW" or group.get("decoupled_weight_decay")
        settings.update(
            optimizer="adamw" if decoupled else "adam",
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            epsilon=group["eps"],
        )
    else:
        raise CannotExport(
            f'there is no {kind} here; choose SGD, Adam or AdamW, or settings of Thimble\'s own (optimizer="lion")'
        )
    return settings


def rates_of(optimizer) -> list[float]:
    """By group."""
    return [float(group["lr"]) for group in optimizer.param_groups]


def put_into_groups(graph, model, optimizer, shares) -> list[dict]:
    """Settings of single parameters: rates, as shares of the run's, and decays. Parameters that the optimizer does not
    have are not trained."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups, listed, foreign = [], set(), []
    for at, (group, share) in enumerate(zip(optimizer.param_groups, shares)):
        groups.append({"rate": share, "decay": group.get("weight_decay", 0.0)})
        for parameter in group["params"]:
            name = names.get(id(parameter))
            if name is None:
                foreign.append((at, tuple(parameter.shape)))
                continue
            listed.add(name)
            if name in graph.parameters:
                graph.parameters[name]["group"] = at
    if not listed:
        raise CannotExport(
            "none of the optimizer's parameters is the module's, so that nothing would be trained; make the "
            "optimizer of this module's parameters()"
        )
    if foreign:
        at, shape = foreign[0]
        raise CannotExport(
            f"group {at} of the optimizer has a parameter of shape {shape} that is not the module's"
            + (f", and {len(foreign) - 1} more are not" if len(foreign) > 1 else "")
            + "; make an optimizer of this module's parameters alone, or one module of both"
        )
    for name, parameter in graph.parameters.items():
        parameter["trained"] = parameter["trained"] and name in listed
    if not any(parameter["trained"] for parameter in graph.parameters.values()):
        raise CannotExport(
            "nothing would be trained: of the parameters that the loss is made of, the optimizer has none with "
            "requires_grad"
        )
    plain = len(groups) == 1
    return [] if plain else groups


@dataclasses.dataclass
class State:
    """State that an optimizer has already: its tensors, by the run's name of the state and by the parameter's."""

    tensors: dict[str, dict[str, torch.Tensor]] = dataclasses.field(default_factory=dict)
    counts: list = dataclasses.field(default_factory=list)  # entries "step" of parameters
    steps: int = 0

    wanted: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)  # parameters that are trained

    def put_into(self, run) -> None:
        for name, tensors in self.tensors.items():
            run.load_state(name, tensors)

    def take_from(self, run, steps) -> None:
        """As the run has left it after so many steps."""
        for name, tensors in self.tensors.items():
            for parameter, numbers in run.state(name):
                if parameter in tensors:
                    tensors[parameter].copy_(torch.from_numpy(numbers))
        for entries in self.counts:
            entries["step"] += steps

    def give_to(self, optimizer, run, steps) -> None:
        """To one that had gathered nothing before these steps. REQUIRES: the state is of that optimizer."""
        kept = _STATE[type(optimizer).__name__]
        gathered = {theirs: dict(run.state(ours)) for theirs, ours in kept.items()}
        names = {id(parameter): name for name, parameter in self.wanted.items()}
        for parameter in (p for group in optimizer.param_groups for p in group["params"]):
            name = names.get(id(parameter))
            for theirs, tensors in gathered.items():
                if name not in tensors:
                    continue
                entries = optimizer.state[parameter]
                if type(optimizer).__name__ != "SGD":
                    entries.setdefault("step", torch.tensor(float(steps)))
                entries[theirs] = torch.from_numpy(tensors[name]).to(parameter.device)


def state_of(optimizer, model, graph) -> State:
    """The state that the run begins with. Empty if the optimizer has made no step."""
    kept = _STATE[type(optimizer).__name__]
    wanted = {
        name: optimizer.state.get(parameter)
        for name, parameter in model.named_parameters()
        if graph.parameters.get(name, {}).get("trained")
    }
    state = State({ours: {} for ours in kept.values()})
    state.wanted = {n: p for n, p in model.named_parameters() if n in wanted}
    for name, entries in wanted.items():
        for theirs, ours in kept.items():
            tensor = (entries or {}).get(theirs)
            if tensor is not None:
                state.tensors[ours][name] = tensor
        if entries and "step" in entries:
            state.counts.append(entries)
    state.tensors = {name: tensors for name, tensors in state.tensors.items() if tensors}
    if not state.counts:  # of SGD, what has no momentum yet begins at zero here, too
        return state
    lacking = [name for name in wanted if any(name not in tensors for tensors in state.tensors.values())]
    if lacking:
        raise CannotExport(
            f"the optimizer has moments of some parameters, and none of '{lacking[0]}', which would begin at another "
            f"step than they; {_FRESH}"
        )
    made = sorted({int(entries["step"]) for entries in state.counts})
    if len(made) > 1:
        raise CannotExport(
            f"the optimizer has made {made[0]} steps with some parameters and {made[-1]} with others; {_FRESH}"
        )
    state.steps = made[0]
    return state


def check_not_elsewhere(optimizer) -> None:
    """CannotExport where a run has kept what the optimizer gathered in it."""
    steps = _elsewhere.get(optimizer, 0)
    if steps > 0 and not any(optimizer.state.values()):
        raise CannotExport(
            f"the optimizer made {steps} step{'s' * (steps > 1)} in a run before, which has kept what it gathered; "
            "fresh=False has it in the optimizer from run to run, and fresh=True begins anew"
        )


def leave_elsewhere(optimizer, steps: int) -> None:
    """The run has what the optimizer gathered in so many steps."""
    group = optimizer.param_groups[0]
    if type(optimizer).__name__ != "SGD" or group["momentum"]:
        _elsewhere[optimizer] = _elsewhere.get(optimizer, 0) + steps
