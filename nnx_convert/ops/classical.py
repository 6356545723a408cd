"""What classical learners compute beside products: trees, kernels, votes, looked-up labels."""
from __future__ import annotations

from typing import Annotated

from ..kinds import Bool, Float, Int, Positive, T, rank
from ..schema import Rule, host
from ..signature import Kind
from ..types import F32, F64, I64, LIST, UNKNOWN, Tensor
from .host import TEXTS
from .sequence import List

AnyKey = Annotated[Tensor, Kind(TEXTS)]
Reals = {F32: 27, F64: 27}
Wide = Annotated[Tensor, Kind({F64: 27})]
Counts = Annotated[Tensor, Kind({I64: 27})]
Rows = Annotated[T, rank(2)]
#: What a node of a tree asks of a feature, in the order of the codes; a LEAF asks nothing.
MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "LEAF")
LEAF = MODES.index("LEAF")
#: What is made of the trees' weights, and of what two vectors are to each other.
AVERAGE, SUM, LEAST, MOST = range(4)
LINEAR, POLY, RBF, SIGMOID = range(4)


@host(60690, TEXTS, Rule("keys are of the type of x, values of the type of default", lambda x, keys, values, default:
                        keys.type == x.type and values.type == default.type),
      Rule("there is a value for each key", lambda keys, values: keys.shape == values.shape))
def LOOKUP(x: T, keys: AnyKey, values: AnyKey, default: AnyKey) -> AnyKey:
    """The value of each element's key, the last one of several; default where there is none."""
    return Tensor(values.type, x.shape, values.quant)


@host(60691, Reals, Rule("the nodes have a feature, a mode, two ways on and a range of leaves each",
                         lambda feature, split, mode, yes, no, missing, first: feature.shape == split.shape ==
                         mode.shape == yes.shape == no.shape == missing.shape and first.shape[0] == mode.shape[0] + 1),
      Rule("aggregate is 0 average, 1 sum, 2 least or 3 most", lambda aggregate: aggregate in range(4)))
def TREES(x: Rows, feature: Counts, split: Wide, mode: Counts, yes: Counts, no: Counts, missing: Counts,
          roots: Counts, first: Counts, target: Counts, weight: Wide, aggregate: Int, targets: Positive) -> T:
    """Of the weights first[n] to first[n + 1] of the leaves n that a row comes to, one a tree, one for each target."""
    return Tensor(x.type, (x.shape[0], targets))


@host(60692, Reals, Rule("kind is 0 linear, 1 polynomial, 2 radial or 3 sigmoid", lambda kind: kind in range(4)),
      Rule("vectors are as long as rows of x", lambda x, vectors: x.shape[1] == vectors.shape[1]))
def KERNEL(x: Rows, vectors: Annotated[Tensor, Kind(Reals), rank(2)], kind: Int, gamma: Float, offset: Float,
           degree: Float) -> T:
    """How near each row of x is to each vector."""
    return x.like((x.shape[0], vectors.shape[0]))


@host(60693, Reals, Rule("there is a number for each pair of classes", lambda x, classes:
                         x.shape[1] == classes * (classes - 1) // 2))
def VOTES(x: Rows, classes: Positive) -> T:
    """How many pairs each class wins: pair (i, j) is for i where it is positive, else for j."""
    return x.like((x.shape[0], classes))


@host(60694, Reals, Rule("there is a number for each pair of classes", lambda x, classes:
                         x.shape[1] == classes * (classes - 1) // 2))
def COUPLED(x: Rows, classes: Positive) -> T:
    """The probabilities of classes that agree best with those of pairs (i against j), by iteration."""
    return x.like((x.shape[0], classes))


@host(60695, Reals)
def PROBIT(x: T) -> T:
    """sqrt(2) * erfinv(2 * x - 1)."""
    return x


@host(60696, Reals, Rule("there is a label for each column of x", lambda x, labels: x.shape[-1] == labels.shape[0]))
def ZIP_MAP(x: Rows, labels: Annotated[AnyKey, rank(1)]) -> List:
    """The list of the rows of x as maps from labels."""
    return Tensor(LIST, (UNKNOWN,))


@host(60697, {LIST: 27}, Rule("vocabulary and default are of one kind", lambda vocabulary: vocabulary.rank == 1))
def MAP_VALUES(x: T, vocabulary: AnyKey, default: AnyKey) -> AnyKey:
    """The values of a map at the keys of a vocabulary, in its order; default where there is none."""
    return Tensor(default.type, (1, vocabulary.shape[0]))


@host(60698, {LIST: 27})
def MAP_DENSE(x: T, default: AnyKey, size: Int, sparse: Bool) -> AnyKey:
    """The values of a map by ascending keys; sparse: at the places its keys say, `size` or more of them."""
    return Tensor(default.type, (1, UNKNOWN))
