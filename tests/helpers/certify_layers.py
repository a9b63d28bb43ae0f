"""Small networks with today's layers, drawn from a seed."""

import torch
import torch.nn.functional as F
from certify_nets import FLAT, PIXELS
from torch import Tensor, nn

ACTIVATIONS = {
    "sigmoid": nn.Sigmoid(),
    "tanh": nn.Tanh(),
    "gelu": nn.GELU(),
    "gelu_tanh": nn.GELU(approximate="tanh"),
    "silu": nn.SiLU(),
    "mish": nn.Mish(),
    "softplus": nn.Softplus(2.0),
    "logsigmoid": nn.LogSigmoid(),
    "elu": nn.ELU(0.5),
    "selu": nn.SELU(),
    "celu": nn.CELU(2.0),
    "leaky": nn.LeakyReLU(0.2),
    "steep leak": nn.LeakyReLU(1.5),
    "negative leak": nn.LeakyReLU(-0.3),
    "hardtanh": nn.Hardtanh(-0.4, 0.3),
    "relu6": nn.ReLU6(),
    "hardswish": nn.Hardswish(),
    "hardsigmoid": nn.Hardsigmoid(),
    "softsign": nn.Softsign(),
    "tanhshrink": nn.Tanhshrink(),
}


class Function(nn.Module):
    """A function of modules and inputs."""

    def __init__(self, function, *modules: nn.Module):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(modules)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, *self.parts)


class VisionTransformer(nn.Module):
    """Patches, a class token, one block of attention, written as the field writes it."""

    def __init__(self, fused: bool):
        super().__init__()
        self.patches, self.fused = nn.Conv2d(2, 8, 3, stride=3), fused
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.position = nn.Parameter(0.1 * torch.randn(1, 5, 8))
        self.first, self.second, self.top = nn.LayerNorm(8), nn.LayerNorm(8), nn.Linear(8, 3)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.mlp = nn.Sequential(nn.Linear(8, 10), nn.GELU(), nn.Linear(10, 8))

    def forward(self, x: Tensor) -> Tensor:
        n = len(x)
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(n, -1, -1), tokens], 1) + self.position
        qkv = self.qkv(self.first(tokens)).reshape(n, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
        tokens = tokens + self.out(self.attention(*qkv).transpose(1, 2).reshape(n, 5, 8))
        return self.top((tokens + self.mlp(self.second(tokens)))[:, 0])

    def attention(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if self.fused:
            return F.scaled_dot_product_attention(q, k, v)
        return ((q @ k.transpose(-2, -1)) / 2).softmax(-1) @ v


class Encoder(nn.Module):
    """PyTorch's own attention, whose examples are on the second axis inside."""

    def __init__(self, before: bool):
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            4, 2, 6, activation="gelu", batch_first=True, norm_first=before
        )
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.top = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.top(self.body(x.reshape(len(x), -1, 4)[:, :3]).mean(1))


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.MultiheadAttention(4, 2, batch_first=True)
        self.top = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(len(x), -1, 4)[:, :4]
        return self.top((tokens + self.heads(tokens, tokens, tokens)[0]).mean(1))


def _activation(layer: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(5, 6), layer, nn.Linear(6, 6), layer, nn.Linear(6, 3))


def _flat(function, *, width: int = 6, top: int = 6) -> nn.Module:
    parts = nn.Linear(5, width), nn.Linear(top, 3)
    return Function(lambda x, body, head: head(function(body(x))), *parts)


def _image(*layers: nn.Module, top: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 4, 3), *layers, nn.Flatten(), nn.Linear(top, 3))


LAYERS = {
    **{name: (lambda layer=layer: _activation(layer), FLAT) for name, layer in ACTIVATIONS.items()},
    "prelu": (lambda: _activation(nn.PReLU(6)), FLAT),
    "glu": (lambda: _flat(F.glu, width=12), FLAT),
    "square": (lambda: _flat(lambda z: z * z), FLAT),
    "cube": (lambda: _flat(lambda z: z**3), FLAT),
    "product": (lambda: _flat(lambda z: z * z.flip(1).tanh()), FLAT),
    "quotient": (lambda: _flat(lambda z: z / (1 + z.exp().sum(1, keepdim=True))), FLAT),
    "length": (lambda: _flat(lambda z: z / (z.pow(2).sum(1, keepdim=True) + 0.1).sqrt()), FLAT),
    "moments": (lambda: _flat(lambda z: torch.cat([z, z.var(1, keepdim=True), z.std(1, keepdim=True)], 1), top=8), FLAT),  # noqa: E501
    "limits": (lambda: _flat(lambda z: torch.maximum(z, z.new_tensor(0.1)).minimum(z.new_full((6,), 0.4))), FLAT),  # noqa: E501
    "stack": (lambda: _flat(lambda z: torch.stack([z, z.tanh()], 1).sum(1)), FLAT),
    "softmax": (lambda: nn.Sequential(_flat(torch.relu), nn.Softmax(1)), FLAT),
    "log softmax": (lambda: nn.Sequential(_flat(torch.relu), nn.LogSoftmax(1)), FLAT),
    "layer norm": (lambda: _flat(nn.LayerNorm(6, elementwise_affine=False)), FLAT),
    "rms norm": (lambda: _flat(nn.RMSNorm(6, eps=0.01, elementwise_affine=False)), FLAT),
    "group norm": (lambda: _image(nn.GroupNorm(2, 4), nn.ReLU(), top=64), PIXELS),
    "instance norm": (lambda: _image(nn.InstanceNorm2d(4, affine=True), nn.ReLU(), top=64), PIXELS),
    "adaptive max": (lambda: _image(nn.Tanh(), nn.AdaptiveMaxPool2d((3, 2)), top=24), PIXELS),
    "adaptive mean": (lambda: _image(nn.SiLU(), nn.AdaptiveAvgPool2d((3, 2)), top=24), PIXELS),
    "amax": (lambda: _image(Function(lambda x: x.amax((2, 3))), top=4), PIXELS),
    "max": (lambda: _image(Function(lambda x: x.max(2)[0]), top=16), PIXELS),
    "upsampled": (lambda: _image(nn.ReLU(), nn.Upsample(scale_factor=2), nn.Upsample(size=5, mode="bilinear"), top=100), PIXELS),  # noqa: E501
    "tokens": (lambda: Function(lambda x, a, b: b(F.gelu(a(x)).transpose(-1, -2)).flatten(1)[:, :3], nn.Linear(6, 4), nn.Linear(6, 3)), PIXELS),  # noqa: E501
    "gram": (lambda: Function(lambda x, a: torch.einsum("bij,bkj->bik", a(x[:, 0]), a(x[:, 1]).tanh())[:, 0, :3], nn.Linear(6, 3)), PIXELS),  # noqa: E501
    "attention": (lambda: VisionTransformer(fused=False), PIXELS),
    "fused attention": (lambda: VisionTransformer(fused=True), PIXELS),
    "heads": (Heads, PIXELS),
    "encoder": (lambda: Encoder(before=True), PIXELS),
    "encoder, norm last": (lambda: Encoder(before=False), PIXELS),
}  # fmt: skip


def layered(name: str, seed: int, n: int = 3) -> tuple[nn.Module, Tensor, Tensor]:
    """A network in eval mode, examples, and its own labels for them."""
    torch.manual_seed(seed)
    make, shape = LAYERS[name]
    net = make().double().eval().requires_grad_(False)
    x = torch.rand(n, *shape, dtype=torch.float64)
    return net, x, net(x).argmax(1)
