"""The structs and functions of replayjit.h and replayjit_state.h, as far as this
package uses them.

Field for field the headers'; tests/python/test_abi.py compares the two. Structs
of arguments learn their fields from the library when it is opened.
"""

import ctypes
import threading
from ctypes import POINTER, c_char_p, c_float, c_int32, c_int64, c_size_t
from ctypes import c_uint32, c_uint64, c_void_p

from . import _check

#: REPLAYJIT_API_VERSION of the header that this file was written from.
API_VERSION = (0 << 16) | 1

LAUNCH_UNCHECKED, LAUNCH_PROGRAMMATIC, LAUNCH_CHECK_ROWS = 1, 2, 8

#: Fields that are true or false.
_TRUTHS = frozenset("use_environment cache_read_only must_hit always_compile "
                    "compile batch_invariant check_rows".split())


def _fields(kind, names):
    return [(name, kind) for name in names.split()]


def _check_of(name, kind):
    """The function of a field's name and a value that gives what is stored."""
    if name in _TRUTHS:
        return _check.truth
    if kind in _check.NUMBERS:
        return lambda name, value: _check.number(name, value, kind)
    if kind is c_char_p:
        return _check.text
    return lambda _, value: value


class Struct(ctypes.Structure):
    """A struct whose fields refuse what they cannot hold."""

    def __init_subclass__(cls):
        if "_fields_" in vars(cls):
            cls._complete()

    @classmethod
    def _complete(cls):
        cls._checks = {field: _check_of(field, kind)
                       for field, kind in cls._fields_}

    def __setattr__(self, name, value):
        check = self._checks[_check.one_of(name, self._checks, "field")]
        super().__setattr__(name, check(name, value))


class Fact(Struct):
    """What the library tells of one field of a spec."""

    _fields_ = [("name", c_char_p), ("doc", c_char_p),
                ("words", POINTER(c_char_p))] + _fields(
                    c_int32, "num_words kind usual lowest highest")


class DecodeArgs(ctypes.Structure):
    """Not a Struct: an operator fills in 40 fields at every call, of which it
    checks those that no tensor has."""


class Layer(Struct):
    pass


class MaterializeArgs(Struct):
    pass


class ErrorWord(Struct):
    _fields_ = [("count", c_uint32), ("kind", c_uint32), ("row", c_int32),
                ("layer", c_int32), ("value", c_int64)]


class Argument(Struct):
    _fields_ = [("name", c_char_p), ("doc", c_char_p), ("stride", c_char_p),
                ("offset", c_uint32), ("type", c_int32), ("is_wide", c_int32)]


#: Of replayjit_field_t.
_FIELD_TYPES = (c_uint64, c_int64, c_int32, c_float)

#: Structs of arguments, and what precedes the fields that the library tells of.
_SIZED = [("struct_size", c_uint32), ("reserved", c_uint32)]
_LEARNED = {
    "replayjit_decode_args_t": (DecodeArgs, _SIZED),
    "replayjit_layer_t": (Layer, []),
    "replayjit_materialize_args_t": (MaterializeArgs, _SIZED),
}

#: What the library says of the fields of DecodeArgs: name -> Argument.
DECODE_ARGUMENTS = {}

_learning = threading.Lock()


def _described(library, struct):
    """The Arguments of a struct of that name."""
    at = 0
    while argument := library.replayjit_argument(struct.encode(), at):
        yield argument.contents
        at += 1


def _learn(library):
    """Gives the structs of arguments their fields, once."""
    with _learning:
        if DECODE_ARGUMENTS:
            return
        for name, (struct, first) in _LEARNED.items():
            struct._fields_ = first + [
                (one.name.decode(), _FIELD_TYPES[one.type])
                for one in _described(library, name)]
            if issubclass(struct, Struct):
                struct._complete()
        DECODE_ARGUMENTS.update(
            (one.name.decode(), one)
            for one in _described(library, "replayjit_decode_args_t"))


DiagnosticFn = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
ProgressFn = ctypes.CFUNCTYPE(None, c_void_p, c_size_t, c_size_t, c_char_p,
                              c_void_p)


