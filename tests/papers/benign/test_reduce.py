"""`reduce`: the run in few coordinates is the run in all of them, or a line says why not."""

import copy

import pytest
import torch
from scipy.stats import ks_2samp
from torch import nn

from advlab.attacks import APGD, FGM, PGD, Identity
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.losses import ModelLoss, logistic, resolve
from advlab.models import Linear, Stack, TwoLayer
from advlab.papers.benign.data import NoisyMixture, Quartic
from advlab.papers.benign.reductions import SpanBall, TwoLayerAdversarial, reduce
from advlab.papers.benign.reductions.mixture_law import Start
from advlab.threats import Ball
from advlab.training import Adversarial, fit

N, D, STEPS = 6, 150, 8
BALL = Ball("l2", 1.0)
PLAIN = PGD(steps=10, step_size=0.2, random_start=False, jump=False)
ATTACKS = {
    "from the clean inputs": PLAIN,
    "with a jump": PGD(steps=5, step_size=0.2, random_start=False),
    "last point": PGD(steps=5, step_size=0.2, random_start=False, jump=False, keep="last"),
    "FGM": FGM(),
    "none": Identity(),
}
STARTS = {
    "random start": PGD(steps=4, step_size=0.2, jump=False),
    "random start, last point": PGD(steps=4, step_size=0.2, jump=False, keep="last"),
    "three starts": PGD(steps=4, step_size=0.3, restarts=3),
}
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def _sequential(outputs=3, deep=False):
    torch.manual_seed(0)
    middle = [nn.Linear(7, 5), nn.Tanh()] if deep else []
    wide = 5 if deep else 7
    return nn.Sequential(nn.Linear(D, 7), nn.ReLU(), *middle, nn.Linear(wide, outputs)).double()


def _seeded(make):
    torch.manual_seed(0)
    return make().double()


def _inputs(name="inputs", n=N):
    data = NoisyMixture(n=n, d=D, mu_norm=3.0, beta=0.2, flips="count").sample(generator(name))
    return data.x, data.y


MODELS = {
    "two-layer, symmetric": (
        lambda: TwoLayer.draw(D, 8, "relu", generator("net"), omega=0.05),
        "logistic",
    ),
    "two-layer, torch": (
        lambda: TwoLayer.draw(D, 8, "gelu", generator("net"), "torch", bias=True, train_top=True),
        "logistic",
    ),
    "linear": (lambda: Linear(0.1 * _inputs("theta", 1)[0][0]), "logistic"),
    "three outputs": (_sequential, "cross_entropy"),
    "one layer": (lambda: _seeded(lambda: nn.Linear(D, 3)), "cross_entropy"),
    "flattened": (lambda: nn.Sequential(nn.Flatten(), *_sequential()), "cross_entropy"),
    "three outputs, three layers": (lambda: _sequential(deep=True), "cross_entropy"),
}


def _labels(y, loss):
    return torch.arange(len(y)) % 3 if loss == "cross_entropy" else y


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize("name", MODELS)
def test_the_reduced_run_is_the_run_in_all_dimensions(name, attack):
    make, loss = MODELS[name]
    x, y = _inputs()
    y, whole = _labels(y, loss), make()
    small = reduce(whole, x, attack, BALL, loss)
    assert small.x.shape[-1] < 20
    common = {"steps": STEPS, "lr": 0.2, "optimizer": _momentum}
    plain = fit(whole, x, y, objective=Adversarial(ball=BALL, attack=attack, loss=loss), **common)
    fast = fit(small.model, small.x, y, objective=small.objective, **common)
    torch.testing.assert_close(fast.log.losses(), plain.log.losses(), **CLOSE)
    _same_network(small, whole)


def _momentum(weights, lr):
    return torch.optim.SGD(weights, lr=lr, momentum=0.5, weight_decay=0.01)


def _same_network(small, whole):
    lifted = small.lifted().state_dict()
    for key, value in whole.state_dict().items():
        torch.testing.assert_close(lifted[key], value, **CLOSE)
    fresh = _inputs("fresh", 20)[0]
    torch.testing.assert_close(small.model(small.into(fresh)), whole(fresh), **CLOSE)


class Lifted(Ball):
    """The ball of all dimensions, whose random draws are those of the small one."""

    small: SpanBall
    space: object
    centers: object

    def sample(self, center, *, rng):
        return self.space.lift(self.small.sample(self.centers, rng=rng)[None])[0]


class InAllDimensions(Adversarial):
    reduced: object

    def adversary(self, step):
        attack, ball = self.reduced.objective.adversary(step)
        about = {"small": ball, "space": self.reduced.space, "centers": self.reduced.x}
        return attack, Lifted(norm="l2", radius=ball.radius, **about)


