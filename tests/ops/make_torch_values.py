#!/usr/bin/env python3
"""Windows, resampling, padding and ignored labels as PyTorch computes them: writes torch_values.json beside this file.

usage: make_torch_values.py     Python with torch; torch_values_test.cpp reads the result and needs none

Images are [N,H,W,C] here and [N,C,H,W] there. Numbers of inputs follow from their places, so that they need not be
stored; those of outputs are as torch prints them, in double.
"""
import json
import pathlib

import torch
import torch.nn.functional as F

# As in torch_values_test.cpp: element e of input i is ((e * factor) % modulus - half) / 4.
DRAWS = [(37, 101, 50), (29, 23, 11), (53, 97, 48)]


def draw(which, shape):
    factor, modulus, half = DRAWS[which]
    count = torch.Size(shape).numel()
    numbers = [((e * factor) % modulus - half) / 4 for e in range(count)]
    return torch.tensor(numbers, dtype=torch.float64).reshape(shape)


def images(x):
    return x.permute(0, 3, 1, 2)


def back(y):
    return y.permute(0, 2, 3, 1)


CASES = []


def add(op, shapes, attrs, *outputs):
    CASES.append({"op": op, "inputs": [list(shape) for shape in shapes], "attrs": attrs,
                  "outputs": [[float(f"{number:.12g}") for number in y.detach().double().flatten().tolist()]
                              for y in outputs]})


def resample():
    sizes = [(7, 5, 3, 2), (5, 7, 5, 11), (6, 4, 6, 3), (3, 8, 9, 8), (1, 5, 4, 1), (11, 1, 7, 3), (13, 3, 5, 7)]
    for mode in ("nearest", "bilinear", "corners", "average"):
        for h, w, to_h, to_w in sizes:
            x = draw(0, (1, h, w, 1)).requires_grad_()
            if mode == "average":
                y = F.adaptive_avg_pool2d(images(x), (to_h, to_w))
            elif mode == "nearest":
                y = F.interpolate(images(x), size=(to_h, to_w), mode="nearest")
            else:
                y = F.interpolate(images(x), size=(to_h, to_w), mode="bilinear", align_corners=mode == "corners")
            y = back(y)
            attrs = {"h": to_h, "w": to_w, "mode": mode}
            add("resample", [x.shape], attrs, y)
            dy = draw(0, y.shape)
            (dx,) = torch.autograd.grad(y, x, dy)
            add("resample_backward", [y.shape], {**attrs, "h": h, "w": w}, dx)
    for factor in (2, 3):
        x = draw(0, (1, 3, 2, 2))
        add("upsample2d", [x.shape], {"factor": factor}, back(F.interpolate(images(x), scale_factor=factor)))


def pools():
    for h, w, kernel, stride, pad in [(7, 5, 3, 2, 1), (8, 7, 2, 2, 0), (7, 11, 3, 3, 0), (5, 5, 5, 1, 2),
                                      (6, 9, 4, 3, 2), (3, 3, 3, 1, 0), (7, 7, 2, 3, 1), (1, 1, 1, 1, 0)]:
        attrs = {"kernel": kernel, "stride": stride, "pad": pad}
        x = draw(0, (1, h, w, 2)).requires_grad_()
        y = back(F.avg_pool2d(images(x), kernel, stride, pad))
        add("avg_pool", [x.shape], attrs, y)
        there = {**attrs, "in_h": h, "in_w": w}
        (dx,) = torch.autograd.grad(y, x, draw(0, y.shape))
        add("avg_pool_backward", [y.shape], there, dx)
        y, index = F.max_pool2d(images(x), kernel, stride, pad, return_indices=True)
        # There the place in the image, here that in the window.
        rows, columns = index // w, index % w
        tops = (torch.arange(y.shape[2]) * stride - pad).reshape(1, 1, -1, 1)
        lefts = (torch.arange(y.shape[3]) * stride - pad).reshape(1, 1, 1, -1)
        add("max_pool", [x.shape], attrs, back(y), back((rows - tops) * kernel + columns - lefts))


