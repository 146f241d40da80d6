"""One launch of a kernel against an fp64 computation of the same step."""

from types import SimpleNamespace

import torch

# Relative error left by one rounding to the type, and by fp32 arithmetic.
ROUNDING = {torch.float32: 2e-5, torch.float16: 5e-4, torch.bfloat16: 2.5e-3}
REBUILD_ERROR = 5e-3  # the rebuild readout rounds the operands of its dot


def reference(x, opt, before, rows, packed):
    """fp64 step of `rows` (all with a slot): out, S, S', and d, k, g as they are
    appended, with k also as it came. `before` holds the slots' state and rings in
    the order of `rows`; a ring starts at its row 0."""
    B, H, HV, K, V, L = len(rows), opt.H, opt.HV, opt.K, opt.V, opt.L
    group = HV // H
    qkv = x.q[rows].double()
    q, k, v = qkv.split([H * K, H * K, HV * V], dim=1)
    q, k, v = q.view(B, H, K), k.view(B, H, K), v.view(B, HV, V)
    if opt.norm:
        q = q / (q.square().sum(-1, keepdim=True) + 1e-6).sqrt()
        k = k / (k.square().sum(-1, keepdim=True) + 1e-6).sqrt()
    key = k
    q = (q * x.scale).repeat_interleave(group, 1)
    k = k.repeat_interleave(group, 1)
    # [B, HV, gates of a head]
    gate_in = (x.a[rows].double() + x.dtBias.double()).view(B, HV, -1)
    rate = x.aLog.double().exp()[:, None]
    if opt.bounded:
        g = opt.lower_bound * (rate * gate_in).sigmoid()
    else:
        g = -rate * torch.where(gate_in > 20, gate_in, gate_in.clamp(max=20).exp().log1p())
    beta = x.b[rows].double().sigmoid()

    S = before["state"].double()
    total = torch.zeros_like(g)  # of the gates in the ring
    if not packed:
        at, m = torch.arange(L, device=S.device), x.writePos[rows, None]
        valid = at < m  # [B, L]
        gates = before["gRing"].double().view(B, HV, L, -1)
        gates = torch.where(valid[:, None, :, None], gates, 0)
        if opt.ring_format == "raw":
            total = gates.sum(2)
            weight = (gates.flip(2).cumsum(2).flip(2) - gates).exp()  # exact enough in fp64
        else:
            total = torch.where((at == m - 1)[:, None, :, None], gates, 0).sum(2)
            weight = total[:, :, None].expand(gates.shape).exp()
            if opt.ring_format == "prefix":
                weight = weight * (-gates).exp()
        d_rows = torch.where(valid[:, None, :, None], before["dRing"].double(), 0)
        k_rows = torch.where(valid[:, None, :, None], before["kRing"].double(), 0)
        k_rows = k_rows.repeat_interleave(group, 1) * weight
        S = S * total.exp()[..., None, :] + d_rows.mT @ k_rows
    history = S
    S = S * g.exp()[..., None, :]
    d = beta[..., None] * (v - (S @ k[..., None])[..., 0])
    o = (S @ q[..., None])[..., 0] + d * (k * q).sum(-1, keepdim=True)
    S = S + d[..., None] * k[..., None, :]
    if opt.ring_format != "raw":
        # After a natural flush a circular ring starts with this token.
        starts = opt.circular & (x.writePos[rows] == L - 1)
        g = g + torch.where(starts[:, None, None], 0, total)
    stored_key = key * (-g).exp() if opt.ring_format == "predecayed" else key
    return SimpleNamespace(o=o, history=history, S=S, d=d, k=stored_key, plain_k=key, g=g)


def row_error(have, want):
    """The largest relative error of a row; NaN counts as infinite."""
    have, want = have.double().flatten(1), want.double().flatten(1)
    error = ((have - want).norm(dim=1) / want.norm(dim=1)).max().item()
    return error if error == error else float("inf")


def same_bits(a, b):
    view = torch.int32 if a.dtype.itemsize == 4 else torch.int16
    return torch.equal(a.view(view), b.view(view))