@pytest.mark.parametrize("attack", STARTS.values(), ids=STARTS)
@pytest.mark.parametrize("name", MODELS)
def test_random_starts_add_directions_and_nothing_else_changes(name, attack):
    make, loss = MODELS[name]
    x, y = _inputs()
    y, whole = _labels(y, loss), make()
    start = copy.deepcopy(whole.state_dict())
    small = reduce(whole, x, attack, BALL, loss, steps=STEPS, rng=generator("frame"))
    assert small.x.shape[-1] <= N + 8 + N * (STEPS + 1) < D
    common = {"steps": STEPS, "lr": 0.2}
    plain = fit(
        whole, x, y, rng=generator("run"), **common,
        objective=InAllDimensions(ball=BALL, attack=attack, loss=loss, reduced=small),
    )  # fmt: skip
    fast = fit(small.model, small.x, y, objective=small.objective, rng=generator("run"), **common)
    torch.testing.assert_close(fast.log.losses(), plain.log.losses(), **CLOSE)
    _same_network(small, whole)
    if attack.keep == "last":
        key = next(iter(start))
        move = (whole.state_dict()[key] - start[key]).reshape(-1, D)
        assert _outside(move, torch.cat([x, start[key].reshape(-1, D)])) > 1e-3


def _outside(rows, spanning):
    """How long the part of the rows outside a span is."""
    basis = torch.linalg.qr(spanning.T).Q
    return float((rows - rows @ basis @ basis.T).norm())


def test_random_starts_have_the_law_of_draws_in_all_dimensions():
    """Their Gram matrix, with inputs and weights: by brute force in all dimensions."""
    dim, n, known, draws = 12, 3, 4, 6000
    small = SpanBall(norm="l2", radius=2.0, dim=dim, known=known)
    whole = Ball("l2", 2.0)
    rng = generator("law")

    def products(ball, width):
        found = []
        for _ in range(draws):
            move = ball.sample(torch.zeros(n, width, dtype=torch.float64), rng=rng)
            gram = move @ move.T
            low = gram[torch.tril_indices(n, n).unbind()]
            found.append(torch.cat([low, move[:, :known].flatten(), gram.det()[None]]))
        return torch.stack(found)

    few, many = products(small, known + n), products(whole, dim)
    values = [ks_2samp(a, b).pvalue for a, b in zip(few.T.numpy(), many.T.numpy(), strict=True)]
    assert min(values) > 1e-4
    wrong = products(whole, known + n)  # the ball of the small space: too much inside the span
    assert ks_2samp(wrong[:, -2], many[:, -2]).pvalue < 1e-8


@pytest.mark.parametrize("attack", [PLAIN, FGM(), STARTS["random start"]])
def test_a_stack_has_a_span_for_each_network(attack):
    data = NoisyMixture(n=N, d=D, mu_norm=3.0).sample_stack(generators("stack", seeds=range(2)))
    stack = Stack.draw(
        lambda rng: TwoLayer.draw(D, 8, "relu", rng, omega=0.05), generators("n", seeds=range(2))
    )
    about = {"steps": STEPS, "rng": generators("frame", seeds=range(2))}
    small = reduce(stack, data, attack, BALL, **about)
    runs = generators("run", seeds=range(2))
    fit(small.model, small.x, data.y, steps=STEPS, lr=0.2, objective=small.objective, rng=runs)
    for r in range(2):
        one = reduce(stack.replicate(r), data.x[r], attack, BALL, steps=STEPS,
                     rng=generator("frame", r))  # fmt: skip
        fit(one.model, one.x, data.y[r], steps=STEPS, lr=0.2, objective=one.objective,
            rng=[generator("run", r)])  # fmt: skip
        torch.testing.assert_close(
            one.lifted().state_dict()["weight"], small.lifted().state_dict()["weight"][r], **CLOSE
        )


def test_an_attack_on_the_reduced_network_finds_what_it_finds_on_the_whole():
    net = MODELS["two-layer, torch"][0]()
    x, y = _inputs()
    small = reduce(net, x, PLAIN, BALL)
    fit(small.model, small.x, y, steps=STEPS, lr=0.2, objective=small.objective)
    fresh = NoisyMixture(n=20, d=D, mu_norm=3.0).sample(generator("fresh"))
    seen = [
        PLAIN(ModelLoss(model, fresh.y, logistic), points, BALL, rng=generator("any")).loss
        for model, points in ((small.model, small.into(fresh.x)), (small.lifted(), fresh.x))
    ]
    torch.testing.assert_close(*seen, **CLOSE)
    assert (seen[0] - resolve("logistic")(net(fresh.x), fresh.y)).abs().max() > 0.01


def test_arrays_and_lists_are_inputs_too():
    x, _ = _inputs()
    whole = _sequential()
    plain = reduce(whole, x, PLAIN, BALL, "cross_entropy")
    for given in (x.numpy(), x.tolist()):
        small = reduce(whole, given, PLAIN, BALL, "cross_entropy")
        assert torch.equal(small.x, plain.x)
        assert small.how == plain.how