class JitOptions(Struct):
    _fields_ = [
        ("struct_size", c_uint32), ("use_environment", c_int32),
        ("cache_roots", c_char_p), ("cache_max_bytes", c_int64),
        ("cache_read_only", c_int32), ("must_hit", c_int32),
        ("always_compile", c_int32), ("compile", c_int32),
        ("workers", c_int32), ("patience_ms", c_int32),
        ("ptxas_path", c_char_p), ("nvjitlink_path", c_char_p),
        ("diagnose", DiagnosticFn), ("diagnose_data", c_void_p),
        ("assembler", c_char_p), ("tuning_file", c_char_p)]


class DeviceInfo(Struct):
    _fields_ = [("struct_size", c_uint32), ("is_emulation", c_int32),
                ("multiprocessors", c_int32), ("capability", c_int32),
                ("description", c_char_p), ("chip", c_char_p)]


class KernelInfo(Struct):
    _fields_ = [("struct_size", c_uint32), ("origin", c_int32),
                ("name", c_char_p), ("chip", c_char_p),
                ("assembler", c_char_p)] + _fields(
                    c_uint32, "blocks_per_row threads shared_bytes") + _fields(
                        c_int32, "registers spill_store_bytes spill_load_bytes "
                        "stack_bytes static_shared_bytes")


class PoolGroup(Struct):
    _fields_ = [("struct_size", c_uint32), ("num_layers", c_int32),
                ("spec", c_void_p), ("layers", POINTER(Layer))
                ] + _fields(c_int32, "slots ring_slots key_head_begin "
                            "key_head_total")


class Cursors(Struct):
    _fields_ = [("struct_size", c_uint32), ("num_keys", c_int32),
                ("write_pos", c_uint64), ("ring_base", c_uint64)]


class PoolOptions(Struct):
    _fields_ = [("struct_size", c_uint32), ("batch_invariant", c_int32),
                ("error_word", POINTER(ErrorWord)),
                ("error_word_address", c_uint64), ("stream", c_void_p),
                ("check_rows", c_int32), ("reserved", c_int32)]


class GroupIndices(Struct):
    _fields_ = [
        ("state", c_uint64), ("state_stride", c_int64),
        ("ring", c_uint64), ("ring_stride", c_int64),
        ("dst", c_uint64), ("dst_stride", c_int64),
        ("track", c_uint64), ("track_stride", c_int64)]


class StepInputs(Struct):
    _fields_ = [("struct_size", c_uint32), ("live", c_int32),
                ("keys", c_uint64), ("key_stride", c_int64),
                ("groups", POINTER(GroupIndices))] + _fields(
                    c_uint64, "flush_mask fresh seq_len no_flush_past "
                    "drop_newest")


class CacheCounters(Struct):
    _fields_ = _SIZED + _fields(c_uint64, "hits misses compiles waits")


#: Structs that are compared with the header.
STRUCTS = {
    "replayjit_fact_t": Fact,
    "replayjit_decode_args_t": DecodeArgs,
    "replayjit_layer_t": Layer,
    "replayjit_materialize_args_t": MaterializeArgs,
    "replayjit_error_word_t": ErrorWord,
    "replayjit_argument_t": Argument,
    "replayjit_jit_options_t": JitOptions,
    "replayjit_device_info_t": DeviceInfo,
    "replayjit_kernel_info_t": KernelInfo,
    "replayjit_cache_counters_t": CacheCounters,
    "replayjit_pool_group_t": PoolGroup,
    "replayjit_cursors_t": Cursors,
    "replayjit_pool_options_t": PoolOptions,
    "replayjit_group_indices_t": GroupIndices,
    "replayjit_step_inputs_t": StepInputs,
}

_OUT = POINTER(c_void_p)

#: A replayjit_decode_spec_t, whose fields spec.Spec learns from the library.
SPEC = c_void_p

