"""Sparse coding: inputs are few atoms of a hidden dictionary (purification paper, section 2)."""

from math import sqrt
from typing import Annotated, Literal, NamedTuple

import torch
from jaxtyping import Float
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from ....core.errors import AdvlabError
from ....data.base import DataModel

Dictionary = Literal["orthogonal", "identity", "incoherent", "undercomplete"]
SPIKE = 0.501
"""Spike noise has the size k^-SPIKE, just below the smallest signal 1/sqrt(k)."""
FEWEST_KEPT = 1e-3
"""A margin that rejects more than all but this share of the draws is refused."""


class Concept(NamedTuple):
    """What is hidden: the dictionary and the label vector of y = sign <w, z>."""

    M: Float[Tensor, "d D"]
    w: Float[Tensor, " D"]


class SparsePoints(NamedTuple):
    """x = M z + noise and y = sign <w, z>; a stack has one more axis in front."""

    x: Float[Tensor, "*stack n d"]
    y: Float[Tensor, "*stack n"]
    z: Float[Tensor, "*stack n D"]
    M: Float[Tensor, "*stack d D"]
    w: Float[Tensor, "*stack D"]


class SparseCoding(DataModel):
    """x = M z + xi with independent symmetric z_j, most of them zero, and y = sign <w*, z>.

    |z_j| is 1 with probability p_big/D, uniform on [1, 1 + hi]/sqrt(k) with probability fs k/D,
    the value of each further level (value, rate) with probability rate/D, and else 0. D is the
    number of atoms, d unless `atoms` says otherwise. Assumption 2.1 with its constants free.

    Args:
        n: the number of examples.
        d: the dimension of the inputs.
        k: the sparsity: about fs k entries of z are small and p_big are 1.
        p_big: the expected number of entries of size 1.
        fs: the expected number of small entries is fs k.
        hi: small entries are uniform on [1, 1 + hi]/sqrt(k).
        levels: further sizes of |z_j| as (value, rate); section 2 names (k^-0.314, k^0.628).
        spread: |w*_j| is uniform on [1 - spread, 1 + spread], its sign random.
        margin: draws with |<w*, z>| at most this are rejected. Not in the paper; small d needs it.
        sx: Gaussian noise N(0, sx^2/d I).
        spikes: spike noise: +-k^-0.501 in the dictionary basis, with probability spikes/D.
        dictionary: orthogonal, the identity, incoherent (Gaussian columns) or undercomplete.
        atoms: D; d if left out.

    Example:
        from advlab.core.randomness import generator
        from advlab.papers.purification.data import SparseCoding
        points = SparseCoding(n=1000, d=256, k=30).sample(generator("example"))
    """

    d: Annotated[int, Field(ge=2)]
    k: PositiveInt
    p_big: NonNegativeFloat = 1.0
    fs: NonNegativeFloat = 0.5
    hi: NonNegativeFloat = 0.3
    levels: tuple[tuple[PositiveFloat, PositiveFloat], ...] = ()
    spread: Annotated[float, Field(ge=0, lt=1)] = 0.3
    margin: NonNegativeFloat = 0.0
    sx: NonNegativeFloat = 0.0
    spikes: NonNegativeFloat = 0.0
    dictionary: Dictionary = "orthogonal"
    atoms: PositiveInt | None = None

    @model_validator(mode="after")
    def _possible(self) -> "SparseCoding":
        if self.k > self.D:
            raise AdvlabError(
                "k of at most the number of atoms", f"k = {self.k} with {self.D} atoms"
            )
        rate = self.p_big + self.fs * self.k + sum(rate for _, rate in self.levels)
        if not 0 < rate <= self.D or self.spikes > self.D:
            raise AdvlabError(
                f"p_big + fs k + rates of levels above 0 and at most {self.D}, spikes too",
                f"{rate:g} and {self.spikes:g}",
            )
        low, high = 1 / sqrt(self.k), 1.0
        if any(not low <= value <= high for value, _ in self.levels):
            raise AdvlabError(f"levels between 1/sqrt(k) = {low:.4g} and 1", self.levels)
        if (1 + self.hi) * low > 1 and self.fs > 0 and self.k > 1:
            raise AdvlabError("(1 + hi)/sqrt(k) of at most 1", f"{(1 + self.hi) * low:.4g}")
        self._check_atoms()
        return self

    def _check_atoms(self) -> None:
        wanted = {
            "orthogonal": (self.d == self.D, "as many atoms as coordinates"),
            "identity": (self.d == self.D, "as many atoms as coordinates"),
            "undercomplete": (self.d > self.D, "fewer atoms than coordinates: set `atoms`"),
            "incoherent": (True, ""),
        }
        fits, rule = wanted[self.dictionary]
        if not fits:
            raise AdvlabError(
                f"an {self.dictionary} dictionary has {rule}",
                f"{self.D} atoms in {self.d} dimensions",
            )

    @property
    def D(self) -> int:
        """The number of atoms."""
        return self.d if self.atoms is None else self.atoms

    def concept(self, rng: torch.Generator) -> Concept:
        """A dictionary, uniform of its kind, and a label vector."""
        sign = torch.randint(2, (self.D,), generator=rng).double() * 2 - 1
        size = torch.rand(self.D, generator=rng, dtype=torch.float64)
        w = sign * (1 - self.spread + 2 * self.spread * size)
        return Concept(self._atoms(rng), w)

    def _atoms(self, rng: torch.Generator) -> Float[Tensor, "d D"]:
        if self.dictionary == "identity":
            return torch.eye(self.d, dtype=torch.float64)
        gaussian = torch.randn(self.d, self.D, generator=rng, dtype=torch.float64)
        if self.dictionary == "incoherent":
            return gaussian / gaussian.norm(dim=0)
        q, r = torch.linalg.qr(gaussian)
        # The signs make the law of q uniform (Haar) whatever convention the QR has.
        return q * torch.diagonal(r).sign()

    def sample(
        self, rng: torch.Generator, n: int | None = None, concept: Concept | None = None
    ) -> SparsePoints:
        """n examples (the model's own n by default) of a concept, drawn first if none is given."""
        n = self.n if n is None else n
        if n < 1:
            raise AdvlabError("a sample needs n >= 1", n)
        M, w = self.concept(rng) if concept is None else self._checked(concept)
        z = self._hidden(rng, n, w)
        x = (z + self._spike_noise(rng, n)) @ M.T
        if self.sx > 0:
            noise = torch.randn(n, self.d, generator=rng, dtype=torch.float64)
            x += self.sx / sqrt(self.d) * noise
        y = torch.where(z @ w >= 0, 1.0, -1.0).to(x)
        return SparsePoints(x, y, z, M, w)

    def _checked(self, concept: Concept) -> Concept:
        M, w = concept
        if M.shape != (self.d, self.D) or w.shape != (self.D,):
            raise AdvlabError(
                f"M of shape ({self.d}, {self.D}) and w of shape ({self.D},)",
                f"{tuple(M.shape)} and {tuple(w.shape)}",
            )
        if self.dictionary != "incoherent":
            require_orthonormal(M)
        return concept

    def _hidden(self, rng: torch.Generator, n: int, w: Tensor) -> Float[Tensor, "n D"]:
        """z, drawn until n rows have their margin."""
        kept, tried = [], 0
        while (have := sum(map(len, kept))) < n:
            missing = n - have
            z = self._draw(rng, missing if self.margin == 0 else max(2 * missing, 64))
            tried += len(z)
            kept.append(z[(z @ w).abs() > self.margin] if self.margin > 0 else z)
            if tried > 10 / FEWEST_KEPT and sum(map(len, kept)) < FEWEST_KEPT * tried:
                raise AdvlabError(
                    "a margin that more than one draw in a thousand has",
                    f"margin {self.margin:g}, kept {sum(map(len, kept))} of {tried}",
                    "lower it, or raise p_big or fs",
                )
        return torch.cat(kept)[:n]

    def _draw(self, rng: torch.Generator, n: int) -> Float[Tensor, "n D"]:
        r = self.D * torch.rand(n, self.D, generator=rng, dtype=torch.float64)
        size = (1 + self.hi * torch.rand(n, self.D, generator=rng, dtype=torch.float64)) / sqrt(
            self.k
        )
        edge = self.p_big + self.fs * self.k
        z = torch.where(r < self.p_big, 1.0, torch.where(r < edge, size, 0.0))
        for value, rate in self.levels:
            z = torch.where((r >= edge) & (r < edge + rate), value, z)
            edge += rate
        return z * self._signs(rng, n)

    def _spike_noise(self, rng: torch.Generator, n: int) -> Float[Tensor, "n D"] | float:
        if self.spikes == 0:
            return 0.0
        hit = torch.rand(n, self.D, generator=rng, dtype=torch.float64) < self.spikes / self.D
        return self.k**-SPIKE * hit.double() * self._signs(rng, n)

    def _signs(self, rng: torch.Generator, n: int) -> Float[Tensor, "n D"]:
        return (torch.rand(n, self.D, generator=rng) < 0.5).double() * 2 - 1


def require_orthonormal(M: Float[Tensor, "d D"], slack: float = 1e-6) -> None:
    """Refuse a dictionary whose columns are not orthonormal, for maths that needs them so."""
    gap = float((M.mT @ M - torch.eye(M.shape[-1]).to(M)).abs().max())
    if not gap <= slack:
        raise AdvlabError(
            "a dictionary with orthonormal columns",
            f"M'M is {gap:.3g} away from the identity",
            'use q of torch.linalg.qr(M), or dictionary="incoherent"',
        )
