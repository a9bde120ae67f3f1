"""Optimizers of learners: how parameters move by a gradient, as pure functions on arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from matnb.errors import DTypeError, OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import zeros
from matnb.learn.arguments import real, whole
from matnb.learn.named_arguments import LearnerPart

Parameters = dict[str, DistArray]
State = dict[str, Parameters]


class StepResult(NamedTuple):
    """Parameters after a step.

    Attributes
    ----------
    parameters
        Where the step leads, by name.
    state
        What the optimizer keeps for the next one.
    rates
        How far each element goes for a gradient of 1, of its shape or 0-d: what proximal regularizers take.
    """

    parameters: Parameters
    state: State
    rates: Parameters


@dataclass(frozen=True)
class Optimizer(LearnerPart):
    """What all optimizers have: a start, a step, what follows regularizers, and the model it comes to."""

    def start(self, parameters: Parameters) -> State:
        """Return the initial optimizer state."""
        return {}

    def step(
        self, state: State, parameters: Parameters, gradient: Parameters, count: DistArray
    ) -> StepResult:
        """Return the parameters after a step; ``count`` steps, 0-d float64, were taken before."""
        raise NotImplementedError

    def settle(self, state: State, parameters: Parameters, count: DistArray) -> State:
        """Return the state after regularizers have changed the parameters."""
        return state

    def result(self, state: State, parameters: Parameters) -> Parameters:
        """Return the parameters to predict with."""
        return parameters


def _zeros(parameters: Parameters) -> Parameters:
    return {name: zeros(value.shape, value.dtype) for name, value in parameters.items()}


def _check(one: Optimizer, *names: str, below_1: tuple[str, ...] = ()) -> None:
    for name in (*names, *below_1):
        if real(getattr(one, name), name, type(one).__name__) >= 1 and name in below_1:
            raise OptionError(f"{type(one).__name__}: {name}={getattr(one, name)}; give a number below 1")


@dataclass(frozen=True)
class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum.

    With momentum, ``v = momentum * v - rate * gradient`` is the step; with Nesterov momentum it is ``momentum
    * v - rate * gradient`` with the new v (Sutskever, Martens, Dahl, Hinton 2013, "On the importance of
    initialization and momentum in deep learning").

    Parameters
    ----------
    learning_rate
        The length of a step for a gradient of 1.
    momentum
        Fraction of the last step added to the next, in [0, 1).
    nesterov
        Whether to use Nesterov momentum.
    schedule
        A function of the number of steps taken, a 0-d float64 DistArray, that returns a factor for the rate.

    Examples
    --------
    >>> import matnb as mn
    >>> halving = mn.learn.SGD(learning_rate=0.5, schedule=lambda count: 0.5**count)
    >>> w = {"w": mn.ones(2)}
    >>> halving.step(halving.start(w), w, {"w": mn.ones(2)}, mn.asarray(1.0)).parameters["w"].compute()
    array([0.75, 0.75])
    """

    learning_rate: float = 0.01
    momentum: float = 0.0
    nesterov: bool = False
    schedule: Callable[[DistArray], Any] | None = None

    def __post_init__(self) -> None:
        _check(self, "learning_rate", below_1=("momentum",))

    def start(self, parameters: Parameters) -> State:
        """Return the initial optimizer state."""
        return {"velocity": _zeros(parameters)} if self.momentum else {}

    def step(
        self, state: State, parameters: Parameters, gradient: Parameters, count: DistArray
    ) -> StepResult:
        """Return the parameters and the state after a step."""
        rate: Any = self.learning_rate if self.schedule is None else self.learning_rate * self.schedule(count)
        move = {name: -rate * slope for name, slope in gradient.items()}
        if self.momentum:
            velocity = {name: self.momentum * state["velocity"][name] + one for name, one in move.items()}
            state = {"velocity": velocity}
            ahead = {name: self.momentum * velocity[name] + one for name, one in move.items()}
            move = ahead if self.nesterov else velocity
        moved = {name: value + move[name] for name, value in parameters.items()}
        return StepResult(moved, state, dict.fromkeys(parameters, rate))


@dataclass(frozen=True)
class AdaGrad(Optimizer):
    """The AdaGrad optimizer: smaller steps for parameters with large past gradients.

    Duchi, Hazan, Singer 2011, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization",
    the diagonal version, generalized to any power as in BIDMach: the rate of an element is ``learning_rate /
    (epsilon + (sum of squared gradients) ** power)``.

    Parameters
    ----------
    learning_rate
        The size of the first step, whatever the gradient, for power 1/2.
    power
        The power of the sum of squares; the paper's is 1/2, and 0 gives plain gradient steps.
    epsilon
        Added to the denominator, so that elements with zero gradient do not move.

    Examples
    --------
    >>> import matnb as mn
    >>> adagrad, w = mn.learn.AdaGrad(0.1), {"w": mn.zeros(2)}
    >>> moved = adagrad.step(adagrad.start(w), w, {"w": mn.asarray([3.0, 0.5])}, mn.asarray(0.0))
    >>> moved.parameters["w"].compute().round(6)
    array([-0.1, -0.1])
    """

    learning_rate: float = 0.1
    power: float = 0.5
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _check(self, "learning_rate", "power", "epsilon")

    def start(self, parameters: Parameters) -> State:
        """Return the initial optimizer state."""
        return {"squares": _zeros(parameters)}

    def step(
        self, state: State, parameters: Parameters, gradient: Parameters, count: DistArray
    ) -> StepResult:
        """Return the parameters and the state after a step."""
        squares = {name: one + gradient[name] * gradient[name] for name, one in state["squares"].items()}
        rates = {name: self.learning_rate / (self.epsilon + self._root(one)) for name, one in squares.items()}
        moved = {name: value - rates[name] * gradient[name] for name, value in parameters.items()}
        return StepResult(moved, {"squares": squares}, rates)

    def _root(self, squares: DistArray) -> DistArray:
        return cast(DistArray, np.sqrt(squares) if self.power == 0.5 else squares**self.power)


