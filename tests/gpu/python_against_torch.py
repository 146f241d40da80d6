#!/usr/bin/env python3
"""The Python operators on a GPU, with torch tensors, against the recurrence in
fp64.

    REPLAYJIT_LIBRARY=.../libreplayjit.so python3 tests/gpu/python_against_torch.py

Needs torch, the driver and, to assemble, nvJitLink, which comes with torch. Each
check is a line; the last one is "N passed, N failed". tests/gpu/README.md says
what is looked at.
"""

import argparse
import itertools
import pathlib
import sys
import threading
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]
                       / "runtime/python"))
import replayjit  # noqa: E402
from replayjit import (  # noqa: E402
    fused_recurrent_gated_delta_rule_packed_decode,
    fused_recurrent_kda_packed_decode, fused_recurrent_linear_replayssm_decode,
    torch_ops)

CUDA = torch.device("cuda", 0)
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def within(what, found, expected, most):
    """||found - expected|| <= most ||expected||."""
    error = (torch.linalg.vector_norm(found.double() - expected)
             / torch.linalg.vector_norm(expected)).item()
    if not error <= most:
        raise AssertionError(f"{what}: relative error {error:.2e}, at most "
                             f"{most:.0e}")


class Pool:
    """B requests on slots of a pool. `state` is the fp64 recurrence's, by row;
    rows of slot -1 are padding."""

    def __init__(self, is_kda, H, HV, K=128, V=128, L=16, B=7, act=torch.bfloat16,
                 ring=torch.float32, lower_bound=None, seed=0):
        self.is_kda, self.H, self.HV, self.K, self.V, self.L, self.B = \
            is_kda, H, HV, K, V, L, B
        self.act, self.lower_bound, self.seed = act, lower_bound, seed
        self.random = torch.Generator(CUDA).manual_seed(seed)
        self.slots = 2 * B + 3
        gate = (K,) if is_kda else ()
        # Slots further apart than they are large, as where pages hold more.
        pitch = HV * V * K + 64
        self.pool = self.normal(self.slots, pitch, deviation=0.3)
        self.states = self.pool.as_strided((self.slots, HV, V, K),
                                           (pitch, V * K, K, 1))
        self.before = self.states.clone()
        nan = float("nan")
        self.d = torch.full((self.slots, HV, L, V), nan, device=CUDA, dtype=ring)
        self.k = torch.full((self.slots, H, L, K), nan, device=CUDA, dtype=ring)
        self.g = torch.full((self.slots, HV, L, *gate), nan, device=CUDA)
        self.A_log = self.normal(HV, deviation=0.3)
        self.dt_bias = self.normal(HV, *gate, deviation=0.1)
        indices = torch.randperm(self.slots, generator=self.random, device=CUDA)
        indices[B // 2] = -1
        self.use_slots(indices[:B].to(torch.int32))
        # Inputs are parts of wider tensors.
        self.wide = torch.empty(B, 2 * H * K + HV * V + 96, device=CUDA,
                                dtype=act)
        self.mixed = self.wide[:, 64:-32]
        self.a = torch.empty(B, HV, *gate, device=CUDA, dtype=act)
        self.b = torch.empty(B, 2 * HV, device=CUDA, dtype=act)[:, HV:]
        self.out = torch.empty(B, 1, HV, V, device=CUDA, dtype=act)
        self.write_pos = torch.zeros(B, device=CUDA, dtype=torch.int32)
        self.force = torch.zeros(B, device=CUDA, dtype=torch.int32)
        self.tolerance = 2e-6 if act == torch.float32 else 4e-3
        self.next_tokens()

    def use_slots(self, indices):
        """The rows' slots, at the start."""
        self.indices, self.live = indices, indices >= 0
        self.state = self.states[indices.clamp(min=0)].double()

    def normal(self, *shape, deviation=1.0):
        return deviation * torch.randn(shape, generator=self.random, device=CUDA)

    def next_tokens(self):
        """New inputs at the same addresses."""
        self.mixed.copy_(self.normal(*self.mixed.shape))
        self.a.copy_(self.normal(*self.a.shape, deviation=0.5))
        self.b.copy_(self.normal(*self.b.shape))
        self.out.fill_(7)

    def inputs(self):
        return dict(mixed_qkv=self.mixed, a=self.a, b=self.b, A_log=self.A_log,
                    dt_bias=self.dt_bias, scale=self.K**-0.5,
                    initial_state=self.states, out=self.out,
                    ssm_state_indices=self.indices, use_qk_l2norm_in_kernel=True)

    def replay_inputs(self):
        more = {} if self.lower_bound is None else dict(
            lower_bound=self.lower_bound)
        return dict(self.inputs(), d_cache=self.d, k_cache=self.k,
                    g_cache=self.g, write_pos=self.write_pos,
                    force_flush=self.force, is_kda=self.is_kda, **more)

    def expect_step(self):
        """Moves the recurrence by a token; returns its outputs."""
        H, HV, K, V, B = self.H, self.HV, self.K, self.V, self.B
        q, k, v = self.mixed.double().split([H * K, H * K, HV * V], dim=1)
        unit = lambda x: x / torch.sqrt(
            (x * x).sum(-1, keepdim=True) + 1e-6)
        q = unit(q.view(B, H, K)).repeat_interleave(HV // H, 1) * K**-0.5
        k = unit(k.view(B, H, K)).repeat_interleave(HV // H, 1)
        x = self.a.double() + self.dt_bias.double()
        rate = self.A_log.double().exp()
        if self.is_kda:
            rate = rate[:, None]
        if self.lower_bound is None:
            g = -rate * torch.log1p(x.exp())
        else:
            g = self.lower_bound * torch.sigmoid(rate * x)
        g = g.unsqueeze(2) if self.is_kda else g[..., None, None]
        self.state *= g.exp()
        beta = torch.sigmoid(self.b.double())[..., None]
        d = beta * (v.view(B, HV, V) - torch.einsum("bhvk,bhk->bhv", self.state, k))
        self.state += d[..., None] * k[:, :, None]
        out = torch.einsum("bhvk,bhk->bhv", self.state, q)
        return out * self.live[:, None, None]

    def look_at_outputs(self):
        expected = self.expect_step()
        if self.out[~self.live].any():
            raise AssertionError("a padding row's output is not zero")
        within("out", self.out[:, 0], expected, self.tolerance)

    def look_at_states(self, rows, most=1e-6, slots=None):
        rows = rows & self.live
        if rows.any():
            slots = self.indices if slots is None else slots
            within("state", self.states[slots[rows].long()], self.state[rows],
                   most)

    def look_at_other_slots(self, used):
        """What no row names is as it was, the gaps between slots too."""
        others = torch.ones(self.slots, dtype=torch.bool, device=CUDA)
        others[used[used >= 0].long()] = False
        if not torch.equal(self.states[others], self.before[others]):
            raise AssertionError("a slot that no row names has changed")


def run_replay(pool, launch, most=1e-6):
    """Two rounds of the ring from cursors of their own, with forced flushes."""
    L = pool.L
    for step in range(2 * L + 3):
        pool.force.copy_(torch.rand(pool.B, generator=pool.random, device=CUDA)
                         < 0.1)
        pool.next_tokens()
        launch()
        pool.look_at_outputs()
        flushes = (pool.write_pos == L - 1) | (pool.force != 0)
        pool.look_at_states(flushes, most)
        pool.write_pos.copy_(torch.where(flushes, 0, pool.write_pos + 1))
    pool.look_at_other_slots(pool.indices)


SHAPES = {"GDN 16/32": (False, 16, 32), "GDN 2/8": (False, 2, 8),
          "KDA 32/32": (True, 32, 32)}


def each_shape(function):
    for (name, shape), act in itertools.product(
            SHAPES.items(), (torch.bfloat16, torch.float32)):
        def run(shape=shape, act=act):
            function(Pool(*shape, act=act))
        run.__name__ = f"{function.__name__}, {name}, {act}"
        CHECKS.append(run)
    return function


@each_shape
def replay(pool):
    run_replay(pool, lambda: fused_recurrent_linear_replayssm_decode(
        **pool.replay_inputs()))


@each_shape
def bound(pool):
    run_replay(pool, replayjit.bind(fused_recurrent_linear_replayssm_decode,
                                    **pool.replay_inputs()))


@each_shape
def captured(pool):
    """A graph of a bound launch; kernels are loaded before the capture."""
    launch = replayjit.bind(fused_recurrent_linear_replayssm_decode,
                            **pool.replay_inputs())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    run_replay(pool, graph.replay)


@each_shape
def captured_as_an_operator_of_torch_library(pool):
    step = torch_ops.fused_recurrent_linear_replayssm_decode
    before = [x.clone() for x in (pool.pool, pool.d, pool.k, pool.g)]
    step(**pool.replay_inputs())
    for x, saved in zip((pool.pool, pool.d, pool.k, pool.g), before):
        x.copy_(saved)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(**pool.replay_inputs())
    run_replay(pool, graph.replay)


@check
def compiled_by_torch_with_what_stands_around_it():
    for shape in SHAPES.values():
        pool = Pool(*shape)
        inputs = pool.replay_inputs()

        @torch.compile(fullgraph=True)
        def step(mixed):
            out, _ = torch_ops.fused_recurrent_linear_replayssm_decode(
                **{**inputs, "mixed_qkv": 2 * mixed / 2})
            return out * 1.5

        def launch():
            found = step(pool.mixed)
            within("what follows", found, pool.out.double() * 1.5, 1e-2)

        run_replay(pool, launch)


@each_shape
def gates_and_betas_that_are_given(pool):
    """Computed beforehand, as flash-linear-attention's callers do."""
    g = torch.empty_like(pool.a, dtype=torch.float32)
    beta = torch.empty(pool.B, pool.HV, device=CUDA)

    def launch():
        rate = pool.A_log.double().exp()
        rate = rate[:, None] if pool.is_kda else rate
        x = pool.a.double() + pool.dt_bias.double()
        g.copy_(-rate * torch.log1p(x.exp()))
        beta.copy_(torch.sigmoid(pool.b.double()))
        fused_recurrent_linear_replayssm_decode(**{
            **pool.replay_inputs(), "a": g, "b": beta, "A_log": None,
            "dt_bias": None}, log_decay=True, beta="given")

    run_replay(pool, launch)


@each_shape
def b_and_dt_bias_of_other_types_than_a_and_A_log(pool):
    pool.b, pool.dt_bias = pool.b.float(), pool.dt_bias.bfloat16()
    run_replay(pool, replayjit.bind(fused_recurrent_linear_replayssm_decode,
                                    **pool.replay_inputs()))


@check
def what_would_spoil_a_capture_is_refused():
    """A kernel that is not in memory, a pool and a plan; the capture goes on."""
    pool, other = Pool(False, 16, 32), Pool(False, 16, 32, L=13)
    launch = replayjit.bind(fused_recurrent_linear_replayssm_decode,
                            **pool.replay_inputs())
    groups = [(launch.spec, [(pool.states, pool.d, pool.k, pool.g)])]
    cursors = torch.zeros_like(pool.write_pos)
    made = replayjit.StatePool(groups, cursors)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for act in (lambda: replayjit.bind(
                        fused_recurrent_linear_replayssm_decode,
                        **other.replay_inputs()),
                    lambda: replayjit.StatePool(groups, cursors),
                    lambda: replayjit.StepPlan(made, pool.B)):
            try:
                act()
            except replayjit.InvalidArgument as refusal:
                print(f"    {refusal}")
            else:
                raise AssertionError("it was not refused")
        launch()
    run_replay(pool, graph.replay)
    replayjit.StepPlan(made, pool.B)


@each_shape
def packed(pool):
    inputs, operator = pool.inputs(), \
        fused_recurrent_gated_delta_rule_packed_decode
    if pool.is_kda:
        operator = fused_recurrent_kda_packed_decode
        inputs.update(a=pool.a.view(pool.B, -1), dt_bias=pool.dt_bias.view(-1))
    for _ in range(5):
        pool.next_tokens()
        operator(**inputs)
        pool.look_at_outputs()
        pool.look_at_states(pool.live)
    pool.look_at_other_slots(pool.indices)


@each_shape
def separate_qkv_on_another_stream(pool):
    H, HV, K, V = pool.H, pool.HV, pool.K, pool.V
    q, k, v = pool.mixed.split([H * K, H * K, HV * V], dim=1)
    inputs = pool.replay_inputs()
    inputs["mixed_qkv"] = (q.unflatten(1, (H, K)), k.unflatten(1, (H, K)),
                           v.unflatten(1, (HV, V)))
    stream = torch.cuda.Stream()

    def launch():
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            fused_recurrent_linear_replayssm_decode(**inputs)
        torch.cuda.current_stream().wait_stream(stream)

    run_replay(pool, launch)


@each_shape
def indices(pool):
    """Rings of their own, flushes to another slot, snapshots; int64 columns of
    a block table."""
    table = torch.full((pool.B, 5), -1, device=CUDA, dtype=torch.int64)
    slots = torch.randperm(pool.slots, generator=pool.random, device=CUDA)
    free = slots[~torch.isin(slots, pool.indices.long())]
    table[:, 0] = pool.indices
    table[:, 1] = torch.arange(pool.B, device=CUDA)  # rings
    table[:, 2] = free[:pool.B]
    table[0, 3] = free[pool.B]
    inputs = dict(pool.replay_inputs(), ssm_state_indices=table[:, 0],
                  ring_indices=table[:, 1], dst_indices=table[:, 2],
                  track_indices=table[:, 3])
    for cursor in range(pool.L):
        pool.write_pos.fill_(cursor)
        pool.next_tokens()
        fused_recurrent_linear_replayssm_decode(**inputs)
        pool.look_at_outputs()
        within("snapshot", pool.states[table[0, 3]], pool.state[0], 1e-6)
    pool.look_at_states(pool.live, slots=table[:, 2])
    pool.look_at_other_slots(table[:, 2:4].flatten())


@check
def circular_predecayed_rings():
    pool = Pool(True, 32, 32, L=8, lower_bound=-5.0, ring=torch.bfloat16)
    pool.tolerance = 8e-3
    base = torch.zeros_like(pool.write_pos)
    for step in range(3 * pool.L):
        last = step == 3 * pool.L - 1
        pool.force.fill_(last)
        pool.next_tokens()
        fused_recurrent_linear_replayssm_decode(
            **pool.replay_inputs(), cache_base=base, circular_replay=True,
            prefix_gate_cache=True, predecayed_k_cache=True)
        pool.look_at_outputs()
        full = pool.write_pos == pool.L - 1
        base.copy_(torch.where(full, (base + pool.write_pos) % pool.L, base))
        pool.write_pos.copy_(torch.where(full, 1, pool.write_pos + 1))
    pool.look_at_states(pool.live, most=1e-2)  # the ring is bfloat16


@check
def materialize_all_layers():
    pools = [Pool(False, 16, 32, seed=seed) for seed in range(3)]
    first = pools[0]
    for pool in pools:
        pool.use_slots(first.indices)
        for cursor in range(5):
            pool.write_pos.fill_(cursor)
            pool.next_tokens()
            fused_recurrent_linear_replayssm_decode(**pool.replay_inputs())
            pool.look_at_outputs()
    layers = replayjit.LayerTable([(p.states, p.d, p.k, p.g) for p in pools])
    slots = torch.arange(first.slots, device=CUDA, dtype=torch.int32)
    free = slots[~torch.isin(slots, first.indices)][:first.B]
    first.write_pos.fill_(5)
    replayjit.materialize(layers, first.indices, free, first.write_pos)
    for pool in pools:
        pool.look_at_states(pool.live, slots=free)
        pool.look_at_other_slots(free)


@check
def steps_in_a_graph():
    """begin, two layers and commit captured once; the cursors are the plan's."""
    layers = [Pool(False, 16, 32, seed=seed) for seed in range(2)]
    first = layers[0]
    layers[1].use_slots(first.indices)
    B, L = first.B, first.L
    cursors, expected = first.write_pos, torch.zeros_like(first.write_pos)
    keys = torch.arange(B, device=CUDA, dtype=torch.int32)
    spec = replayjit.bind(fused_recurrent_linear_replayssm_decode,
                          **first.replay_inputs()).spec
    plan = replayjit.StepPlan(replayjit.StatePool(
        [(spec, [(p.states, p.d, p.k, p.g) for p in layers])], cursors), B)
    launches = [replayjit.bind(fused_recurrent_linear_replayssm_decode,
                               **{**p.replay_inputs(), **plan.rows()})
                for p in layers]
    graph, slots = torch.cuda.CUDAGraph(), first.indices.clone()
    with torch.cuda.graph(graph):
        plan.begin_captured(keys, {"state": slots}, flush_mask=first.force)
        for launch in launches:
            launch()
        plan.commit_captured()
    # The graph reads them still, so the plan has them; memory that was free
    # would now be given out and be overwritten.
    plan.prepare_extend(keys.clone(), {"state": slots.clone()})
    del keys, slots
    others = [torch.full((B,), 10**6, device=CUDA, dtype=torch.int32)
              for _ in range(64)]
    for step in range(2 * L + 3):
        first.force.copy_(torch.rand(B, generator=first.random, device=CUDA)
                          < 0.1)
        for pool in layers:
            pool.next_tokens()
        plan.set_step(step + 1, B)
        graph.replay()
        flushes = (expected == L - 1) | (first.force != 0)
        for pool in layers:
            pool.look_at_outputs()
            pool.look_at_states(flushes)
        expected = torch.where(flushes, 0, expected + 1) * first.live
        if not torch.equal(cursors, expected):
            raise AssertionError(f"step {step}: cursors are {cursors.tolist()}, "
                                 f"not {expected.tolist()}")
    if plan.pool.poll():
        raise AssertionError(f"reported: {plan.pool.poll()}")


@check
def a_fold_in_a_graph():
    """prepare_extend captured once; only the plan keeps what it reads."""
    pool = Pool(False, 16, 32)
    keys = torch.arange(pool.B, device=CUDA, dtype=torch.int32)
    cursors = torch.zeros_like(keys)
    launch = replayjit.bind(fused_recurrent_linear_replayssm_decode,
                            **pool.replay_inputs())
    plan = replayjit.StepPlan(replayjit.StatePool(
        [(launch.spec, [(pool.states, pool.d, pool.k, pool.g)])], cursors),
        pool.B)
    launch = replayjit.bind(fused_recurrent_linear_replayssm_decode,
                            **{**pool.replay_inputs(), **plan.rows()})
    graph, read = torch.cuda.CUDAGraph(), (keys.clone(), pool.indices.clone())
    with torch.cuda.graph(graph):
        plan.prepare_extend(read[0], {"state": read[1]})
    plan.prepare_extend(keys, {"state": pool.indices})  # The latest inputs.
    del read
    others = [torch.full((pool.B,), 10**6, device=CUDA, dtype=torch.int32)
              for _ in range(64)]
    for step in range(1, 6):
        pool.next_tokens()
        with replayjit.plan_step(plan, step, keys, {"state": pool.indices}):
            launch()
        pool.look_at_outputs()
    graph.replay()
    pool.look_at_states(pool.live)
    if cursors.any() or plan.pool.poll():
        raise AssertionError(f"cursors {cursors.tolist()}, reported: "
                             f"{plan.pool.poll()}")


@check
def a_runtime_in_the_context_of_torch():
    """Made in a thread in which a context is current, and in one in which none
    is."""
    def first_use(pool, failures):
        try:
            fused_recurrent_linear_replayssm_decode(**pool.replay_inputs())
            torch.cuda.current_stream().synchronize()
        except Exception as problem:
            failures.append(problem)

    for in_a_thread in (False, True):
        pool, failures = Pool(False, 16, 32), []
        replayjit.runtime.cuda.cache_clear()
        torch.cuda.synchronize()
        if in_a_thread:
            thread = threading.Thread(target=first_use, args=(pool, failures))
            thread.start()
            thread.join()
        else:
            first_use(pool, failures)
        if failures:
            raise failures[0]
        pool.look_at_outputs()
    with torch.cuda.device(CUDA):
        runtime = replayjit.Runtime.cuda_current(CUDA.index)
    runtime.empty("float32", 4).write(bytes(16))


@check
def errors_are_reported_without_waiting():
    pool = Pool(False, 16, 32)
    word = replayjit.ErrorWord(replayjit.runtime.cuda(0))
    pool.write_pos[1] = pool.L
    launch = replayjit.bind(fused_recurrent_linear_replayssm_decode,
                            **pool.replay_inputs(), error_word=word, layer=3)
    launch()
    torch.cuda.synchronize()
    report = replayjit.poll_errors(word)
    if report != replayjit.Report(1, "write_pos", 1, 3, pool.L):
        raise AssertionError(f"the report is {report}")


@check
def prepare_all_in_parallel_while_this_thread_runs():
    specs = [replayjit.Spec.from_model("qwen3.5-27b", 8, ring_depth=depth)
             for depth in range(9, 17)]
    ticks = []
    thread = threading.Thread(target=lambda: replayjit.prepare_all(
        [(spec, rows) for spec in specs for rows in (1, 256)]))
    thread.start()
    while thread.is_alive():
        ticks.append(time.monotonic())
        time.sleep(0.001)
    gap = max((b - a for a, b in zip(ticks, ticks[1:])), default=0)
    print(f"    {ticks[-1] - ticks[0]:.1f} s, longest silence "
          f"{gap * 1e3:.0f} ms")
    if gap > 0.1:
        raise AssertionError("this thread could not run")


@check
def time_of_a_call():
    """Printed, not judged: host time of the operator and of a bound launch."""
    pool = Pool(False, 16, 32, B=1)
    launch = replayjit.bind(fused_recurrent_linear_replayssm_decode,
                            **pool.replay_inputs())
    stream = torch.cuda.current_stream().cuda_stream
    for name, call in [
            ("the operator", lambda: fused_recurrent_linear_replayssm_decode(
                **pool.replay_inputs())),
            ("a bound launch", launch),
            ("a bound launch, stream given", lambda: launch(stream))]:
        times = []
        for _ in range(21):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(100):
                call()
            times.append((time.perf_counter() - start) * 1e4)
        print(f"    {name}: {sorted(times)[10]:.2f} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filter", default="",
                        help="only checks whose name contains this")
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, "
          f"Python {sys.version.split()[0]}")
    passed = failed = 0
    for function in CHECKS:
        name = function.__name__.replace("_", " ").replace("torch.", "")
        if options.filter not in name:
            continue
        try:
            function()
        except Exception as problem:  # the next checks say more
            failed += 1
            print(f"FAIL {name}: {type(problem).__name__}: {problem}")
        else:
            passed += 1
            print(f"PASS {name}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
