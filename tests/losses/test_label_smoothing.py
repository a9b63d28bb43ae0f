"""Label smoothing against torch's own, and against cross entropy where there is none."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from advlab.core.errors import AdvlabError
from advlab.losses import LOSSES, LabelSmoothing, cross_entropy, resolve


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(2, 7),
    st.floats(0.0, 0.99),
    st.sampled_from([0.1, 1.0, 30.0]),
)
def test_value_and_gradient_are_those_of_torch(seed, classes, smoothing, scale):
    rng = torch.Generator().manual_seed(seed)
    z = scale * torch.randn(6, classes, generator=rng, dtype=torch.float64)
    y = torch.randint(0, classes, (6,), generator=rng)
    grads = []
    for loss in (
        LabelSmoothing(smoothing),
        lambda z, y: F.cross_entropy(z, y, label_smoothing=smoothing, reduction="none"),
    ):
        leaf = z.clone().requires_grad_()
        value = loss(leaf, y)
        grads.append((value.detach(), *torch.autograd.grad(value.sum(), leaf)))
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-8, atol=1e-8)


def test_no_smoothing_is_cross_entropy_to_the_last_bit():
    z = 50 * torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    y = torch.arange(40) % 5
    assert torch.equal(LabelSmoothing(0.0)(z, y), cross_entropy(z, y))
    assert not torch.equal(LabelSmoothing(0.1)(z, y), cross_entropy(z, y))


def test_it_has_a_name_and_refuses_what_is_no_share():
    assert resolve("label_smoothing") == LabelSmoothing(0.1) == LOSSES["label_smoothing"]
    for wrong in (1.0, -0.1, "a", True):
        with pytest.raises(AdvlabError, match="from 0 to below 1"):
            LabelSmoothing(wrong)
    with pytest.raises(AdvlabError, match="whole-number labels"):
        LabelSmoothing()(torch.zeros(3, 2), torch.ones(3))
