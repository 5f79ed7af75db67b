"""A cell: one figure that somebody asks for, as the command that prints it."""
import dataclasses
import hashlib


@dataclasses.dataclass(frozen=True)
class Cell:
    experiment: str  # "S2-b"
    name: str  # where it stands in its table: "dynamic, density 0.3"
    verb: str  # plan, profile or train
    words: tuple  # model or recipe, and flags that say what a step is
    schedule: tuple = ()  # flags of a training alone
    seeds: tuple = (None,)  # None: nothing is drawn
    # Alternatives to `words`, best first: the first that has a plan on the device at hand is taken.
    ladder: tuple = ()
    needs: tuple = ()  # of "cuda", "cifar10"
    why_not: str = ""  # why it cannot run yet, where that is known beforehand

    @property
    def model(self):
        return self.words[0]


def command(verb, words, more=()):
    """As one would type it; without where data, costs and checkpoints are, which change no figure."""
    return " ".join(["thimble", verb, *words, *more])


def slug(cell_name):
    """A file name."""
    plain = "".join(c if c.isalnum() or c in ".-" else "-" for c in cell_name.lower())
    while "--" in plain:
        plain = plain.replace("--", "-")
    return plain.strip("-")


def run_name(experiment, cell_name, text, seed):
    """Of a working folder: readable, and another one for every command."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{experiment}-{slug(cell_name)}-{digest}" + (f"-seed{seed}" if seed is not None else "")
