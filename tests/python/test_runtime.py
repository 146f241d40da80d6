"""Preparing kernels, and what else a runtime does."""

import contextlib
import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from types import SimpleNamespace
from unittest import mock

import replayjit
from recurrence import emulation, tensor, values
from replayjit import Spec, supports
from replayjit.spec import facts
from replayjit._library import check, library
from replayjit.runtime import current_stream, runtime_of

SMALL = dict(num_key_heads=1, num_value_heads=1, head_dim_k=16, head_dim_v=16,
             ring_depth=2)


def over_the_fake_driver(script):
    """What a process prints whose driver is that of the unit tests; it has no
    folder for a cache."""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.environ["REPLAYJIT_FAKE_CUDA"],
                   os.path.join(folder, "libcuda.so.1"))
        homeless = {
            name: value for name, value in os.environ.items()
            if name not in ("REPLAYJIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME")}
        told = subprocess.run(
            [sys.executable, "-c", script], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**homeless, "LD_LIBRARY_PATH": folder})
    if told.returncode:
        raise AssertionError(told.stdout)
    return told.stdout


class SpecTest(unittest.TestCase):
    def test_defaults_and_names(self):
        spec = Spec(gate="lower-bound", is_kda=True, ring_type="bfloat16")
        self.assertEqual((spec.gate, spec.is_kda, spec.ring_type), (1, 1, 1))
        self.assertEqual((spec.num_value_heads, spec.ring_depth), (32, 16))
        self.assertIn("ring_depth=16", repr(spec))

    def test_types_of_b_and_dt_bias(self):
        spec = Spec(beta_type="float32", gate_type="bfloat16")
        self.assertEqual((spec.beta_type, spec.bias_type), (0, 0))
        self.assertTrue(supports(spec))
        self.assertEqual(
            supports(Spec(beta_type="int32")).reason,
            "betaType: int32 is not allowed; allowed are fp32, bf16, fp16")

    def test_names_of_fields(self):
        self.assertEqual(facts()["null_slot"].words,
                         ("negative", "non-positive"))
        self.assertIn("two flushes", facts()["ring_depth"].doc)
        self.assertIn("null_slot", dir(Spec()))
        with self.assertRaises(AttributeError):
            Spec().null_slots
        self.assertEqual(Spec(null_slot="non-positive").null_slot, 1)
        with self.assertRaisesRegex(ValueError, "^ring_type: 'fp8' is not "
                                    "allowed; allowed are float32, bfloat16"):
            Spec(ring_type="fp8")

    def test_models(self):
        spec = Spec.from_model("qwen3-next", 4, ring_depth=8)
        self.assertEqual((spec.num_key_heads, spec.num_value_heads,
                          spec.ring_depth), (4, 8, 8))
        with self.assertRaisesRegex(ValueError, "'gpt' is unknown"):
            Spec.from_model("gpt")

    def test_supports(self):
        self.assertTrue(supports(Spec()))
        answer = supports(Spec(num_value_heads=3, num_key_heads=2))
        self.assertFalse(answer)
        self.assertRegex(answer.reason, "^numValueHeads: 3 is not allowed")