@dataclass(frozen=True)
class Adam(Optimizer):
    """The Adam optimizer: steps by running means of the gradient and its square.

    Kingma, Ba 2015, "Adam: A Method for Stochastic Optimization", algorithm 1.

    Parameters
    ----------
    learning_rate
        Roughly the largest step of an element.
    beta_1, beta_2
        Decay rates of the running means of gradients and squares, in [0, 1).
    epsilon
        Added to the denominator, the root of the mean square.

    Examples
    --------
    >>> import matnb as mn
    >>> adam, w = mn.learn.Adam(0.1), {"w": mn.zeros(2)}
    >>> moved = adam.step(adam.start(w), w, {"w": mn.asarray([3.0, -0.5])}, mn.asarray(0.0))
    >>> moved.parameters["w"].compute().round(6)
    array([-0.1,  0.1])
    """

    learning_rate: float = 0.001
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _check(self, "learning_rate", "epsilon", below_1=("beta_1", "beta_2"))

    def start(self, parameters: Parameters) -> State:
        """Return the initial optimizer state."""
        return {"means": _zeros(parameters), "squares": _zeros(parameters)}

    def step(
        self, state: State, parameters: Parameters, gradient: Parameters, count: DistArray
    ) -> StepResult:
        """Return the parameters and the state after a step."""
        one, two = self.beta_1, self.beta_2
        means = {name: one * old + (1 - one) * gradient[name] for name, old in state["means"].items()}
        squares = {
            name: two * old + (1 - two) * gradient[name] * gradient[name]
            for name, old in state["squares"].items()
        }
        # The means begin at 0, of which so much is left in them.
        rate = self.learning_rate / (1 - one ** (count + 1))
        whole = 1 - two ** (count + 1)
        rates = {name: rate / (np.sqrt(have / whole) + self.epsilon) for name, have in squares.items()}
        moved = {name: value - rates[name] * means[name] for name, value in parameters.items()}
        return StepResult(moved, {"means": means, "squares": squares}, rates)


@dataclass(frozen=True)
class Average(Optimizer):
    """Polyak averaging: another optimizer's steps, with the mean of all iterates used for predictions.

    Polyak, Juditsky 1992, "Acceleration of Stochastic Approximation by Averaging".

    Parameters
    ----------
    optimizer
        The optimizer whose steps are taken.
    after
        Number of steps before averaging starts.

    Examples
    --------
    >>> import matnb as mn
    >>> mean, w = mn.learn.Average(mn.learn.SGD(1.0)), {"w": mn.zeros(1)}
    >>> state = mean.start(w)
    >>> for count in range(3):
    ...     w, state, _ = mean.step(state, w, {"w": mn.asarray([-1.0])}, mn.asarray(float(count)))
    ...     state = mean.settle(state, w, mn.asarray(float(count)))
    >>> w["w"].compute(), mean.result(state, w)["w"].compute()
    (array([3.]), array([2.]))
    """

    optimizer: Optimizer = SGD()
    after: int = 0

    def __post_init__(self) -> None:
        whole(self.after, "after", "Average", least=0)
        if isinstance(self.optimizer, type) or not hasattr(self.optimizer, "step"):
            raise DTypeError(
                f"Average: optimizer={self.optimizer!r}; give an instance, such as mn.learn.SGD(0.1)"
            )

    def start(self, parameters: Parameters) -> State:
        """Return the initial optimizer state."""
        return {**self.optimizer.start(parameters), "average": _zeros(parameters)}

    def step(
        self, state: State, parameters: Parameters, gradient: Parameters, count: DistArray
    ) -> StepResult:
        """Return the parameters and the state after a step."""
        inner = {name: value for name, value in state.items() if name != "average"}
        moved = self.optimizer.step(inner, parameters, gradient, count)
        return moved._replace(state={**moved.state, "average": state["average"]})

    def settle(self, state: State, parameters: Parameters, count: DistArray) -> State:
        """Return the state after regularizers have changed the parameters."""
        seen = np.maximum(count + 1 - self.after, 1.0)
        average = {name: old + (parameters[name] - old) / seen for name, old in state["average"].items()}
        return {**state, "average": average}

    def result(self, state: State, parameters: Parameters) -> Parameters:
        """Return the mean."""
        return state["average"]
