"""S2-c: 16 bits: each rounding, with and without a scaled loss."""
import statistics

from book import NOT_RUN, megabytes, table
from cells import plan, training
from nets import TRANSLATION, image_net, techniques

TITLE = "16 bits"
ROUNDINGS = ("nearest", "stochastic", "kahan", "master")
# Of each precision, its own habit first.
SCALES = {"fp16": ("dynamic", "none"), "bf16": ("none", "dynamic")}


def name(net, precision, rounding, scale, what):
    if precision == "fp32":
        return f"{net.title}, fp32, {what}"
    return f"{net.title}, {precision}, {rounding}, loss scale {scale}, {what}"


def settings():
    yield "fp32", None, None
    for turn in (0, 1):
        for rounding in ROUNDINGS:
            for precision, scales in SCALES.items():
                yield precision, rounding, scales[turn]


def flags(net, precision, rounding, scale):
    if precision == "fp32":
        return ()
    usual = "dynamic" if precision == "fp16" else "none"
    return techniques(net, precision=precision, master=rounding == "master",
                      rounding=rounding if rounding in ("stochastic", "kahan") else None,
                      loss_scale=scale if scale != usual else None)


def cells(quick=False):
    found = []
    for net in (image_net(quick), TRANSLATION):
        for what in ("planned", "trained"):
            for setting in settings():
                title, words = name(net, *setting, what), flags(net, *setting)
                found.append(plan("S2-c", title, (*net.planned, *words)) if what == "planned"
                             else training("S2-c", title, net, words))
    return found


def page(book, quick=False):
    lines = ["Weights, gradients, momentum and activations in 16 bits; `master` keeps weights in "
             "32. Planned on the null device, "
             "everything kept; trained as in S2-b."]
    for net in (image_net(quick), TRANSLATION):
        rows = []
        for setting in sorted(settings(), key=lambda s: (s[0] != "fp32", s[0] != "fp16", s[0])):
            precision, rounding, scale = setting
            rows.append([precision, rounding or "", scale or "",
                         book.say("S2-c", name(net, *setting, "planned"),
                                  lambda f: megabytes(f["arena_bytes"])),
                         book.score("S2-c", name(net, *setting, "trained"), net),
                         book.command("S2-c", name(net, *setting, "trained"))])
        lines += ["", f"**{net.title}**", "",
                  *table(["precision", "rounding", "loss scale", "arena", "score", "command"],
                         rows)]
    return lines + ["", said(book, quick)]


def said(book, quick):
    """A statement of Sohoni et al., and the records of it."""
    def of_fp32(net, precision, rounding):
        setting = (precision, rounding, SCALES[precision][0])
        dense, small = (book.scores("S2-c", name(net, *which, "trained"), net.metric)
                        for which in (("fp32", None, None), setting))
        scale, unit = (100, " %") if net.metric == "test_accuracy" else (1, " BLEU")
        if not dense or not small:
            return NOT_RUN
        return f"{scale * (statistics.mean(small) - statistics.mean(dense)):+.2f}{unit}"
    net = image_net(quick)
    bf16 = ", ".join(f"{rounding} {of_fp32(net, 'bf16', rounding)}" for rounding in ROUNDINGS)
    return ("**Sohoni et al.**: fp16 loses nothing on WRN-28-2 and 0.15 BLEU on DynamicConv; bf16 "
            "without master weights needs stochastic rounding or Kahan summation. **Here**, by "
            f"the tables, against fp32: fp16 {of_fp32(net, 'fp16', 'nearest')} and "
            f"{of_fp32(TRANSLATION, 'fp16', 'nearest')}; bf16 on WRN-28-2: {bf16}.")