def convolutions():
    for h, w, c, out, kernel, stride, pad, dilation, groups in [
            (7, 5, 2, 3, (3, 3), (1, 1), (1, 1), (1, 1), 1), (8, 7, 2, 4, (3, 2), (2, 3), (0, 1), (1, 1), 2),
            (9, 8, 4, 4, (3, 3), (1, 1), (2, 2), (2, 2), 4), (6, 7, 1, 2, (1, 4), (1, 2), (0, 3), (1, 1), 1),
            (7, 9, 2, 2, (2, 3), (2, 1), (1, 0), (3, 2), 1), (5, 5, 1, 1, (5, 5), (1, 1), (0, 0), (1, 1), 1)]:
        x = draw(0, (1, h, w, c)).requires_grad_()
        weight = draw(1, (out, *kernel, c // groups)).requires_grad_()
        y = back(F.conv2d(images(x), images(weight), None, stride, pad, dilation, groups))
        attrs = {"stride": stride[0], "stride_w": stride[1], "pad": pad[0], "pad_w": pad[1],
                 "dilation": dilation[0], "dilation_w": dilation[1], "groups": groups}
        add("conv2d", [x.shape, weight.shape], attrs, y)
        dx, dw = torch.autograd.grad(y, (x, weight), draw(1, y.shape), retain_graph=True)
        add("conv2d_backward_weights", [x.shape, y.shape], {**attrs, "kernel_h": kernel[0], "kernel_w": kernel[1]},
            dw)
        # The weights are the first input here, and the gradient the second.
        other = draw(0, weight.shape).requires_grad_()
        y = back(F.conv2d(images(x), images(other), None, stride, pad, dilation, groups))
        (dx,) = torch.autograd.grad(y, x, draw(1, y.shape))
        add("conv2d_backward_data", [other.shape, y.shape], {**attrs, "in_h": h, "in_w": w}, dx)


def parts():
    x = draw(0, (3, 5, 7))
    for axis, begin, end in [(0, 1, 3), (1, 0, 4), (2, 6, 7), (1, 4, 5), (2, 0, 7)]:
        y = x.narrow(axis, begin, end - begin)
        add("slice", [x.shape], {"axis": axis, "begin": begin, "end": end}, y)
        dy = draw(0, y.shape)
        behind = [0, 0, 0, 0, 0, 0]
        behind[2 * (2 - axis)], behind[2 * (2 - axis) + 1] = begin, x.shape[axis] - end
        add("slice_backward", [y.shape], {"axis": axis, "begin": begin, "extent": x.shape[axis]}, F.pad(dy, behind))
    for axis, extents in [(0, (1, 4)), (1, (3, 2)), (2, (5, 1))]:
        shapes = [[3 if a != axis else extent for a in range(3)] for extent in extents]
        add("concat", shapes, {"axis": axis}, torch.cat([draw(i, s) for i, s in enumerate(shapes)], axis))
    for perm in [(2, 0, 1), (1, 0, 2), (0, 2, 1), (2, 1, 0)]:
        add("transpose", [x.shape], {"perm": list(perm)}, x.permute(perm).contiguous())
    for axes in [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)]:
        for kind, take in [("sum", x.sum(axes)), ("mean", x.mean(axes)), ("max", x.amax(axes))]:
            add("reduce", [x.shape], {"axes": list(axes), "kind": kind}, take)


def losses():
    """Labels are stored: element r of the second input is labels[r]."""
    for classes, ignored, smoothing, labels in [(5, 2, 0.0, [2, 0, 4, 2, 1, 3, 2]), (7, -1, 0.25, [6, -1, 0, 3, -1]),
                                                (3, 0, 0.1, [0, 0, 1, 2, 0]), (2, -100, 0.0, [1, 0, 1]),
                                                (4, 3, 0.5, [3, 3, 3])]:
        x = (draw(0, (len(labels), classes)) / 4).requires_grad_()
        target = torch.tensor(labels)
        loss = F.cross_entropy(x, target, ignore_index=ignored, label_smoothing=smoothing, reduction="sum")
        (dx,) = torch.autograd.grad(loss, x)
        CASES.append({"op": "cross_entropy", "inputs": [list(x.shape)], "labels": labels,
                      "attrs": {"ignore_index": ignored, "label_smoothing": smoothing},
                      "outputs": [[loss.item()], [float(f"{number:.12g}") for number in dx.flatten().tolist()]]})


resample()
pools()
convolutions()
parts()
losses()
lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in CASES)
path = pathlib.Path(__file__).with_name("torch_values.json")
path.write_text(f'{{"made_by":"torch {torch.__version__}","cases":[\n{lines}\n]}}\n')
print(f"{path}: {len(CASES)} cases")
