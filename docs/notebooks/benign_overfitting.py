# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # Benign overfitting in a minute
#
# Two clusters at $\pm\mu$ in $d$ dimensions, a tenth of the labels flipped. A network is trained under attack until it fits every
# label, flipped ones too. Does it predict well on fresh inputs? That depends on $\|\mu\|$ and $d$.

# %%
import polars as pl
import torch

from advlab.attacks import PGD
from advlab.core.randomness import generators
from advlab.papers.benign.data import NoisyMixture
from advlab.papers.benign.reductions import TwoLayerAdversarial, attacked, mixture_law
from advlab.threats import Ball
from advlab.training import fit

ball = Ball("l2", 1.0)
pgd = PGD(steps=5, step_size=0.4, random_start=False, jump=False)

# %% [markdown]
# Nothing leaves the span of the inputs and the first weights, so the problem is drawn in a few coordinates, whatever $d$ is (see
# [how it is done on two cores](../benign.md#how-it-is-done-on-two-cores)). Three networks are trained at a time, as a stack.


# %%
def errors(mu_norm, d):
    data = NoisyMixture(n=40, d=d, mu_norm=mu_norm, beta=0.1, flips="count")
    start = mixture_law.Start(width=20, activation="relu", omega=0.1 / (20 * d) ** 0.5)
    problem = mixture_law.draw_stack(
        data, start, generators("notebook", d, seeds=range(3)), tested=200
    )
    objective = TwoLayerAdversarial(loss="logistic", ball=ball, attack=pgd)
    fit(problem.model, problem.train.x, problem.train.y, steps=100, lr=32 / d, objective=objective)

    def wrong(points, under):
        x, y = points.x.flatten(0, 1), points.y.flatten()
        found = (
            attacked(problem.model, x, y, ball, pgd).loss
            if under
            else problem_loss(problem.model, x, y)
        )
        return float(
            (found > 0.6931471805599453).double().mean()
        )  # a logistic loss above log 2 is an error

    return {
        "mu": mu_norm,
        "d": d,
        "robust training error": wrong(problem.train, True),
        "clean test error": wrong(problem.test, False),
        "robust test error": wrong(problem.test, True),
    }


def problem_loss(model, x, y):
    with torch.no_grad():
        return torch.nn.functional.softplus(-y * model(x).flatten())


table = pl.DataFrame([errors(mu, d) for mu in (2.0, 4.0, 6.0, 8.0) for d in (250, 1000, 4000)])
print(table.filter(pl.col("d") == 1000))

# %% [markdown]
# Training fits everything, and the test error falls to the share of flipped labels, 0.1, where the signal is strong enough for the
# dimension: benign overfitting, clean and under attack (found by PGD, so a lower bound).

# %%
import altair as alt

long = table.unpivot(index=["mu", "d"], variable_name="what", value_name="error")
tile = alt.Chart(
    long.filter(pl.col("what") != "robust training error"), width=200, height=200
).mark_rect()
tile.encode(
    alt.X("mu:O", title="||mu||"),
    alt.Y("d:O", sort="descending"),
    alt.Color("error", scale=alt.Scale(domain=[0, 0.7], scheme="viridis")),
    column=alt.Column("what", title=None),
)

# %% [markdown]
# Figure 1 of the paper is this diagram at its sizes: [gallery](../gallery/benign.md#fig1).