def check(kernel, pool):
    """Runs one launch over every ring phase, forced flushes and a padding row.
    Returns ({quantity: error}, [complaint])."""
    opt, t, L = pool.opt, pool.tensors, pool.opt.L
    phases = list(range(L)) + [m * (L - 1) // 7 for m in range(8)]
    forced = [0] * L + [1] * 8
    padding = L // 2
    phases.insert(padding, 0)
    forced.insert(padding, 0)
    rows = len(phases)
    assert rows <= pool.rows and 2 * rows < pool.slots
    # Live slots spread over the whole pool, the last one included; below each a
    # guard slot that nobody names.
    live = [pool.slots - 1 - i * ((pool.slots - 2) // rows) for i in range(rows)]
    live.pop(padding)
    guard = [s - 1 for s in live]
    as_int = lambda v: torch.tensor(v, device=opt.device, dtype=torch.int32)
    indices = as_int(live[:padding] + [-1] + live[padding:])
    x = pool.launch(indices, as_int(phases), as_int(forced))
    act = torch.tensor([r for r in range(rows) if r != padding], device=opt.device)
    live = torch.tensor(live, device=opt.device)
    guard = torch.tensor(guard, device=opt.device)

    names = ("state", "dRing", "kRing", "gRing")
    original = {n: getattr(t, n)[live] for n in names}
    # Ring rows >= write_pos are never read: NaN there must not show.
    unread = torch.arange(L, device=opt.device) >= x.writePos[act, None]  # [rows, L]
    t.dRing[live] = original["dRing"].masked_fill(unread[:, None, :, None], float("nan"))
    t.kRing[live] = original["kRing"].masked_fill(unread[:, None, :, None], float("nan"))
    unread = unread.view(len(act), 1, L, *([1] if opt.kda else []))
    t.gRing[live] = original["gRing"].masked_fill(unread, float("nan"))
    before = {n: getattr(t, n)[live] for n in names}
    guarded = {n: getattr(t, n)[guard] for n in names}
    x.out.fill_(float("nan"))

    kernel.launch(x)
    if opt.device == "cuda":
        torch.cuda.synchronize()

    after = {n: getattr(t, n)[live] for n in names}
    want = reference(x, opt, before, act, kernel.packed)
    forced = x.forceFlush[act] != 0
    full = x.writePos[act] == L - 1
    flush = torch.ones_like(forced) if kernel.packed else full | forced
    appends, stored = ~flush, want.S
    if opt.circular and not kernel.packed:  # a natural flush appends, and folds the rest
        appends = ~forced
        stored = torch.where((full & ~forced)[:, None, None, None], want.history, want.S)
    extra = REBUILD_ERROR if kernel.readout == "rebuild" else 0
    errors = {"out": row_error(x.out[act], want.o),
              "state": row_error(after["state"][flush], stored[flush])}
    limits = {"out": ROUNDING[x.out.dtype] + extra, "state": ROUNDING[t.state.dtype] + extra}
    wrong = []
    expect = {n: v.clone() for n, v in before.items()}
    expect["state"][flush] = after["state"][flush]
    if appends.any():
        at = torch.arange(len(act), device=opt.device)[appends]
        m = x.writePos[act][appends].long()
        for name, value, limit in (("dRing", want.d, ROUNDING[t.dRing.dtype] + extra),
                                   ("kRing", want.k, ROUNDING[t.kRing.dtype]),
                                   ("gRing", want.g, ROUNDING[torch.float32])):
            appended, value = after[name][at, :, m], value[appends]
            expect[name][at, :, m] = appended
            if name == "kRing" and opt.ring_format == "predecayed":
                # As what it stands for, head by head: exp(-P) differs widely.
                appended = (appended.double() * want.g[appends].exp()).flatten(0, 1)
                value = want.plain_k[appends].flatten(0, 1)
            errors[name], limits[name] = row_error(appended, value), limit
    for name, error in errors.items():
        if not error <= limits[name]:
            wrong.append(f"{name}: relative error {error:.2e} > {limits[name]:.1e}")
    for name in names:
        if not same_bits(after[name], expect[name]):
            wrong.append(f"{name}: changed where it must not")
        if not same_bits(getattr(t, name)[guard], guarded[name]):
            wrong.append(f"{name}: a slot not named by any row changed")
    if not bool((x.out[padding] == 0).all()):
        wrong.append("out: the padding row is not zero")
    for name in names:
        getattr(t, name)[live] = original[name]
    return errors, wrong
