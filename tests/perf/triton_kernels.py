"""Triton decode kernels of Gated DeltaNet (GDN) and Kimi Delta Attention (KDA)
that the generated ones are timed against.

    packed_decode   reads S, updates it and writes it back at every step
    replay_decode   checkpoint + ring of the last write_pos tokens; the state is
                    rebuilt tile by tile on tensor cores, written on a flush only

Arguments and layouts are those of DecodeArgs (kernels/Decode/DecodeSpec.h); both
take any float dtype for activations, output, state and ring. One token of one
value head:

    alpha = exp(g)
    d  = beta * (v - alpha S k)
    o  = alpha S q + d (k . q)
    S' = alpha S + d k^T

where S = A S0 + sum_j W_j d_j k_j^T over ring rows j < write_pos, A is exp of
the sum of all their gates and W_j exp of the sum of the gates after j. alpha, A
and W_j are numbers in GDN; in KDA they are vectors over K that scale the columns
of S and the channels of k_j.
"""

import triton
import triton.language as tl

# (V tile, warps) tried for each kernel; the fastest one per batch size counts.
PACKED_CANDIDATES = [(8, 1), (16, 1), (16, 2), (32, 1), (32, 2), (32, 4), (64, 4), (128, 8)]
REPLAY_CANDIDATES = [(16, 1), (32, 1), (32, 2), (64, 1), (64, 2), (64, 4), (128, 4)]


@triton.jit
def gdc_wait():
    """Until the kernel before this one has ended; Triton's own differs from release to
    release."""
    tl.inline_asm_elementwise("griddepcontrol.wait; // dummy $0", "=r", [], dtype=tl.int32,
                              is_pure=False, pack=1)


