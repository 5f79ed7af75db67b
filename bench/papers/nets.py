"""The papers' nets as commands: what is planned, what is trained, and how techniques are typed.

Flags have one order, so that two experiments that want the same run have the same command.
"""
import dataclasses

NULL = ("--device", "null")


@dataclasses.dataclass(frozen=True)
class Net:
    title: str
    planned: tuple  # on the null device: no kernels, no scratch, the same bytes on every machine
    trained: tuple
    schedule: tuple = ()  # of sweeps: short
    needs: tuple = ()
    metric: str = "test_accuracy"
    sparse_flags: tuple = ()  # beside --density, where nonzeros move
    microbatches: tuple = ()


WRN = Net("WRN-28-2, CIFAR-10", ("wrn-28-2", "--batch", "100"), ("recipes/wrn-28-2-cifar10.toml",),
          ("--epochs", "30", "--milestones", "9,18,24"), ("cuda", "cifar10"),
          sparse_flags=("--prune-target", "20000"), microbatches=(100, 50, 20, 10, 5, 2))
# Short runs on the CPU: the same code on a small net.
DIGITS = Net("WRN-10-1, digits", ("wrn-10-1", "--data", "digits", "--batch", "50"),
             ("wrn-10-1", "--data", "digits", "--batch", "50", "--weight-decay", "5e-4"),
             ("--epochs", "1"), microbatches=(50, 10, 2))
# Trained in minutes on two cores of a CPU: five epochs.
SMALL_STEP = ("wrn-16-1", "--data", "cifar10", "--batch", "100", "--optimizer", "nesterov")
SMALL_WRN = Net("WRN-16-1, CIFAR-10", ("wrn-16-1", "--batch", "100", "--optimizer", "nesterov"),
                (*SMALL_STEP, "--lr", "0.1", "--weight-decay", "5e-4", "--augment"),
                ("--epochs", "5", "--schedule", "cosine"), ("cpu", "cifar10"),
                sparse_flags=("--prune-target", "2000"), microbatches=(100, 10))
# Planned: the published net, 32 rows of 125 tokens. Trained: a smaller one, for 29,000 sentences.
TRANSLATION = Net("DynamicConv, German to English", ("dynamicconv-iwslt", "--optimizer", "adam"),
                  ("recipes/multi30k-de-en.toml",),
                  ("--steps", "3500", "--schedule", "cosine", "--warmup", "800 steps",
                   "--save-every", "100 steps"),
                  ("cuda", "multi30k"), metric="test_bleu", microbatches=(32, 8))
TOKENS = 125  # of a planned row; trainings count a microbatch in tokens

# Chen et al.: four layers of 1,024, batch 64, 5,000 classes.
LSTM = ("lstm", "--layers", "4", "--hidden", "1024", "--batch", "64", "--classes", "5000")
# These make its loss one of every time step, as theirs is. Without them it is of the last one alone.
EVERY_STEP = ("--predicts", "targets")


def image_net(quick):
    return DIGITS if quick else WRN


def techniques(net, density=None, static=False, precision=None, rounding=None, master=False,
               loss_scale=None, microbatch=None, norm=None, fold=False, state_bits=None,
               trained=False):
    """Flags of a step; None: as it is without. `trained`: of the net that is trained, which may
    count otherwise than the one that is planned."""
    flags = []
    if microbatch and trained and net is TRANSLATION:
        flags += ["--microbatch-tokens", str(microbatch * TOKENS)]
    elif microbatch:
        flags += ["--microbatch", str(microbatch)]
    if norm:
        flags += ["--norm", norm]
    if precision:
        flags += ["--precision", precision]
    if rounding:
        flags += ["--rounding", rounding]
    if master:
        flags += ["--master"]
    if loss_scale:
        flags += ["--loss-scale", loss_scale]
    if fold:
        flags += ["--optimizer", "sgd", "--fold"]
    if state_bits:
        flags += ["--state-bits", str(state_bits)]
    if density:
        flags += ["--density", density]
        flags += ["--sparsity", "static"] if static else net.sparse_flags
    return tuple(flags)