#: Functions that return an error: their parameters.
FALLIBLE = {
    "replayjit_decode_spec_from_model": [SPEC, c_char_p, c_int32],
    "replayjit_target_supports": [c_char_p, SPEC, c_void_p],
    "replayjit_device_create_cuda": [c_int32, _OUT],
    "replayjit_device_create_cuda_current": [_OUT],
    "replayjit_device_create_emulation": [c_char_p, _OUT],
    "replayjit_device_info": [c_void_p, POINTER(DeviceInfo)],
    "replayjit_device_allocate": [c_void_p, c_size_t, c_char_p,
                                  POINTER(c_uint64)],
    "replayjit_device_free": [c_void_p, c_uint64],
    "replayjit_device_copy_to": [c_void_p, c_uint64, c_void_p, c_size_t],
    "replayjit_device_copy_from": [c_void_p, c_void_p, c_uint64, c_size_t],
    "replayjit_device_allocate_mapped": [c_void_p, c_size_t, c_char_p, _OUT,
                                         POINTER(c_uint64)],
    "replayjit_device_free_mapped": [c_void_p, c_void_p, c_uint64],
    "replayjit_device_is_capturing": [c_void_p, c_void_p, POINTER(c_int32)],
    "replayjit_device_synchronize": [c_void_p, c_void_p],
    "replayjit_jit_create": [c_void_p, POINTER(JitOptions), _OUT],
    "replayjit_jit_prepare_on": [c_void_p, c_void_p, SPEC,
                                 c_int32, _OUT],
    "replayjit_jit_prepare_all_on": [
        c_void_p, c_void_p, POINTER(c_void_p), POINTER(c_int32), c_size_t,
        ProgressFn, c_void_p, _OUT, _OUT],
    "replayjit_kernel_info": [c_void_p, POINTER(KernelInfo)],
    "replayjit_kernel_launch": [c_void_p, c_void_p, POINTER(DecodeArgs),
                                c_uint32],
    "replayjit_kernel_launch_materialize": [
        c_void_p, c_void_p, POINTER(MaterializeArgs), c_uint32],
    "replayjit_state_bytes": [SPEC, POINTER(c_int64),
                              POINTER(c_int64)],
    "replayjit_pool_bytes": [
        POINTER(c_void_p), POINTER(c_int32), c_size_t, c_int64, c_int64, c_int64,
        POINTER(c_int64)],
    "replayjit_pool_states": [
        POINTER(c_void_p), POINTER(c_int32), c_size_t, c_int64, c_int64, c_int64,
        POINTER(c_int64)],
    "replayjit_jit_counters": [c_void_p, POINTER(CacheCounters)],
    "replayjit_kernel_spec": [c_void_p, SPEC],
    "replayjit_ring_cursor_advance": [
        SPEC, POINTER(c_int32), POINTER(c_int32), c_int32],
    "replayjit_ring_cursor_accept": [
        SPEC, POINTER(c_int32), POINTER(c_int32), c_int32, c_int32],
    "replayjit_decode_spec_recommend": [
        SPEC, c_int32, c_float, POINTER(c_int32), POINTER(c_int32),
        POINTER(c_int32)],
    "replayjit_pool_adopt": [
        c_void_p, POINTER(c_void_p), c_size_t, POINTER(Cursors),
        POINTER(PoolOptions), _OUT],
    "replayjit_pool_poll_errors": [c_void_p, POINTER(ErrorWord)],
    "replayjit_pool_clear_errors": [c_void_p],
    "replayjit_pool_reset": [c_void_p, c_void_p],
    "replayjit_plan_create": [c_void_p, c_int32, c_uint64, _OUT],
    "replayjit_plan_begin": [c_void_p, c_void_p, c_int64, POINTER(StepInputs)],
    "replayjit_plan_commit": [c_void_p, c_void_p, c_int64, c_uint64],
    "replayjit_plan_begin_captured": [c_void_p, c_void_p, POINTER(StepInputs)],
    "replayjit_plan_commit_captured": [c_void_p, c_void_p, c_uint64],
    "replayjit_plan_set_step": [c_void_p, c_void_p, c_int64, c_int32],
    "replayjit_plan_layer_args": [
        c_void_p, c_int32, c_int32, c_int32, c_int32, POINTER(DecodeArgs)],
    "replayjit_plan_materialize": [c_void_p, c_void_p, POINTER(StepInputs)],
    "replayjit_plan_copy": [c_void_p, c_void_p, POINTER(StepInputs)],
    "replayjit_plan_prepare_extend": [c_void_p, c_void_p, POINTER(StepInputs)],
    "replayjit_plan_require_flushed": [c_void_p, c_void_p, POINTER(StepInputs)],
}

