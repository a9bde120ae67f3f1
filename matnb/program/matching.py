"""Matches products as users write them to what workers can do in one step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from matnb.blocks.formats import SPARSE_DTYPES
from matnb.blocks.semiring import semiring_named
from matnb.expr.nodes import Broadcast, Elementwise, Expr, MaskedMatMul, MatMul, Reduce, Transpose
from matnb.expr.traverse import consumers


@dataclass(frozen=True)
class Product:
    """A matrix product as the workers make it.

    Attributes
    ----------
    left, right
        The operands.
    semiring, dtype
        Of the product itself.
    transposed
        The product is that of ``left.T``, whose blocks are those of ``left``; if it is ``pushed``, it was.
    turned
        The product is with ``right.T``.
    mask
        Elements are made only where it is true, turned round if ``complement``.
    scaled
        The product is multiplied with the entries of the mask, all of which count, as this dtype.
    pushed
        ``left`` is a dense vector, of which only what is not the identity of the addition is multiplied.
    """

    left: Expr
    right: Expr
    semiring: str
    dtype: np.dtype
    transposed: bool = False
    turned: bool = False
    mask: Expr | None = None
    complement: bool = False
    scaled: np.dtype | None = None
    pushed: bool = False

    @property
    def operands(self) -> tuple[Expr, ...]:
        """What is read."""
        both = (self.left, self.right)
        return both if self.mask is None else (*both, self.mask)

    @property
    def way(self) -> tuple[bool, ...]:
        """How it is made, where that can change the last bits: part of the names of its tasks."""
        return self.transposed, self.mask is not None

    @property
    def masked_by_entries(self) -> bool:
        """True where the mask's stored entries are all that can be stored in the result."""
        return self.mask is not None and self.mask.sparse and not self.complement


@dataclass(frozen=True)
class Wiring:
    """What each array of a plan is made from: its operands as recorded, or those of the product it became."""

    products: Mapping[Expr, Product]

    def operands(self, node: Expr) -> tuple[Expr, ...]:
        """Return what the array is made from."""
        return self.products[node].operands if node in self.products else node.operands

    def fuses_operands(self, node: Expr) -> bool:
        """Tell whether an array is made block by block, so that its operands can be made in the same task."""
        return isinstance(node, Elementwise | Broadcast | Reduce) and node not in self.products


Choice = Callable[[Transpose, Expr], bool]


def match_products(
    order: Sequence[Expr], roots: Collection[Expr], stored: Container[Expr], scatters: Choice
) -> Wiring:
    """Return how the products among some expressions are made.

    Parameters
    ----------
    order
        Every expression, operands before users.
    roots
        Those whose arrays are wanted.
    stored
        Those whose arrays are there.
    scatters
        Decides for a sparse transpose and the dense array it meets whether to do without the transpose.
    """
    users = consumers(order, stored)
    products: dict[Expr, Product] = {
        node: _plain(node) for node in order if node not in stored and isinstance(node, MatMul | MaskedMatMul)
    }
    computed = [node for node in order if node not in stored]
    for node in computed:
        if isinstance(node, Elementwise) and node.name == "multiply":
            _match_sampled(node, products, lambda one: len(users[one]) == 1 and one not in roots)
    passed = {node for node in computed if isinstance(node, MatMul) and node not in products}
    users = consumers((node for node in order if node not in passed), stored, Wiring(products).operands)
    for node in computed:
        if isinstance(node, Transpose) and node not in roots:
            _match_transposed(node, users[node], products, scatters)
    return Wiring(products)


def _match_sampled(
    node: Elementwise, products: dict[Expr, Product], is_passing: Callable[[Expr], bool]
) -> None:
    # (A @ B) * S with a sparse S: only the entries of S are made, and A @ B is not, if nobody else needs it.
    first, second = node.inputs
    for factor, mask in ((first, second), (second, first)):
        if (
            factor in products
            and isinstance(factor, MatMul)
            and is_passing(factor)
            and _samples(node, factor, mask)
        ):
            plain = products.pop(factor)
            products[node] = replace(plain, mask=mask, scaled=node.dtype)
            return


def _match_transposed(
    node: Transpose, users: Sequence[Expr], products: dict[Expr, Product], scatters: Choice
) -> None:
    # A.T @ B is the sum of what the rows of A make of those of B, and S * (A @ B.T) is made of rows of A and
    # rows of B; a transpose is made only if anything else needs it.
    if node.ndim != 2 or node.axes != (1, 0):
        return
    if not node.sparse and all(_samples_transpose(one, node, products) for one in users):
        for user in users:
            products[user] = replace(products[user], right=node.operand, turned=True)
        return
    if not all(_meets_transpose(one, node, products) for one in users):
        return
    rights = [products[user].right for user in users]
    if node.sparse and not all(not right.sparse and scatters(node, right) for right in rights):
        return
    for user in users:
        product = products[user]
        # A.T @ x is x @ A, which leaves out most of A where x has little.
        turned = replace(
            product,
            left=product.right,
            right=node.operand,
            semiring=semiring_named(product.semiring).turned.name,
        )
        if _pushes(turned):
            products[user] = replace(turned, transposed=True, pushed=True)
        else:
            products[user] = replace(product, left=node.operand, transposed=True)


def _plain(node: MatMul | MaskedMatMul) -> Product:
    match node:
        case MaskedMatMul(left, right, mask, semiring, complement):
            product = Product(left, right, semiring, node.dtype, mask=mask, complement=complement)
        case MatMul(left, right, semiring):
            product = Product(left, right, semiring, node.dtype)
    return replace(product, pushed=_pushes(product))


def _pushes(product: Product) -> bool:
    left, right = product.left, product.right
    return left.ndim == 1 and right.sparse and semiring_named(product.semiring).pushes(product.dtype)


def _samples(node: Elementwise, product: MatMul, mask: Expr) -> bool:
    kinds = {node.dtype, product.dtype, mask.dtype, product.left.dtype, product.right.dtype}
    alike = set(node.input_dtypes) == {node.dtype} and kinds <= set(SPARSE_DTYPES)
    return alike and mask.sparse and node.sparse and mask.shape == product.shape


def _samples_transpose(user: Expr, node: Transpose, products: Mapping[Expr, Product]) -> bool:
    product = products.get(user)
    if product is None or not product.masked_by_entries:
        return False
    return product.right is node and node not in (product.left, product.mask)


def _meets_transpose(user: Expr, node: Transpose, products: Mapping[Expr, Product]) -> bool:
    product = products.get(user)
    if not isinstance(user, MatMul) or product is None or product.mask is not None:
        return False
    return product.left is node and product.right is not node and product.right.ndim <= 2