@triton.jit
def gdc_launch_dependents():
    """The next kernel may start."""
    tl.inline_asm_elementwise("griddepcontrol.launch_dependents; // dummy $0", "=r", [],
                              dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def _gate(a, a_log, dt_bias, lower_bound, BOUNDED: tl.constexpr):
    """g = -exp(A_log) * softplus(a + dt_bias) in fp32; BOUNDED: lower_bound *
    sigmoid(exp(A_log) * (a + dt_bias))."""
    x = a.to(tl.float32) + dt_bias.to(tl.float32)
    rate = tl.exp(a_log.to(tl.float32))
    if BOUNDED:
        g = lower_bound * tl.sigmoid(rate * x)
    else:
        g = -rate * tl.where(x > 20.0, x, tl.log(1.0 + tl.exp(tl.minimum(x, 20.0))))
    return g


@triton.jit
def packed_decode(qkv_ptr, a_ptr, b_ptr, a_log_ptr, dt_bias_ptr, out_ptr, state_ptr,
                  index_ptr, qkv_stride, a_stride, b_stride, out_stride, index_stride,
                  state_pitch, scale, lower_bound,
                  H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
                  BK: tl.constexpr, BV: tl.constexpr, NORM: tl.constexpr,
                  KDA: tl.constexpr, BOUNDED: tl.constexpr, OVERLAP: tl.constexpr):
    """Grid (V tiles, B, HV); BK = next power of two of K. With OVERLAP it is launched
    programmatically: it lets the next kernel start, and reads its token only once the
    kernel before it has ended."""
    if OVERLAP:
        gdc_launch_dependents()
    row = tl.program_id(1).to(tl.int64)
    hv = tl.program_id(2)
    h = hv // (HV // H)
    k_at = tl.arange(0, BK)
    v_at = tl.program_id(0) * BV + tl.arange(0, BV)
    k_ok = (k_at < K) | (BK == K)
    v_ok = (v_at < V) | (V % BV == 0)
    tile_ok = v_ok[:, None] & k_ok[None, :]
    out_at = out_ptr + row * out_stride + hv * V + v_at

    slot = tl.load(index_ptr + row * index_stride).to(tl.int64)
    if slot < 0:
        if OVERLAP:
            gdc_wait()
        tl.store(out_at, tl.zeros([BV], out_ptr.dtype.element_ty), mask=v_ok)
        return

    # The long load first, everything small in its shadow.
    state_at = (state_ptr + slot * state_pitch + hv * (V * K)
                + v_at[:, None] * K + k_at[None, :])
    s = tl.load(state_at, mask=tile_ok, other=0.0).to(tl.float32)
    a_log = tl.load(a_log_ptr + hv)
    if KDA:
        dt_bias = tl.load(dt_bias_ptr + hv * K + k_at, mask=k_ok, other=0.0)
    else:
        dt_bias = tl.load(dt_bias_ptr + hv)
    if OVERLAP:
        gdc_wait()

    qkv_at = qkv_ptr + row * qkv_stride
    q = tl.load(qkv_at + h * K + k_at, mask=k_ok, other=0.0).to(tl.float32)
    k = tl.load(qkv_at + H * K + h * K + k_at, mask=k_ok, other=0.0).to(tl.float32)
    v = tl.load(qkv_at + 2 * H * K + hv * V + v_at, mask=v_ok, other=0.0).to(tl.float32)
    if KDA:
        a = tl.load(a_ptr + row * a_stride + hv * K + k_at, mask=k_ok, other=0.0)
    else:
        a = tl.load(a_ptr + row * a_stride + hv)
    b = tl.load(b_ptr + row * b_stride + hv)
    alpha = tl.exp(_gate(a, a_log, dt_bias, lower_bound, BOUNDED))
    beta = tl.sigmoid(b.to(tl.float32))
    if NORM:
        q *= tl.rsqrt(tl.sum(q * q, 0) + 1e-6)
        k *= tl.rsqrt(tl.sum(k * k, 0) + 1e-6)
    q *= scale

    # Both contractions before d: they do not wait for each other.
    if KDA:
        s *= alpha[None, :]
    else:
        s *= alpha
    s_k = tl.sum(s * k[None, :], 1)
    s_q = tl.sum(s * q[None, :], 1)
    d = beta * (v - s_k)
    o = s_q + d * tl.sum(k * q, 0)
    s += d[:, None] * k[None, :]
    tl.store(state_at, s.to(state_ptr.dtype.element_ty), mask=tile_ok)
    tl.store(out_at, o.to(out_ptr.dtype.element_ty), mask=v_ok)


@triton.jit
def _rebuild(s0_at, k_ring_at, tile_ok, ring_ok, wd, decay, DOT: tl.constexpr):
    """One K tile of S: decay * S0 + (W d)^T k, the product on tensor cores, which
    cut fp32 operands off to tf32."""
    s0 = tl.load(s0_at, mask=tile_ok, other=0.0).to(tl.float32)
    k = tl.load(k_ring_at, mask=ring_ok, other=0.0).to(DOT)
    return tl.dot(wd, k, input_precision="tf32") + s0 * decay


@triton.jit
def _rebuild_kda(s0_at, k_ring_at, g_ring_at, tile_ok, ring_ok, later_ok, d,
                 K: tl.constexpr, DOT: tl.constexpr):
    """The same with a gate per channel: decay * S0 + d^T (W k)."""
    s0 = tl.load(s0_at, mask=tile_ok, other=0.0).to(tl.float32)
    g_rows = tl.load(g_ring_at, mask=ring_ok, other=0.0)
    g_later = tl.load(g_ring_at + K, mask=later_ok, other=0.0)
    k = tl.load(k_ring_at, mask=ring_ok, other=0.0).to(tl.float32)
    wk = k * tl.exp(tl.cumsum(g_later, 0, reverse=True))
    decay = tl.exp(tl.sum(g_rows, 0))
    return tl.dot(d, wk.to(DOT), input_precision="tf32") + s0 * decay[None, :]


@triton.jit
def replay_decode(qkv_ptr, a_ptr, b_ptr, a_log_ptr, dt_bias_ptr, out_ptr, state_ptr,
                  d_ring_ptr, k_ring_ptr, g_ring_ptr, index_ptr, write_pos_ptr,
                  force_flush_ptr, qkv_stride, a_stride, b_stride, out_stride,
                  index_stride, state_pitch, d_pitch, k_pitch, g_pitch, scale,
                  lower_bound, H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
                  L: tl.constexpr, BK: tl.constexpr, BKT: tl.constexpr,
                  BV: tl.constexpr, BL: tl.constexpr, NORM: tl.constexpr,
                  FORCE: tl.constexpr, KDA: tl.constexpr, BOUNDED: tl.constexpr):
    """Grid (V tiles, B, HV); BK, BL = next powers of two of K and L (BL >= 16),
    BKT = columns per K tile."""
    tile = tl.program_id(0)
    row = tl.program_id(1).to(tl.int64)
    hv = tl.program_id(2)
    h = hv // (HV // H)
    DOT: tl.constexpr = out_ptr.dtype.element_ty
    v_at = tile * BV + tl.arange(0, BV)
    v_ok = (v_at < V) | (V % BV == 0)
    out_at = out_ptr + row * out_stride + hv * V + v_at

    slot = tl.load(index_ptr + row * index_stride).to(tl.int64)
    if slot < 0:
        tl.store(out_at, tl.zeros([BV], DOT), mask=v_ok)
        return

    m = tl.load(write_pos_ptr + row)
    flush = m == L - 1
    if FORCE:
        flush = flush | (tl.load(force_flush_ptr + row) != 0)

    # All small loads are issued before the first value is waited for.
    qkv_at = qkv_ptr + row * qkv_stride
    q_at = qkv_at + h * K
    k_at = qkv_at + H * K + h * K
    kk = tl.arange(0, BK)
    kk_ok = (kk < K) | (BK == K)
    q_all = tl.load(q_at + kk, mask=kk_ok, other=0.0).to(tl.float32)
    k_all = tl.load(k_at + kk, mask=kk_ok, other=0.0).to(tl.float32)
    v = tl.load(qkv_at + 2 * H * K + hv * V + v_at, mask=v_ok, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + row * b_stride + hv)
    a_log = tl.load(a_log_ptr + hv)
    j = tl.arange(0, BL)
    j_ok = j < m
    d_at = d_ring_ptr + slot * d_pitch + hv * (L * V)
    if KDA:
        a_at = a_ptr + row * a_stride + hv * K
        bias_at = dt_bias_ptr + hv * K
        g_at = g_ring_ptr + slot * g_pitch + hv * (L * K)
    else:
        a = tl.load(a_ptr + row * a_stride + hv)
        dt_bias = tl.load(dt_bias_ptr + hv)
        g_at = g_ring_ptr + slot * g_pitch + hv * L
        g_rows = tl.load(g_at + j, mask=j_ok, other=0.0)
        g_later = tl.load(g_at + j + 1, mask=j + 1 < m, other=0.0)
    d_rows = tl.load(d_at + j[None, :] * V + v_at[:, None],
                     mask=j_ok[None, :] & v_ok[:, None], other=0.0).to(tl.float32)

    # History: the decay of S0 and the scaled d rows [BV, BL]. KDA scales k.
    if KDA:
        wd = d_rows.to(DOT)
    else:
        decay = tl.exp(tl.sum(g_rows, 0))
        w = tl.exp(tl.cumsum(g_later, 0, reverse=True))
        wd = (d_rows * w[None, :]).to(DOT)

    # This token.
    q_scale = scale
    k_scale = 1.0
    if NORM:
        q_scale *= tl.rsqrt(tl.sum(q_all * q_all, 0) + 1e-6)
        k_scale *= tl.rsqrt(tl.sum(k_all * k_all, 0) + 1e-6)
    kq = tl.sum(k_all * q_all, 0) * q_scale * k_scale
    if not KDA:
        g = _gate(a, a_log, dt_bias, lower_bound, BOUNDED)
        alpha = tl.exp(g)
    beta = tl.sigmoid(b.to(tl.float32))

    # Readout: every K tile of S is formed and contracted at once.
    state_base = state_ptr + slot * state_pitch + hv * (V * K)
    k_base = k_ring_ptr + slot * k_pitch + h * (L * K)
    s_q = tl.zeros([BV], tl.float32)
    s_k = tl.zeros([BV], tl.float32)
    for t in tl.static_range(BK // BKT):
        kt = t * BKT + tl.arange(0, BKT)
        kt_ok = (kt < K) | (BK == K)
        s_at = state_base + v_at[:, None] * K + kt[None, :]
        tile_ok = v_ok[:, None] & kt_ok[None, :]
        ring_at = j[:, None] * K + kt[None, :]
        ring_ok = j_ok[:, None] & kt_ok[None, :]
        if KDA:
            s = _rebuild_kda(s_at, k_base + ring_at, g_at + ring_at, tile_ok, ring_ok,
                             (j + 1 < m)[:, None] & kt_ok[None, :], wd, K, DOT)
            alpha_t = tl.exp(_gate(tl.load(a_at + kt, mask=kt_ok, other=0.0), a_log,
                                   tl.load(bias_at + kt, mask=kt_ok, other=0.0),
                                   lower_bound, BOUNDED))
            s *= alpha_t[None, :]
        else:
            s = _rebuild(s_at, k_base + ring_at, tile_ok, ring_ok, wd, decay, DOT)
        q = tl.load(q_at + kt, mask=kt_ok, other=0.0).to(tl.float32) * q_scale
        k = tl.load(k_at + kt, mask=kt_ok, other=0.0).to(tl.float32) * k_scale
        s_q += tl.sum(s * q[None, :], 1)
        s_k += tl.sum(s * k[None, :], 1)
    if not KDA:
        s_q *= alpha
        s_k *= alpha
    d = beta * (v - s_k)
    tl.store(out_at, (s_q + d * kq).to(DOT), mask=v_ok)

    if flush:
        for t in tl.static_range(BK // BKT):
            kt = t * BKT + tl.arange(0, BKT)
            kt_ok = (kt < K) | (BK == K)
            tile_ok = v_ok[:, None] & kt_ok[None, :]
            s_at = state_base + v_at[:, None] * K + kt[None, :]
            ring_at = j[:, None] * K + kt[None, :]
            ring_ok = j_ok[:, None] & kt_ok[None, :]
            if KDA:
                s = _rebuild_kda(s_at, k_base + ring_at, g_at + ring_at, tile_ok, ring_ok,
                                 (j + 1 < m)[:, None] & kt_ok[None, :], wd, K, DOT)
                alpha_t = tl.exp(_gate(tl.load(a_at + kt, mask=kt_ok, other=0.0), a_log,
                                       tl.load(bias_at + kt, mask=kt_ok, other=0.0),
                                       lower_bound, BOUNDED))
                s *= alpha_t[None, :]
            else:
                s = alpha * _rebuild(s_at, k_base + ring_at, tile_ok, ring_ok, wd,
                                     decay, DOT)
            k = tl.load(k_at + kt, mask=kt_ok, other=0.0).to(tl.float32) * k_scale
            s += d[:, None] * k[None, :]
            tl.store(s_at, s.to(state_ptr.dtype.element_ty), mask=tile_ok)
    else:
        tl.store(d_at + m * V + v_at, d.to(d_ring_ptr.dtype.element_ty), mask=v_ok)
        if tile == 0:
            if KDA:
                g_all = _gate(tl.load(a_at + kk, mask=kk_ok, other=0.0), a_log,
                              tl.load(bias_at + kk, mask=kk_ok, other=0.0),
                              lower_bound, BOUNDED)
                tl.store(g_at + m * K + kk, g_all, mask=kk_ok)
            else:
                tl.store(g_at + m, g)
            if hv % (HV // H) == 0:
                tl.store(k_base + m * K + kk,
                         (k_all * k_scale).to(k_ring_ptr.dtype.element_ty), mask=kk_ok)


@triton.jit
def read_stream(src_ptr, out_ptr, BLOCK: tl.constexpr):
    """Reads BLOCK fp32 values and stores their sum: a plain read stream."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0), tl.sum(tl.load(src_ptr + at), 0))


@triton.jit
def copy_end(src_ptr, dst_ptr, count, BLOCK: tl.constexpr, EARLY: tl.constexpr,
             OVERLAP: tl.constexpr):
    """Either end of a chain: copies `count` elements. With OVERLAP the next kernel may
    start at once (EARLY), or when the kernel before this one has ended."""
    if OVERLAP and EARLY:
        gdc_launch_dependents()
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if OVERLAP:
        gdc_wait()
    if OVERLAP and not EARLY:
        gdc_launch_dependents()
    tl.store(dst_ptr + at, tl.load(src_ptr + at, mask=at < count), mask=at < count)


def launch_copy(src, dst, early, overlap):
    """Copies a tensor; `overlap`: as a programmatic launch."""
    block = 256
    copy_end[(triton.cdiv(src.numel(), block),)](
        src, dst, src.numel(), BLOCK=block, EARLY=early, OVERLAP=overlap, num_warps=1,
        launch_pdl=overlap)


def launch_packed(x, grid_rows, tile, warps, scale, norm, overlaps=False,
                  programmatic=False):
    """Launches packed_decode over the first grid_rows rows of the buffers `x`. One that
    overlaps may be a programmatic launch."""
    K, V = x.state.shape[3], x.state.shape[2]
    packed_decode[(triton.cdiv(V, tile), grid_rows, x.HV)](
        x.q, x.a, x.b, x.aLog, x.dtBias, x.out, x.state, x.stateIndices,
        x.q.stride(0), x.a.stride(0), x.b.stride(0), x.out.stride(0),
        x.stateIndices.stride(0), x.state.stride(0), scale, x.lowerBound,
        H=x.H, HV=x.HV, K=K, V=V, BK=triton.next_power_of_2(K), BV=tile, NORM=norm,
        KDA=x.kda, BOUNDED=x.bounded, OVERLAP=overlaps, num_warps=warps,
        **({"launch_pdl": True} if programmatic else {}))


def launch_replay(x, grid_rows, tile, warps, scale, norm):
    """Launches replay_decode over the first grid_rows rows of the buffers `x`."""
    K, V, L = x.state.shape[3], x.state.shape[2], x.dRing.shape[2]
    BK = triton.next_power_of_2(K)
    replay_decode[(triton.cdiv(V, tile), grid_rows, x.HV)](
        x.q, x.a, x.b, x.aLog, x.dtBias, x.out, x.state, x.dRing, x.kRing,
        x.gRing, x.stateIndices, x.writePos, x.forceFlush,
        x.q.stride(0), x.a.stride(0), x.b.stride(0), x.out.stride(0),
        x.stateIndices.stride(0), x.state.stride(0), x.dRing.stride(0),
        x.kRing.stride(0), x.gRing.stride(0), scale, x.lowerBound,
        H=x.H, HV=x.HV, K=K, V=V, L=L, BK=BK, BKT=max(BK // 2, 16), BV=tile,
        BL=max(16, triton.next_power_of_2(L)), NORM=norm, FORCE=True,
        KDA=x.kda, BOUNDED=x.bounded, num_warps=warps)
