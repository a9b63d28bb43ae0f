"""Iterations by hand, and the largest stable step against what the curvature allows."""

import numpy as np
import pytest
import torch

from advlab.core.randomness import generators
from advlab.papers.generalization.experiments import linf_iterations as experiment


def test_iterations_count_to_the_first_loss_near_the_last():
    losses = torch.tensor([[9.0, 9.0], [4.0, 1.0], [1.2, 1.0], [1.0, 1.0]])
    assert experiment.iterations(losses, 0.5).tolist() == [2, 1]
    assert experiment.iterations(losses, 0.1).tolist() == [3, 1]


def test_stable_is_to_go_one_way_and_not_beyond_the_start():
    t = torch.arange(60.0, dtype=torch.float64)
    falling, climbing = 1 + 0.9**t, 2 - 0.5 * 0.9**t
    climbing[0] = 3.0
    swinging, lost = 1 + 0.9**t + 0.01 * (-1.0) ** t, 1 + 1.1**t
    found = experiment.stable(
        torch.stack([falling, climbing, swinging, lost, lost * float("nan")], 1)
    )
    assert found.tolist() == [True, True, False, False, False]


def test_without_an_attack_the_largest_stable_step_is_that_of_least_squares(monkeypatch):
    """Gradient descent on |X theta - y|^2/n is stable up to n/lambda_max(X'X)."""
    monkeypatch.setattr(experiment, "LENGTH", 1e-9)
    case = experiment.Case(attack="l2", xi=0.4, n=60, steps=60, halvings=16, replicates=3)
    found = experiment.compute(case).sort("seed")["eta"].to_numpy()
    x, _ = case.law.sample_stack(generators(experiment.NAME, "data", seeds=case.seeds))
    edges = [case.n / np.linalg.norm(one.numpy(), 2) ** 2 for one in x]
    assert found == pytest.approx(edges, rel=0.01)
