"""Neurons that come alive, die or turn, on networks made by hand."""

import torch

from advlab.papers.purification.measures import turnover

M = torch.eye(4)


def rows(*neurons: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(neurons)


def test_each_neuron_is_counted_for_what_became_of_it():
    before = rows((1, 0, 0, 0), (0.6, 0.5, 0.5, 0.5), (0, 0.1, 0, 0), (0, 0, 1, 0))
    after = rows((1, 0.1, 0, 0), (0.5, 0.6, 0.5, 0.5), (0, 0.9, 0, 0), (0, 0, 0.01, 0))
    found = turnover(before, after, M)
    assert found.recruits.tolist() == [False, False, True, False]
    assert float(found.recruited) == 1 / 3
    assert float(found.lost) == 1 / 3
    # Of the two that are alive both times, the mixed one turns, the pure one does not.
    assert float(found.turned) == 0.5
    assert float(found.turned_pure) == 0


def test_nothing_happens_to_neurons_that_only_grow():
    before = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))
    found = turnover(before, 3 * before, torch.stack([M, M]))
    for share in (found.recruited, found.lost, found.turned, found.turned_pure):
        assert share.tolist() == [0, 0]
