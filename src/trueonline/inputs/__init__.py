"""Checks of user input. Every error names the argument, the value given, and the fix.

Inside the package features have one of three contiguous forms: a float64 array of length n_features, an int64 array of active
indices, or a pair of both. A stream of features is a 2-D float64 array or a CSR triple. All arrays are writable, so that kernels
are compiled for one type.
"""

from trueonline.inputs.arguments import explains_arguments, with_defaults
from trueonline.inputs.feature_inputs import (
    FLOATS,
    INTEGERS,
    as_pair,
    copied,
    dense,
    features,
    given,
    is_dense,
    length,
    like,
    native,
)
from trueonline.inputs.kinds import (
    MAX_FEATURES,
    ONE,
    SINGULAR_NAMES,
    Features,
    FeaturesLike,
    FeatureStream,
    Schedule,
    Stream,
)
from trueonline.inputs.numbers import (
    along,
    as_array,
    at,
    count,
    flag,
    floats,
    joint_seed,
    marks,
    number,
    one_seed,
    positive,
    probabilities,
    probability,
    ratio,
    ratios,
    read_only,
    rewards,
    room_for,
    unit,
    units,
    unmasked,
)
from trueonline.inputs.parameters import Parameters, Parametrised
from trueonline.inputs.protocol import PARTS, check_methods, protocol_of, weights_of
from trueonline.inputs.saved_arrays import (
    MAX_COUNT,
    Resumable,
    check_saved,
    saved_array,
    saved_count,
)
from trueonline.inputs.stream_inputs import begins, row, stream, stream_like
