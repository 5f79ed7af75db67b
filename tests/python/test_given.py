"""First values that the caller gives, where weights lie, and memory between steps."""

import ctypes
import json
import pathlib
import struct
import unittest

import numpy as np
import thimble

NET = pathlib.Path(__file__).parents[1] / "import" / "nets" / "pictures.json"


def stored():
    """Tensors of the network's file."""
    data = NET.with_suffix(".safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    kinds = {"F32": np.float32, "I32": np.int32, "U8": np.uint8}
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            flat = np.frombuffer(data[8 + length + begin:8 + length + end], kinds[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


class Giving:
    def __init__(self, tensors):
        self.tensors, self.asked = tensors, []

    def __call__(self, name, first, size, to):
        if not self.asked or self.asked[-1][0] != name:
            self.asked.append([name, 0])
        assert self.asked[-1][1] == first, name
        self.asked[-1][1] += size
        ctypes.memmove(to, self.tensors[name].ctypes.data + first, size)


def batch(plan, seed):
    draw = np.random.default_rng(seed)
    return {field.name: draw.integers(0, field.limit, field.shape) if field.limit else
            draw.standard_normal(field.shape).astype(np.float32) for field in plan.fields}


class GivenTest(unittest.TestCase):
    def setUp(self):
        self.plan = thimble.plan(NET, threads=1, optimizer="adam", lr=1e-3, schedule="constant", steps=4)

    def test_they_are_those_of_the_file_asked_for_once_and_in_order(self):
        tensors = {name: np.ascontiguousarray(array) for name, array in stored().items()}
        giving = Giving(tensors)
        run = thimble.Run(self.plan, give=giving)
        self.assertEqual(len(giving.asked), len({name for name, _ in giving.asked}))
        for name, size in giving.asked:
            self.assertEqual(size, tensors[name].nbytes, name)
        expected = thimble.Run(self.plan).weights()
        for name, array in run.weights().items():
            np.testing.assert_array_equal(array, expected[name], name)
        self.assertEqual(run.step(batch(self.plan, 1)).loss, thimble.Run(self.plan).step(batch(self.plan, 1)).loss)

    def test_others_than_the_files_are_taken(self):
        doubled = {name: array * 2 if array.dtype == np.float32 else array for name, array in stored().items()}
        run = thimble.Run(self.plan, give=Giving(doubled))
        for name, array in run.weights().items():
            np.testing.assert_array_equal(array, doubled[name], name)

    def test_an_exception_of_the_giver_comes_out(self):
        def give(name, first, size, to):
            raise KeyError(name)

        with self.assertRaises(KeyError):
            thimble.Run(self.plan, give=give)

    def test_nets_of_the_zoo_have_their_own(self):
        plan = thimble.plan("mlp", image=[8, 8, 1], classes=4, batch=10, threads=1, steps=1)
        with self.assertRaisesRegex(thimble.UserError, "net from outside"):
            thimble.Run(plan, give=lambda *asked: None)

    def test_places_are_where_the_numbers_are_convolutions_too(self):
        run = thimble.Run(self.plan)
        copies = run.weights()
        places = {name: array for name, _, array in run.places()}
        self.assertEqual(places.keys(), copies.keys())
        self.assertTrue(any(not array.flags.c_contiguous for array in places.values()))
        for name, array in places.items():
            np.testing.assert_array_equal(array, copies[name], name)
            array += 1
        for name, array in run.weights().items():
            np.testing.assert_array_equal(array, copies[name] + 1, name)

    def test_a_rest_between_steps_changes_no_bit(self):
        rested, other = thimble.Run(self.plan), thimble.Run(self.plan)
        for step in range(4):
            self.assertEqual(rested.step(batch(self.plan, step)).loss, other.step(batch(self.plan, step)).loss)
            rested.rest()
        expected = other.weights()
        for name, array in rested.weights().items():
            np.testing.assert_array_equal(array, expected[name], name)


if __name__ == "__main__":
    unittest.main()
