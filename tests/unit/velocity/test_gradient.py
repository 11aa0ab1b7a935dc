# SPDX-License-Identifier: Apache-2.0
"""The network can be trained: gradients of every parameter, against finite differences."""

from __future__ import annotations

import torch

from blockwave.testing import random_dit, random_request, request_condition, sized_config

CONFIG = sized_config("tiny")


def test_every_parameter_has_its_gradient():
    dit = random_dit(CONFIG).double().requires_grad_(True)
    request = {
        name: value.double() if value.is_floating_point() else value
        for name, value in random_request(CONFIG.dit, 20, 20, seed=3).items()
    }
    generator = torch.Generator().manual_seed(4)

    def loss() -> torch.Tensor:
        batch, grid = dit.pack([request_condition(dit, request, 0.5)]), dit.time_grid([0.3])
        return dit(request["x"], batch, grid, 0).square().mean()

    loss().backward()
    assert [name for name, parameter in dit.named_parameters() if parameter.grad is None] == []
    for name, parameter in dit.named_parameters():
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        direction *= 1e-5 / direction.norm()
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter.add_(sign * direction)
                values.append(loss().item())
                parameter.sub_(sign * direction)
        expected = (parameter.grad * direction).sum().item()
        # Central differences in float64: the loss is rounded to 1e-16, the step of 1e-5 leaves a cube of 1e-15.
        assert abs((values[0] - values[1]) / 2 - expected) < 1e-6 * parameter.grad.norm().item() * 1e-5 + 1e-13, name
