"""Interventions on trained networks: what each removes, by how much, and along which direction."""

import pytest
import torch

from advlab.papers.purification import measures
from advlab.papers.purification.experiments import causality
from advlab.papers.purification.experiments._parts.two_phase_runs import frozen


@pytest.fixture(scope="module")
def made():
    case = causality.Case(tiny=True, tests=20, replicates=2)
    problem = case.problem("interventions")
    nets = problem.networks()
    problem.train_clean(nets)
    clean = frozen(nets)
    problem.train_adversarial(nets)
    return problem, causality.interventions(problem, clean, frozen(nets), clean)


def taken(made, name: str) -> torch.Tensor:
    return made[1][causality.CLEAN].weight - made[1][name].weight


def test_controls_take_vectors_of_the_lengths_and_signs_of_the_parts_along_the_label(made):
    problem, _ = made
    v = problem.direction / problem.direction.norm(dim=-1, keepdim=True)
    parts = torch.einsum("rmd,rd->rm", made[1][causality.CLEAN].weight, v)
    assert torch.allclose(
        torch.einsum("rmd,rd->rm", taken(made, causality.REMOVED), v), parts, atol=1e-5
    )
    for name in (causality.MATCHED, causality.OWN):
        assert torch.allclose(taken(made, name).norm(dim=-1), parts.abs(), atol=1e-5)
    assert parts.gt(0).any()
    assert parts.lt(0).any()
    # Divided by the signed parts, rows are unit vectors: one for all, or one each.
    shared = taken(made, causality.MATCHED) / parts[..., None]
    large = parts.abs() > 1e-2
    for r in range(2):
        rows = shared[r][large[r]]
        assert torch.allclose(rows, rows[:1].expand_as(rows), atol=1e-3)
        each = (taken(made, causality.OWN) / parts[..., None])[r][large[r]]
        products = each @ each.mT - torch.eye(len(each))
        assert 0.5 < float(products.abs().max()) < 0.99
        assert float(products.abs().mean()) < 0.4


def test_the_random_direction_is_not_that_of_the_label(made):
    problem, _ = made
    cosine = measures.theta(taken(made, causality.MATCHED)[:, :1], problem.direction[:, None])
    assert float(cosine.max()) < 0.9


def test_the_control_of_lengths_turns_no_neuron(made):
    before = made[1][causality.CLEAN].weight
    after = made[1][causality.SHORTER].weight
    assert torch.allclose(measures.theta(before, after), torch.ones(()), atol=1e-5)
    assert torch.allclose(
        after.norm(dim=-1), made[1][causality.REMOVED].weight.norm(dim=-1), atol=1e-5
    )


def test_errors_of_sizes_are_seen(made):
    assert all(float(e.max()) < 1e-5 for e in causality.size_errors(made[1]).values())
    other = made[1][causality.OTHER]
    wrong = made[1] | dict.fromkeys(causality.MATCHES, other)
    assert all(float(e.min()) > 1e-3 for e in causality.size_errors(wrong).values())