#: The others: result and parameters.
PLAIN = {
    "replayjit_api_version": (c_uint32, []),
    "replayjit_version": (c_char_p, []),
    "replayjit_has_compiler": (c_int32, []),
    "replayjit_target_name": (c_char_p, [c_size_t]),
    "replayjit_argument": (POINTER(Argument), [c_char_p, c_size_t]),
    "replayjit_error_code": (c_int32, [c_void_p]),
    "replayjit_error_message": (c_char_p, [c_void_p]),
    "replayjit_error_stage": (c_char_p, [c_void_p]),
    "replayjit_error_log": (c_char_p, [c_void_p]),
    "replayjit_error_destroy": (None, [c_void_p]),
    "replayjit_decode_spec_init": (None, [SPEC, c_size_t]),
    "replayjit_decode_spec_fact": (POINTER(Fact), [c_size_t]),
    "replayjit_jit_options_init": (None, [POINTER(JitOptions), c_size_t]),
    "replayjit_device_stream": (c_void_p, [c_void_p]),
    "replayjit_pool_release": (None, [c_void_p]),
    "replayjit_plan_release": (None, [c_void_p]),
    "replayjit_device_retain": (None, [c_void_p]),
    "replayjit_device_release": (None, [c_void_p]),
    "replayjit_jit_release": (None, [c_void_p]),
    "replayjit_kernel_release": (None, [c_void_p]),
    "replayjit_should_flush": (c_int32, [c_int64, c_int64]),
    "replayjit_tokens_to_drop": (c_int64, [c_int64, c_int64]),
}

#: The functions of the headers that this package does not call, by reason.
NOT_WRAPPED = {
    "a struct of ctypes is zero, which is its default, and gets its size where it "
    "is made": """replayjit_cache_counters_init replayjit_cursors_init
        replayjit_decode_args_init replayjit_device_info_init replayjit_error_word_init
        replayjit_group_indices_init replayjit_kernel_info_init
        replayjit_layer_init replayjit_materialize_args_init
        replayjit_pool_group_init replayjit_pool_options_init
        replayjit_step_inputs_init""",
    "an object holds its handle once": """replayjit_jit_retain
        replayjit_kernel_retain replayjit_plan_retain replayjit_pool_retain""",
    "the same with a stream, which is None here by default, does it":
        "replayjit_jit_prepare replayjit_jit_prepare_all",
    "the library chooses tiles": """replayjit_decode_tuning_fact
        replayjit_decode_tuning_init replayjit_jit_prepare_tuned
        replayjit_jit_prepare_tuned_on replayjit_kernel_tuning
        replayjit_target_choose_tuning""",
    "the caller of a StatePool has the memory and the tensors":
        """replayjit_layer_validate replayjit_plan_bytes replayjit_pool_allocate
        replayjit_pool_cursors replayjit_pool_layer_args replayjit_pool_prepare""",
    "states move between processes by engines in C++": """replayjit_group_slot_init
        replayjit_image_destroy replayjit_pool_export replayjit_pool_import
        replayjit_pool_region replayjit_pool_region_count
        replayjit_region_init""",
}


def declare(library):
    """Gives the functions of `library`, a CDLL, their types, and the structs of
    arguments their fields."""
    for name, parameters in FALLIBLE.items():
        function = getattr(library, name)
        function.restype = c_void_p
        function.argtypes = parameters
    for name, (result, parameters) in PLAIN.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = parameters
    _learn(library)
    return library