class RuntimeTest(unittest.TestCase):
    def test_kernels(self):
        runtime = emulation()
        self.assertTrue(runtime.is_emulation)
        self.assertEqual((runtime.chip, runtime.description),
                         ("sm_90a", "emulation"))
        info = runtime.prepare(Spec(**SMALL)).info
        self.assertRegex(info["name"], "^gdn_decode_h1_hv1_k16_v16_l2_")
        self.assertEqual((info["origin"], info["chip"]),
                         ("compiled", "sm_90a"))

    def test_a_kernel_outlives_its_runtime(self):
        kernel = emulation().prepare(Spec(**SMALL))
        self.assertEqual(kernel.info["chip"], "sm_90a")

    def test_prepare_all(self):
        runtime, heard = emulation(), []
        specs = [Spec(**{**SMALL, "ring_depth": depth}) for depth in (1, 2, 3)]
        kernels = replayjit.prepare_all(
            [(spec, 1) for spec in specs], runtime,
            progress=lambda *report: heard.append(report))
        self.assertEqual(
            [f"_l{depth}_" in kernel.info["name"]
             for depth, kernel in zip((1, 2, 3), kernels)], [True] * 3)
        self.assertEqual([report[:2] for report in heard],
                         [(1, 3), (2, 3), (3, 3)])
        self.assertEqual(sorted(report[2] for report in heard),
                         sorted(kernel.info["name"] for kernel in kernels))

    def test_prepare_all_raises_after_all_were_tried(self):
        heard = []
        wrong = Spec(**{**SMALL, "head_dim_k": 0})
        with self.assertRaisesRegex(ValueError, "headDimK: 0 is not allowed"):
            emulation().prepare_all(
                [(wrong, 0), (Spec(**SMALL), 0)],
                progress=lambda *report: heard.append(report[2] is None))
        self.assertEqual(sorted(heard), [False, True])

    def test_other_threads_run_while_one_compiles(self):
        """With the GIL held the other thread would not tick once."""
        runtime, ticks, stop = emulation(), [], threading.Event()

        def tick():
            while not stop.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)

        thread = threading.Thread(target=tick)
        thread.start()
        try:
            start = time.monotonic()
            runtime.prepare(Spec(head_dim_k=64, head_dim_v=64, num_key_heads=1,
                                 num_value_heads=1))
            end = time.monotonic()
        finally:
            stop.set()
            thread.join()
        # Away from the ends, where the GIL changes hands.
        quarter = (end - start) / 4
        inside = [at for at in ticks if start + quarter < at < end - quarter]
        self.assertGreater(len(inside), 2, f"in {end - start} s")

    def test_cuda(self):
        """Over the unit tests' driver; what is wrong but stops nothing is
        told."""
        script = """
import replayjit
sentences = []
gpu = replayjit.Runtime.cuda(0, diagnose=sentences.append)
print(gpu.description, gpu.chip, gpu.ordinal, gpu.stream is not None,
      gpu.is_emulation, *sentences, sep="|")
gpu.empty("float32", 4)
"""
        self.assertRegex(over_the_fake_driver(script),
                         r"^Fake GPU\|sm_90a\|0\|True\|False\|cache: "
                         r"there is no folder for it, .*\n$")

    #: A torch of which only devices are there: a guard makes a context current,
    #: unless `contexts` has none. A context is gone once it is let go of, unless
    #: the library has one of its own, such as the primary one by ordinal.
    TORCH = """
import ctypes, sys, types
import replayjit
from replayjit.runtime import cuda, runtime_of

driver, contexts = ctypes.CDLL("libcuda.so.1"), {}

class Guard:
    def __init__(self, ordinal):
        self.context = contexts.get(ordinal)
    def __enter__(self):
        if self.context:
            driver.cuCtxPushCurrent_v2(self.context)
    def __exit__(self, *_):
        if self.context:
            driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

torch = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(is_initialized=lambda: True, device=Guard)
sys.modules["torch"] = torch

def make_context(ordinal):
    contexts[ordinal] = ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(contexts[ordinal]), ordinal)

def is_alive_without_ours(runtime, ordinal):
    driver.cuDevicePrimaryCtxRelease_v2(ordinal)
    try:
        runtime.empty("float32", 4)
    except replayjit.Error as problem:
        return str(problem)
    return "alive"
"""

    def test_cuda_in_the_current_context(self):
        told = over_the_fake_driver(self.TORCH + """
try:
    replayjit.Runtime.cuda_current(diagnose=lambda _: None)
except ValueError as problem:
    print(problem)
make_context(0)
with Guard(0):
    runtime = replayjit.Runtime.cuda_current(diagnose=lambda _: None)
print(runtime.description, runtime.ordinal)
runtime.empty("float32", 4)
print(is_alive_without_ours(runtime, 0))
""").splitlines()
        self.assertRegex(told[0], "^no CUDA context is current in this thread")
        self.assertEqual(told[1:], ["Fake GPU None",
                                    "the CUDA context has been destroyed"])

    def test_the_context_of_torch_is_the_default(self):
        """Of the tensor's device; the primary one where torch has none in this
        thread, or has not initialized CUDA."""
        told = over_the_fake_driver(self.TORCH + """
device = lambda ordinal: types.SimpleNamespace(
    device=types.SimpleNamespace(type="cuda", index=ordinal))
make_context(0)
make_context(1)
second = runtime_of(device(1))
print(second.ordinal, second is cuda(1), is_alive_without_ours(second, 1))

torch.cuda.is_initialized = lambda: False
print(cuda(0).ordinal, is_alive_without_ours(cuda(0), 0))

torch.cuda.is_initialized = lambda: True
cuda.cache_clear()
make_context(0)
contexts.clear()
print(cuda(0).ordinal, is_alive_without_ours(cuda(0), 0))
""")
        self.assertEqual(told.splitlines(),
                         ["1 True the CUDA context has been destroyed",
                          "0 alive", "0 alive"])

    def test_devices_and_streams_of_torch(self):
        """What is asked of torch, with objects in its place."""
        torch = SimpleNamespace(cuda=SimpleNamespace(
            current_stream=lambda at: SimpleNamespace(cuda_stream=100 + at)))
        second = SimpleNamespace(is_emulation=False, ordinal=1, stream=7)
        with mock.patch.dict(sys.modules, torch=torch):
            self.assertEqual(current_stream(second), 101)
        with mock.patch.dict(sys.modules):
            sys.modules.pop("torch", None)
            self.assertEqual(current_stream(second), 7)
        self.assertIsNone(current_stream(emulation()))
        with mock.patch("replayjit.runtime.cuda", lambda at: ("GPU", at)):
            for index, ordinal in [(None, 0), (0, 0), (1, 1)]:
                device = SimpleNamespace(type="cuda", index=index)
                self.assertEqual(
                    runtime_of(SimpleNamespace(device=device)),
                    ("GPU", ordinal))

    def test_capture(self):
        """What may compile, load or allocate is refused on a stream that is
        under capture, also where it is not the current one, and before anything
        is done."""
        told = over_the_fake_driver("""
import ctypes
import replayjit
from replayjit._library import library

gpu = replayjit.Runtime.cuda(0, diagnose=lambda _: None)
driver = ctypes.CDLL("libcuda.so.1")
context, stream = ctypes.c_void_p(), ctypes.c_void_p()
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxPushCurrent_v2(context)
driver.cuStreamCreate(ctypes.byref(stream), 1)
stream = stream.value
memory = lambda *shape: gpu.empty("float32", *shape)
rings = [memory(2, 1, 16, 16), memory(2, 1, 4, 16), memory(2, 1, 4, 16),
         memory(2, 1, 4)]
integers = gpu.empty("int32", 2)
inputs = [memory(2, 48), memory(2, 1), memory(2, 1), memory(1), memory(1), 1.0,
          *rings, memory(2, 1, 1, 16), integers, integers]
decode = replayjit.fused_recurrent_linear_replayssm_decode
spec = decode.__wrapped__(*inputs).spec
pool = replayjit.StatePool.__new__(replayjit.StatePool)  # of which there are none
pool.runtime = gpu

print(gpu.is_capturing(), gpu.is_capturing(stream))
driver.cuStreamBeginCapture_v2(ctypes.c_void_p(stream), 0)
print(gpu.is_capturing(), gpu.is_capturing(stream))
library().replayjit_device_allocate = None
for act in (lambda: gpu.prepare(spec, stream=stream),
            lambda: gpu.prepare_all([(spec, 1)], stream=stream),
            lambda: decode(*inputs, stream=stream),
            lambda: replayjit.bind(decode, *inputs, stream=stream),
            lambda: replayjit.StatePool([(spec, [rings])], integers,
                                        stream=stream),
            lambda: replayjit.StepPlan(pool, 2, stream)):
    try:
        act()
    except replayjit.InvalidArgument as problem:
        print(str(problem).split("'")[0], problem.code)
""").splitlines()
        self.assertEqual(told[:2], ["False False", "False True"])
        refused = ": not possible while launches are captured; do it before 1"
        self.assertEqual(told[2:], ["prepare  1"] * 4 + [
            "StatePool" + refused, "StepPlan" + refused])

    def test_memory(self):
        runtime = emulation()
        whole = tensor(runtime, range(6), 2, 3, dtype="int32")
        self.assertEqual((whole.shape, whole.stride()), ((2, 3), (3, 1)))
        self.assertEqual(values(whole), list(range(6)))
        view = whole.view((2,), (3,), offset=1)
        self.assertEqual(view.data_ptr(), whole.data_ptr() + 4)
        with self.assertRaisesRegex(ValueError, "3 bytes are not allowed; the "
                                                "tensor has 24"):
            whole.write(b"abc")
        with self.assertRaisesRegex(ValueError, "^data: 24 is not allowed"):
            whole.write(24)

    def test_a_view_with_gaps_is_neither_written_nor_read(self):
        whole = tensor(emulation(), range(6), 2, 3, dtype="int32")
        column = whole.view((2,), (3,), offset=1)
        for act in (lambda: column.write(bytes(8)), column.read):
            with self.assertRaises(ValueError) as caught:
                act()
            self.assertEqual(str(caught.exception), "tensor: strides (3,) of "
                             "shape (2,) are not allowed; they must be (1,)")
        self.assertEqual(values(whole), list(range(6)))
        row = whole.view((1, 3), (100, 1), offset=3)  # One row has no gap.
        row.write(whole.view((3,), (1,)).read())
        self.assertEqual(values(whole), [0, 1, 2] * 2)
        self.assertEqual(whole.view((0, 2), (7, 5)).read(), b"")
        with self.assertRaisesRegex(ValueError, "^strides: 1 elements are not "
                                                "allowed; there must be 2$"):
            whole.view((2, 2), (1,))