class Decoder(nn.Module):
    """The transpose of another layer, as in an autoencoder with tied weights."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, z):
        return z @ self.layer.weight


def _tied(alias=False):
    layer = nn.Linear(D, 7).double()
    other = nn.Linear(D, 7).double()
    other.weight = nn.Parameter(layer.weight.data) if alias else layer.weight
    return nn.Sequential(layer, nn.ReLU(), Decoder(other if alias else layer))


def test_the_engine_is_picked_by_model_data_and_attack():
    x, _ = _inputs()
    two_layer = MODELS["two-layer, torch"][0]()
    assert isinstance(reduce(two_layer, x, PLAIN, BALL).objective, TwoLayerAdversarial)
    assert "Gram" in reduce(two_layer, x, PLAIN, BALL).how
    assert type(reduce(two_layer, x, FGM(), BALL).objective) is Adversarial
    wide = TwoLayer.draw(D, 200, "relu", generator("wide"), "torch")
    kept = reduce(wide, x, PLAIN, BALL)  # more neurons than dimensions: products, no rotation
    assert isinstance(kept.objective, TwoLayerAdversarial)
    assert kept.x is x
    assert torch.equal(kept.lifted().weight, wide.weight)
    assert kept.into(x) is x
    law = NoisyMixture(n=N, d=10**9, mu_norm=300.0)
    drawn = reduce(Start(width=8, activation="relu", omega=0.1), law, PLAIN, BALL,
                   rng=generator("law"))  # fmt: skip
    assert drawn.x.shape == (N, 1 + 4 + N)
    assert drawn.test is not None
    assert drawn.train is not None
    assert drawn.train.x is drawn.x


X = _inputs()[0]
NET = MODELS["two-layer, torch"][0]()
WIDE = nn.Sequential(nn.Linear(D, 2 * D), nn.ReLU(), nn.Linear(2 * D, 1)).double()
REFUSED = {
    "linf": ((NET, X, PLAIN, Ball("linf", 0.1)), {}, "leave the span"),
    "box": ((NET, X, PLAIN, Ball("l2", 0.1, box=(-9, 9))), {}, "without a box"),
    "another attack": ((NET, X, APGD(), BALL), {}, "PGD, FGM or Identity"),
    "no steps": ((NET, X, PGD(), BALL), {}, "the number of steps"),
    "early exit": ((NET, X, PGD(early_exit=True), BALL), {"steps": 3}, "no early exit"),
    "no generator": ((NET, X, PGD(), BALL), {"steps": 3}, "a generator"),
    "too many starts": ((NET, X, PGD(), BALL), {"steps": 50}, "random starts than"),
    "too many neurons": ((WIDE, X, PLAIN, BALL), {}, "nothing is gained"),
    "a convolution": ((nn.Sequential(nn.Conv1d(1, 1, 3)), X, PLAIN, BALL), {}, "one linear layer"),
    "a network of another size": ((Linear.zero(3), X, PLAIN, BALL), {}, "inputs of 3 features"),
    "a stack without an axis": ((Stack([NET]), X, PLAIN, BALL), {}, "R = 1"),
    "a tied decoder": ((_tied(), X, PLAIN, BALL), {}, "nothing else uses"),
    "an alias of the weight": ((_tied(alias=True), X, PLAIN, BALL), {}, "nothing else uses"),
    "words": ((NET, "images", PLAIN, BALL), {}, "real numbers in x"),
    "another type": ((NET, X.float(), PLAIN, BALL), {}, "torch.float64"),
    "a law without a start": (
        (NET, NoisyMixture(n=3, d=9, mu_norm=1.0), PLAIN, BALL),
        {},
        "a Start with",
    ),
    "a law that is not Gaussian": (
        (
            Start(width=2, activation="relu", omega=0.1),
            NoisyMixture(n=3, d=9, mu_norm=1.0, cluster=Quartic(lam=1.0, c=1.0)),
            PLAIN,
            BALL,
        ),
        {"rng": generator("any")},
        "Gaussian clusters",
    ),
    "a law under FGM": (
        (
            Start(width=2, activation="relu", omega=0.1),
            NoisyMixture(n=3, d=9, mu_norm=1.0),
            FGM(),
            BALL,
        ),
        {"rng": generator("any")},
        "drawn problem",
    ),
}


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
def test_where_there_is_no_reduction_one_line_says_why(given):
    arguments, more, words = given
    with pytest.raises(AdvlabError, match=words) as refused:
        reduce(*arguments, **more)
    assert "\n" not in str(refused.value)


def test_a_sign_attack_does_leave_the_span():
    """Why linf is refused: the same problem in the span's coordinates is another run."""
    x, y = _inputs()
    net = MODELS["two-layer, torch"][0]()
    start = net.weight.detach().clone()
    fit(net, x, y, steps=3, lr=0.2, loss="logistic", ball=Ball("linf", 0.2), attack=PLAIN)
    assert _outside(net.weight.detach() - start, torch.cat([x, start])) > 1e-2
