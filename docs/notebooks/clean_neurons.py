# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # Watch neurons get clean
#
# Inputs are sparse combinations of the atoms of a hidden dictionary, $x = Mz + \xi$. Clean training finds the atoms, but adds to
# every neuron a small dense mixture of all of them. Adversarial training takes the mixture away.

# %%
import copy

import polars as pl
import torch

from advlab.papers.purification import SparseProblem, measures, scaled

small = scaled(64)  # the preset of the figures at a quarter of their dimension
small = small.model_copy(update={"data": small.data.model_copy(update={"n": 4000}), "width": 192})
problem = SparseProblem.draw(small, seeds=[0], stream="notebook", tests=300)

# %% [markdown]
# ## Start, clean training, adversarial training
#
# The second training goes on from the first one's network: its loss is that of attacked inputs.

# %%
networks = {"start": problem.networks()}
networks["clean"] = copy.deepcopy(networks["start"])
problem.train_clean(networks["clean"])
networks["adversarial"] = copy.deepcopy(networks["clean"])
fitted = problem.train_adversarial(networks["adversarial"])

# %% [markdown]
# ## What an attack finds
#
# The direction $M w^*$ moves every neuron with a dense part at once, and needs no knowledge of the network.

# %%
x, y = problem.test_x[0], problem.test_y[0]
push = small.tau * torch.nn.functional.normalize(problem.direction[0], dim=0)


def accuracy(net, x):
    with torch.no_grad():
        return float((y * net(x).flatten() > 0).float().mean())


rows = [
    {
        "network": name,
        "clean accuracy": accuracy(net, x),
        "moved along M w*": accuracy(net, x - y[:, None] * push),
    }
    for name, net in networks.items()
]
pl.DataFrame(rows)

# %% [markdown]
# ## The neurons themselves
#
# Twelve neurons (rows) in the basis of the dictionary, each with its own atom first, times the sign of $w^*$. After clean training
# there is a diagonal and a background of one sign; adversarial training keeps the one and removes the other.

# %%
import altair as alt

weights = {name: net.get_parameter("weight")[0].detach() for name, net in networks.items()}
M, sign = problem.M[0], problem.w[0].sign()
parts = {name: measures.coordinates(weight, M) * sign for name, weight in weights.items()}
chosen = parts["clean"].abs().amax(1).topk(12).indices
atoms = list(dict.fromkeys(parts["clean"][chosen].abs().argmax(1).tolist()))
atoms += [one for one in range(M.shape[1]) if one not in atoms][: 30 - len(atoms)]
tiles = pl.DataFrame(
    {"network": name, "neuron": i, "atom": j, "part": float(A[n, atom] / A[n].abs().max())}
    for name, A in parts.items()
    for i, n in enumerate(chosen.tolist())
    for j, atom in enumerate(atoms)
)
alt.Chart(tiles, width=190, height=110).mark_rect().encode(
    alt.X("atom:O", axis=None),
    alt.Y("neuron:O", axis=None),
    alt.Color(
        "part",
        scale=alt.Scale(domain=[-1, 1], scheme="blueorange"),
        title=["part along", "the atom"],
        legend=alt.Legend(orient="right"),
    ),
    column=alt.Column("network", sort=list(parts), title=None),
)

# %% [markdown]
# The figure at full size, five seeds and the claims about it: [gallery](../gallery/purification.md#clean_then_adversarial).
