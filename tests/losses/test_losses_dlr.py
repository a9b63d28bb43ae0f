"""The difference of logits ratio: as published where it is, and sound where it is not."""

import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.losses import dlr, margin, resolve, targeted_dlr


def scores(classes: int, rows: int = 40, seed: int = 0):
    rng = torch.Generator().manual_seed(seed)
    z = torch.randn(rows, classes, generator=rng, dtype=torch.float64)
    y = torch.randint(0, classes, (rows,), generator=rng)
    return z, y, (y + torch.randint(1, classes, (rows,), generator=rng)) % classes


@pytest.mark.parametrize("classes", [3, 4, 5, 10])
def test_dlr_is_the_published_ratio(classes):
    z, y, _ = scores(classes)
    for row, label, value in zip(z.tolist(), y.tolist(), dlr(z, y).tolist(), strict=True):
        ranked = sorted(row, reverse=True)
        rival = max(score for k, score in enumerate(row) if k != label)
        assert value == pytest.approx(-(row[label] - rival) / (ranked[0] - ranked[2]))
    torch.testing.assert_close(dlr(7 * z + 3, y), dlr(z, y))


@pytest.mark.parametrize("classes", [4, 5, 10])
def test_targeted_dlr_is_the_published_ratio(classes):
    z, y, t = scores(classes)
    for row, label, to, value in zip(
        z.tolist(), y.tolist(), t.tolist(), targeted_dlr(z, y, t).tolist(), strict=True
    ):
        ranked = sorted(row, reverse=True)
        width = ranked[0] - (ranked[2] + ranked[3]) / 2
        assert value == pytest.approx(-(row[label] - row[to]) / width)
    torch.testing.assert_close(targeted_dlr(7 * z + 3, y, t), targeted_dlr(z, y, t))


def test_few_classes_have_a_slope_that_leads_to_the_target():
    """Every right answer of two or three classes, target last or not: z_t up, z_y down."""
    for classes in (2, 3):
        z, y, t = scores(classes, rows=200)
        y = z.argmax(1)
        t = torch.where(t == y, (y + 1) % classes, t)
        z.requires_grad_()
        for value in (dlr(z, y), targeted_dlr(z, y, t)):
            (slope,) = torch.autograd.grad(value.sum(), z)
            assert (slope.gather(1, y[:, None]) < 0).all()
            assert (slope.abs().amax(1) > 1e-6).all()
        assert (slope.gather(1, t[:, None]) > 0).all()
        assert (targeted_dlr(z, y, t) < 0).all()


def test_two_classes_and_one_output_are_the_margin():
    z, y, t = scores(2)
    assert torch.equal(dlr(z, y), margin(z, y))
    assert torch.equal(targeted_dlr(z, y, t), margin(z, y))
    f, sign = torch.randn(9), torch.tensor([1.0, -1, 1] * 3)
    assert torch.equal(dlr(f, sign), -sign * f)
    assert torch.equal(dlr(f[:, None], sign), -sign * f)


@pytest.mark.parametrize("classes", [2, 3, 4, 7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ties_and_extremes_give_finite_values_and_slopes(classes, dtype):
    rows = [[0.0] * classes, [1e-30] + [0.0] * (classes - 1), [1e4] * (classes - 1) + [-1e4]]
    z = torch.tensor(rows, dtype=dtype, requires_grad=True)
    for label in range(classes):
        y = torch.full((3,), label)
        for value in (dlr(z, y), targeted_dlr(z, y, (y + 1) % classes)):
            (slope,) = torch.autograd.grad(value.sum(), z)
            assert value.isfinite().all()
            assert slope.isfinite().all()


def test_it_has_a_name_and_refuses_labels_without_a_score():
    assert resolve("dlr") is dlr
    z, y, t = scores(4)
    with pytest.raises(AdvlabError, match=r"labels must be 0 \.\. 3"):
        targeted_dlr(z, y, t + 4)
