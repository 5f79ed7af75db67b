"""A cell: one figure that somebody asks for, as the command that prints it."""
import dataclasses
import hashlib
import shlex


@dataclasses.dataclass(frozen=True)
class Cell:
    experiment: str  # "S2-b"
    name: str  # where it stands in its table: "dynamic 0.3, planned"
    verb: str  # plan, profile or train
    words: tuple  # model or recipe, and flags that say what a step is
    schedule: tuple = ()  # flags of a training alone
    seeds: tuple = (None,)  # None: nothing is drawn
    needs: tuple = ()  # of "cuda", "cifar10", "multi30k"
    # Alternatives to go on with, best first: the first that has a plan on the device is taken.
    ladder: tuple = ()
    # Cells of the same experiment; --memory is the geometric mean of their arenas.
    budget: tuple = ()
    family: tuple = ()  # what the program must be able to plan; empty: the model by itself
    translates: bool = False  # judged by the BLEU of its translations
    timed: bool = False  # some steps for their time and memory: no tests, no checkpoints on the way

    @property
    def model(self):
        return self.words[0]


def plan(experiment, name, words, **more):
    return Cell(experiment, name, "plan", (*words, "--device", "null"), **more)


def training(experiment, name, net, flags=(), seeds=(1,), **more):
    """Of a net at its short schedule."""
    return Cell(experiment, name, "train", (*net.trained, *flags), net.schedule, seeds, net.needs,
                translates=net.metric == "test_bleu", **more)


def command(verb, words, more=()):
    """As one would type it; without where data, costs and checkpoints lie, which change nothing."""
    return shlex.join(["thimble", verb, *words, *more])


def slug(text):
    """A file name."""
    plain = "".join(c if c.isalnum() or c in ".-" else "-" for c in text.lower())
    while "--" in plain:
        plain = plain.replace("--", "-")
    return plain.strip("-")


# Flags with a value that have no kernels of their own.
NO_KERNELS = ("--planner", "--memory", "--fit", "--sparsity", "--prune-target")


def step_of(words):
    """The words that decide which kernels run. Steps with the same words share measured times."""
    return [word for i, word in enumerate(words)
            if word not in NO_KERNELS and words[i - 1] not in NO_KERNELS]


def share_of(cell, shares):
    """Which of so many sittings at once trains the cell: cells of one step have the same one. Of a
    ladder, the rung is not chosen yet."""
    text = "ladder" if cell.ladder else shlex.join(step_of(cell.words))
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % shares


def run_name(experiment, cell_name, text, seed):
    """Of a working folder: readable, and another one for every command."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{experiment}-{slug(cell_name)}-{digest}" + (f"-seed{seed}" if seed is not None else "")
