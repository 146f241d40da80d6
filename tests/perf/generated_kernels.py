"""Cubins that replay-compile made, launched through the CUDA driver.

A kernel is NAME.cubin with NAME.json beside it; the json describes its parameter buffer,
so this file knows no struct.
"""
import ctypes
import json
import pathlib
import struct
import sys

import torch


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute, of a truth."""
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int),
                ("rest", ctypes.c_char * 60)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig"""
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]


class Driver:
    """The few CUDA driver calls needed, in torch's (primary) context."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.lib.cuLaunchKernelEx.argtypes = [ctypes.c_void_p] * 4

    def check(self, code, what):
        if code:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorString(ctypes.c_int(code), ctypes.byref(text))
            raise RuntimeError(f"{what}: CUDA error {code}, "
                               f"{(text.value or b'unknown').decode()}")

    def load(self, cubin, symbol):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.lib.cuModuleLoadData(ctypes.byref(module),
                                             ctypes.c_char_p(cubin)), "cuModuleLoadData")
        self.check(self.lib.cuModuleGetFunction(ctypes.byref(function), module,
                                                symbol.encode()), f"symbol {symbol}")
        return function

    def allow_shared(self, function, size):
        max_dynamic_shared = 8
        self.check(self.lib.cuFuncSetAttribute(function, ctypes.c_int(max_dynamic_shared),
                                               ctypes.c_int(size)),
                   f"{size} bytes of shared memory")

    def attributes(self, function):
        value, found = ctypes.c_int(), {}
        for name, number in (("staticSharedBytes", 1), ("localBytes", 3), ("registers", 4)):
            self.check(self.lib.cuFuncGetAttribute(ctypes.byref(value), ctypes.c_int(number),
                                                   function), "cuFuncGetAttribute")
            found[name] = value.value
        return found

    def param_bytes(self, function):
        """Size of the parameter buffer as the driver sees it; None if it cannot say."""
        try:
            info = self.lib.cuFuncGetParamInfo
        except AttributeError:  # before CUDA 12.4
            return None
        end, index = None, 0
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        while info(function, ctypes.c_size_t(index), ctypes.byref(offset),
                   ctypes.byref(size)) == 0:
            end, index = offset.value + size.value, index + 1
        return end

    def launch(self, function, grid, threads, shared, stream, params, size, overlap):
        """`overlap`: it may start before the kernel before it has ended."""
        size = ctypes.c_size_t(size)
        # CU_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE, _END
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(params), 2,
                                      ctypes.addressof(size), 0)
        # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute = LaunchAttribute(id=6, value=1)
        config = LaunchConfig((ctypes.c_uint * 3)(grid, 1, 1),
                              (ctypes.c_uint * 3)(threads, 1, 1), shared, stream,
                              ctypes.addressof(attribute), int(overlap))
        self.check(self.lib.cuLaunchKernelEx(ctypes.byref(config), function, None, extra),
                   "cuLaunchKernelEx")


class ReplayjitKernel:
    FORMATS = {"pointer": "<Q", "ptr": "<Q", "i64": "<q", "int64": "<q",
               "i32": "<i", "int32": "<i", "f32": "<f", "fp32": "<f", "float": "<f"}
    FORMAT_BYTES = {"<Q": 8, "<q": 8, "<i": 4, "<f": 4}
    STRIDES = {"qStride": "q", "aStride": "a", "bStride": "b", "outStride": "out",
               "stateIndexStride": "stateIndices", "statePitch": "state", "dPitch": "dRing",
               "kPitch": "kRing", "gPitch": "gRing", "kStride": "k", "vStride": "v",
               "outGateStride": "outGate"}

    def __init__(self, driver, json_path):
        self.driver = driver
        self.meta = json.loads(json_path.read_text())
        self.cubin = json_path.with_suffix(".cubin").read_bytes()
        self.symbol = self.meta["name"]
        self.spec, self.tuning = self.meta["spec"], self.meta.get("tuning", {})
        self.packed = self.spec.get("family") == "packed"
        readout = str(self.spec.get("readout", "outputOnly"))
        self.readout = "rebuild" if readout.lower() == "rebuild" else "outputOnly"
        self.brand = "replayjit packed " if self.packed else "replayjit "
        self.name = self.brand + json_path.stem
        launch = self.meta["launch"]
        self.blocks_per_row = int(launch["blocksPerRow"])
        self.threads, self.shared = int(launch["threads"]), int(launch["sharedBytes"])
        self.fields = [(p["name"], self.FORMATS[str(p["kind"]).lower()], int(p["offset"]))
                       for p in self.meta["params"]]
        self.size = int(self.meta["paramBytes"])
        self.function = None

    def mismatch(self, opt, state, ring):
        """Why the kernel does not serve this case; empty if it does."""
        want = dict(hasSeparateQkv=False, hasDstIndices=False, hasTrackIndices=False,
                    isKda=opt.kda, gate="lowerbound" if opt.bounded else "softplus",
                    betaRound=False, numKeyHeads=opt.H, numValueHeads=opt.HV, headDimK=opt.K,
                    headDimV=opt.V, actType=opt.act, gateType=opt.act, betaType=opt.act,
                    paramType="fp32", biasType="fp32", outType=opt.out, stateType=state,
                    indexType="int32", qkL2Norm=opt.norm)
        if not self.packed:
            want.update(family="replay", ringFormat=opt.ring_format, isCircular=opt.circular,
                        hasRingIndices=False, ringDepth=opt.L, ringType=ring)
        alias = {"f32": "fp32", "f16": "fp16", "i32": "int32", "i64": "int64"}
        wrong = []
        for field, value in want.items():
            if field not in self.spec:
                wrong.append(f"{field} is not in the json")
                continue
            have = self.spec[field]
            if isinstance(have, str):
                have = alias.get(have.lower(), have.lower())
            if have != value:
                wrong.append(f"{field}={have}, not {value}")
        return ", ".join(wrong)

    def prepare(self):
        if self.function is not None:
            return
        self.function = self.driver.load(self.cubin, self.symbol)
        if self.shared > 48 * 1024:
            self.driver.allow_shared(self.function, self.shared)
        self.meta["driver"] = self.driver.attributes(self.function)
        last = max(offset + self.FORMAT_BYTES[f] for _, f, offset in self.fields)
        size = self.driver.param_bytes(self.function)
        if size is not None:
            if not last <= size <= self.size:
                raise RuntimeError(f"the cubin takes {size} bytes of parameters; the json "
                                   f"describes {last} (padded {self.size})")
            self.size = size

    def value(self, x, name):
        if name in self.STRIDES:
            tensor = getattr(x, self.STRIDES[name], None)
            return 0 if tensor is None else tensor.stride(0)
        value = getattr(x, name, 0)  # what the spec lacks is ignored
        return value.data_ptr() if isinstance(value, torch.Tensor) else value

    def launch(self, x, overlap=False):
        params = ctypes.create_string_buffer(self.size)
        for name, code, offset in self.fields:
            struct.pack_into(code, params, offset, self.value(x, name))
        stream = torch.cuda.current_stream().cuda_stream
        self.driver.launch(self.function, x.batch * self.blocks_per_row, self.threads,
                           self.shared, stream, params, self.size, overlap)


def load_kernels(folder, skip):
    paths = sorted(pathlib.Path(folder).glob("*.json"))
    paths = [p for p in paths if p.with_suffix(".cubin").exists()
             and not any(text in p.stem for text in skip)]
    if not paths:
        sys.exit(f"{folder}: no NAME.json with a NAME.cubin beside it")
    driver = Driver()
    return [ReplayjitKernel(driver, p) for p in paths]


def name_by_differences(kernels):
    """Names each kernel by the facts in which `kernels` differ, if that is unique."""
    facts = [{**k.spec, **k.tuning, "threads": k.threads} for k in kernels]
    keys = [key for key in dict.fromkeys(key for f in facts for key in f)
            if len({str(f.get(key)) for f in facts}) > 1]
    if len(kernels) == 1:
        keys = ["blockV", "numWarps"]
    names = [" ".join(f"{key}={f.get(key)}" for key in keys) for f in facts]
    if keys and len(set(names)) == len(names):
        for kernel, name in zip(kernels, names):
            kernel.name = kernel.brand + name
