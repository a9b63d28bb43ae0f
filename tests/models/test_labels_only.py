"""A model of which only labels can be had."""

import numpy as np
import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.losses import ModelLoss, margin
from advlab.models import LabelsOnly


def halves(x):
    """The label by the sign of the first feature, as an API would give it: an array."""
    return (np.asarray(x)[:, 0] > 0).astype(np.int32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_scores_are_one_hot_in_the_type_of_the_inputs(dtype):
    x = torch.tensor([[1.0, 2.0], [-1.0, 2.0]], dtype=dtype)
    model = LabelsOnly(lambda x: (x[:, 0] > 0).long(), classes=3)
    scores = model(x)
    assert scores.dtype == dtype
    assert scores.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert margin(scores, torch.tensor([1, 1])).tolist() == [-1, 1]


def test_higher_labels_than_announced_add_columns():
    model = LabelsOnly(lambda x: x[:, 0].long())
    assert model(torch.zeros(2, 1)).shape == (2, 2)
    assert model(torch.full((1, 1), 6.0)).shape == (1, 7)
    assert model(torch.zeros(2, 1)).shape == (2, 7)


def test_the_function_gets_a_copy_and_no_gradient_passes():
    x = torch.ones(3, 2, requires_grad=True)

    def editing(x):
        x.zero_()
        return halves(x)

    loss = ModelLoss(LabelsOnly(editing), torch.zeros(3, dtype=torch.long), margin)
    assert not loss(x).requires_grad
    assert bool((x == 1).all())


@pytest.mark.parametrize(
    "answer", [torch.zeros(2), torch.zeros(3, dtype=torch.long), torch.tensor([-1, 0])]
)
def test_other_answers_are_refused_in_one_line(answer):
    with pytest.raises(AdvlabError) as caught:
        LabelsOnly(lambda x: answer)(torch.zeros(2, 1))
    assert "\n" not in str(caught.value)


def test_no_function_and_no_class_count_are_refused():
    for made in (lambda: LabelsOnly(3), lambda: LabelsOnly(halves, classes=1)):
        with pytest.raises(AdvlabError):
            made()
