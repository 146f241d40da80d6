"""transformers' Qwen3-Next, decoding with replayjit.

    python examples/qwen3_next.py            # a tiny model with random weights

Prefill is the model's own. From then on each linear layer keeps its state here:
a checkpoint, and a ring of what the last L tokens added. On a GPU the kernels run
there; without one, in the emulation. Needs torch and transformers 4.57.
"""

import torch
import transformers

import replayjit


class ReplayDecode:
    """Stands in for `recurrent_gated_delta_rule` of one layer: a token of each of B
    sequences, which go on in the same order until the next prefill. The cache
    holds the state of the last prefill, which says where these start."""

    def __init__(self, ring_depth=4):
        self.L, self.prefilled = ring_depth, None

    def start(self, state, act):
        """From the state after a prefill, [B, HV, K, V]."""
        B, HV, K, V = state.shape
        new = lambda *shape, dtype=torch.float32: torch.zeros(
            *shape, dtype=dtype, device=state.device)
        # Ours is [B, HV, V, K]; a slot for each sequence.
        self.state = state.float().transpose(2, 3).contiguous()
        self.rings = (new(B, HV, self.L, V), new(B, HV, self.L, K),
                      new(B, HV, self.L))
        self.slots = torch.arange(B, dtype=torch.int32, device=state.device)
        self.write_pos = new(B, dtype=torch.int32)
        self.out = new(B, 1, HV, V, dtype=act)
        self.prefilled = state

    def __call__(self, query, key, value, g, beta, initial_state,
                 output_final_state=True, use_qk_l2norm_in_kernel=False):
        if initial_state is not self.prefilled:
            self.start(initial_state, query.dtype)
        q, k, v = (x[:, 0].contiguous() for x in (query, key, value))
        replayjit.fused_recurrent_linear_replayssm_decode(
            (q, k, v), g[:, 0].contiguous(), beta[:, 0].contiguous(), None, None,
            q.shape[-1] ** -0.5, self.state, *self.rings, self.out, self.slots,
            self.write_pos, log_decay=True, beta="given",
            use_qk_l2norm_in_kernel=use_qk_l2norm_in_kernel)
        # The row that was full has been folded into the checkpoint.
        self.write_pos.add_(1).remainder_(self.L)
        return self.out.clone(), initial_state


def use_replayjit(model, ring_depth=4):
    """All linear layers of the model decode with replayjit; returns how many."""
    layers = [layer.linear_attn for layer in model.model.layers
              if hasattr(layer, "linear_attn")]
    for layer in layers:
        layer.recurrent_gated_delta_rule = ReplayDecode(ring_depth)
    return len(layers)


def tiny_model(**changes):
    """Random weights, heads of 16 to 32; three linear layers and one other."""
    config = transformers.Qwen3NextConfig(**{**dict(
        vocab_size=128, hidden_size=64, intermediate_size=64,
        num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1,
        head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=16, linear_value_head_dim=32, num_experts=4,
        num_experts_per_tok=2, moe_intermediate_size=32,
        shared_expert_intermediate_size=32), **changes})
    torch.manual_seed(0)
    return transformers.Qwen3NextForCausalLM(config).eval()


@torch.no_grad()
def logits_of(model, prompt, tokens):
    """The logits after the prompt and after each of `tokens`, [B, n]."""
    result = model(prompt, use_cache=True)
    found = [result.logits[:, -1]]
    for at in range(tokens.shape[1]):
        result = model(tokens[:, at:at + 1], use_cache=True,
                       past_key_values=result.past_key_values,
                       cache_position=torch.tensor([prompt.shape[1] + at],
                                                   device=prompt.device))
        found.append(result.logits[:, -1])
    return torch.stack(found)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = tiny_model().to(device)
    prompt = torch.randint(128, (2, 9), device=device)
    tokens = torch.randint(128, (2, 10), device=device)
    expected = logits_of(model, prompt, tokens)
    layers = use_replayjit(model)
    found = logits_of(model, prompt, tokens)
    error = (found - expected).abs().max() / expected.abs().max()
    print(f"{layers} layers, {tokens.shape[1]} tokens on {device}: the logits differ "
          f"by {error:.1e} of the largest")


if __name__ == "__main__":
    main()