class LifetimeTest(unittest.TestCase):
    """Memory and its device, in the order that a collection of both may take."""

    FREE = ("replayjit_device_free", "replayjit_device_free_mapped")

    def setUp(self):
        """`references` counts those to the one device of a test; `frees` are
        they at each free, `errors` those made by frees and not destroyed."""
        self.references, self.frees, self.errors = 1, [], 0
        patches = contextlib.ExitStack()
        self.addCleanup(patches.close)
        for name in (*self.FREE, "replayjit_device_retain",
                     "replayjit_device_release", "replayjit_error_destroy"):
            patches.enter_context(mock.patch.object(
                library(), name, self.spy(name, getattr(library(), name))))

    def spy(self, name, function):
        def call(*arguments):
            if name.endswith("_retain"):
                self.references += 1
            elif name.endswith("_release"):
                self.references -= 1
            elif name in self.FREE:
                self.frees.append(self.references)
                if not self.references:
                    return None  # It would be a use after free.
            else:
                self.errors -= 1
            found = function(*arguments)
            self.errors += name in self.FREE and found is not None
            return found
        return call

    def let_the_runtime_go_first(self, name, make):
        owner = make(emulation())
        setattr(owner, name, None)
        gc.collect()
        self.assertEqual((self.references, self.frees), (1, []))
        del owner
        gc.collect()
        self.assertEqual((self.references, self.frees), (0, [1]))
        self.assertEqual(self.errors, 0)

    def test_a_tensor_keeps_the_device(self):
        self.let_the_runtime_go_first(
            "device", lambda runtime: runtime.empty("int32", 4))

    def test_an_error_word_keeps_the_device(self):
        self.let_the_runtime_go_first("_runtime", replayjit.ErrorWord)

    def test_an_error_of_a_finalizer_is_destroyed(self):
        whole = emulation().empty("int32", 4)
        check(library().replayjit_device_free(whole.device._device,
                                              whole.address))
        del whole
        gc.collect()
        self.assertEqual((self.references, len(self.frees), self.errors),
                         (0, 2, 0))


if __name__ == "__main__":
    unittest.main()
