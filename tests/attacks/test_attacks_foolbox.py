"""Our PGD and foolbox's take the same path from the same start."""

import warnings

import pytest
import torch
from torch import nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # foolbox imports old scipy names
    import foolbox as fb

from advlab.attacks import PGD
from advlab.losses import ModelLoss, cross_entropy
from advlab.threats import Ball

THEIRS = {"l2": fb.attacks.L2ProjectedGradientDescentAttack, "linf": fb.attacks.LinfPGD}


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_same_start_same_end(norm):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 20), nn.Tanh(), nn.Linear(20, 4)).eval()
    x, y = torch.rand(40, 12), torch.randint(0, 4, (40,))
    radius = {"l2": 0.5, "linf": 0.1}[norm]
    theirs = THEIRS[norm](rel_stepsize=0.1, steps=20, random_start=False)
    wrapped = fb.PyTorchModel(model, bounds=(-10, 10), device="cpu")
    found = theirs.run(wrapped, x, fb.criteria.Misclassification(y), epsilon=radius)
    ours = PGD(steps=20, step_size=0.1, random_start=False, jump=False)
    result = ours(
        ModelLoss(model, y, cross_entropy),
        x,
        Ball(norm=norm, radius=radius),
        rng=torch.Generator().manual_seed(0),
    )
    torch.testing.assert_close(result.x, found, atol=1e-5, rtol=1e-5)
    with torch.no_grad():
        end = nn.functional.cross_entropy(model(found), y, reduction="none")
    torch.testing.assert_close(result.loss, end, atol=1e-5, rtol=1e-5)
