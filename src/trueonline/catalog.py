"""The catalogue: every method once, with its rule, its learner, its definition, its page and its look.

Everything that lists methods reads this file: `verify`, sweeps, sweep files, the commands and their help, plots, and the
README's table. A row names code as "module:name" and imports it when asked, so this file imports nothing and
`trueonline --help` stays instant.

The file is long because it is a table: one row for each method.

To add a method, add a rule file, a definition, a row here, and a page (CONTRIBUTING.md has the steps).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

GROUPS = ("prediction", "off-policy", "average reward", "nonlinear", "control")
TRACES = ("accumulating", "replacing", "dutch", "provisional", "none")
OWN_MEMORIES = ("one", "two", "three", "two traces")  # those that a rule of one's own may have
MEMORIES = (*OWN_MEMORIES, "two and usage", "three and usage", "two traces and usage", "meta-gradient")
LINEAR_MODULE = "learners.linear"  # makes the classes that rows name without a module
# The colours are Okabe and Ito's, which colour-blind people can tell apart.
VERMILION, BLUE, GREEN, SKY, PINK, GREY = "#D55E00", "#0072B2", "#009E73", "#56B4E9", "#CC79A7", "#7F7F7F"


@dataclass(frozen=True)
class Look:
    """How a method is drawn: colour, dashes (none is a solid line) and marker."""

    colour: str = GREY
    dashes: tuple[int, ...] = ()
    marker: str = "o"


class Parameter(NamedTuple):
    """A parameter of a rule.

    Parameters
    ----------
    default : float
        Its value where none is given.
    least, most : float, optional
        The range of its values. All finite numbers by default.
    about : str, optional
        A sentence for the docstring of the class.
    """

    default: float
    least: float = -math.inf
    most: float = math.inf
    about: str = ""

    def checked(self, name: str, value: Any) -> float:
        """Check a value.

        Parameters
        ----------
        name : str
            The name of the parameter, for the error.
        value : float
            The value.

        Returns
        -------
        float
            The value.

        Raises
        ------
        ValueError
            If the value is not a finite number in the range.
        """
        try:
            number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
        except OverflowError:
            number = math.nan
        if not (math.isfinite(number) and self.least <= number <= self.most):
            ranges = {(True, True): "", (False, True): f" ≥ {self.least:g}", (True, False): f" ≤ {self.most:g}"}
            open_ends = math.isinf(self.least), math.isinf(self.most)
            wanted = ranges.get(open_ends, f" from {self.least:g} to {self.most:g}")
            raise ValueError(f"{name} must be a finite number{wanted}, got {value!r:.80}")
        return number


@dataclass(frozen=True, eq=False)
class Method:
    """One row of the catalogue.

    Parameters
    ----------
    name : str
        The name in commands, sweeps and sweep files.
    title : str
        The name in plots and tables.
    group : str
        One of `GROUPS`.
    learner : str or class
        The class of learners, or of agents. A name without a module is that of a class of learners that is made of the row
        (`learners.linear`).
    definition : str or class
        The class that computes the method by its definition. The learner must equal it at every step. A name without a module
        is that of a class of `forward`.
    page : str
        The page in `docs/methods/` that describes the method. By default it has the name of the rule.
    rule : str or kernel
        The update rule. Its signature says what it needs of a transition (`core.transition`). A name without a module is that of
        a file in `methods`.
    varying : str or kernel, optional
        The rule for step-size schedules and step-size adaptation, where that is another one.
    forward_view : str or class, optional
        The online forward view that the method approximates or equals. By default the definition.
    memory : str
        One of `MEMORIES`: the weights and traces that the rule works on.
    trace : str
        One of `TRACES`. Step-size adaptation goes by it.
    binary : bool
        Whether the method is defined for binary features only.
    greedy : bool
        Whether an agent bootstraps from the best action instead of the action that it takes next.
    cuts : bool
        Whether the trace of a greedy agent is cut when it takes another action than the best.
    options : mapping
        Arguments of the class that make it this method.
    settings : mapping
        Arguments of the class, with the values that `verify` gives them: those that the class requires, and others that matter.
    swept : bool
        Whether sweeps compile its rule into their own loop, which needs a memory of the kinds "one", "two" or "three". Other
        methods are swept by their learners, one step at a time. A sweep that names no methods runs all for which this is true.
    horde : bool
        Whether hordes know it, which share traces among many predictions (`streams/horde`).
    look : Look
        How it is drawn.
    constants : tuple of str
        Which of "gamma", "lam" and "alpha" must not change from step to step.
    per_feature : bool
        Whether each feature may have its own step-size.
    adapts : bool
        Whether step-size adaptation knows the method. It does not know of a reward rate.
    second_is_first : bool
        Whether the second step-size is the first where none is given.
    parameters : mapping
        The parameters of the rule: names in its signature that no transition has, each a `Parameter`.
    """

    name: str
    title: str
    group: str
    learner: Any
    definition: Any
    page: str = ""
    rule: Any = None
    varying: Any = None
    forward_view: Any = None
    memory: str = "one"
    trace: str = "accumulating"
    binary: bool = False
    greedy: bool = False
    cuts: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    swept: bool = False
    horde: bool = False
    look: Look = Look()
    constants: tuple[str, ...] = ()
    per_feature: bool = False
    adapts: bool = True
    second_is_first: bool = False
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.page and isinstance(self.rule, str):
            object.__setattr__(self, "page", f"{self.rule}.md")

    def resolve(self, part: str) -> Any:
        """Import what a part of the row names.

        Parameters
        ----------
        part : str
            "learner", "definition", "forward_view", "rule" or "varying".

        Returns
        -------
        object
            The class or kernel. `forward_view` is the definition and `varying` is the rule where the row has no other.

        Raises
        ------
        ValueError
            If the module that the row names does not have it.
        """
        fallback = {"forward_view": "definition", "varying": "rule"}.get(part)
        value = getattr(self, part)
        if value is None and fallback is not None:
            return self.resolve(fallback)
        if not isinstance(value, str):
            return value
        homes = {"learner": LINEAR_MODULE, "rule": f"methods.{value}", "varying": f"methods.{value}"}
        module, _, name = (value if ":" in value else f"{homes.get(part, 'forward')}:{value}").partition(":")
        found = getattr(import_module(f"trueonline.{module}"), name, None)
        if found is None:
            raise ValueError(
                f"the {part} of {self.name} is {value!r}, but trueonline.{module} has no {name}; define or import it there"
            )
        return found


_GTD: dict[str, Any] = {"learner": "GTD", "rule": "gtd", "memory": "two", "swept": True}
_TRUE_ONLINE_GTD: dict[str, Any] = {
    "learner": "TrueOnlineGTD",
    "rule": "true_online_gtd",
    "memory": "three",
    "trace": "dutch",
    "swept": True,
    "page": "gtd.md",
}
_GTD2: dict[str, Any] = {
    "memory": "two",
    "trace": "none",  # w does not learn along it
    "swept": True,
    "settings": {"second_step_size": 0.2},
    "page": "gtd2.md",
}
_TRUE_ONLINE: dict[str, Any] = {
    "rule": "true_online_td",
    "varying": "true_online_td_varying",
    "trace": "dutch",
}
_DIFFERENTIAL: dict[str, Any] = {
    "rule": "true_online_differential_td",
    "trace": "dutch",
    "settings": {"second_step_size": 0.2},
    "adapts": False,
    "page": "differential_td.md",
    "look": Look(SKY, (), "s"),
}

_SWIFT: dict[str, Any] = {
    "rule": "swift_td",
    "memory": "meta-gradient",
    "trace": "dutch",
    "constants": ("alpha",),  # of each feature, it is the step-size to begin with
    "page": "swift.md",
}

# Step-size adaptation knows no target policies.
_TARGETED: dict[str, Any] = {"trace": "none", "page": "off_policy_control.md"}

_ROWS = (
    Method(
        *("accumulate", "accumulate TD(λ)", "prediction"),
        learner="AccumulateTD",
        definition="AccumulateSum",
        forward_view="OnlineLambdaReturn",
        rule="accumulate_td",
        swept=True,
        horde=True,
        look=Look(VERMILION, (6, 2), "s"),
    ),
    Method(
        *("replace", "replace TD(λ)", "prediction"),
        learner="ReplaceTD",
        definition="ReplaceSum",
        forward_view="OnlineLambdaReturn",
        rule="replace_td",
        trace="replacing",
        binary=True,
        swept=True,
        horde=True,
        look=Look(BLUE, (2, 2), "^"),
    ),
    Method(
        *("true_online", "true online TD(λ)", "prediction"),
        learner="TrueOnlineTD",
        definition="OnlineLambdaReturn",
        **_TRUE_ONLINE,
        swept=True,
        horde=True,
        look=Look(GREEN, (), "o"),
    ),
    Method(
        *("monte_carlo", "Monte Carlo", "prediction"),
        learner="MonteCarlo",
        definition="OnlineMonteCarlo",
        page="monte_carlo.md",
        rule="dutch_monte_carlo",
        trace="dutch",
        look=Look(PINK, (), "D"),
    ),
    Method(
        *("swift_td", "SwiftTD", "prediction"),
        learner="learners.swift:SwiftTD",
        definition="SwiftTDEquations",
        **_SWIFT,
        look=Look(SKY, (), "P"),
    ),
    Method(
        *("td_star", "TD*(λ)", "prediction"),
        learner="TDStar",
        definition="ImpliedSum",
        forward_view="OnlineLambdaReturn",
        rule="td_star",
        look=Look(SKY, (6, 2), "X"),
    ),
    # Without second weights GTD(λ) is off-policy TD(λ), and true online GTD(λ) its true online form.
    Method(
        *("off_policy", "off-policy TD(λ)", "off-policy"),
        definition="OffPolicySum",
        forward_view="OnlineOffPolicyReturn",
        options={"second_step_size": 0.0},
        look=Look(VERMILION, (4, 2), "s"),
        **_GTD,
    ),
    Method(
        *("true_online_off_policy", "true online off-policy TD(λ)", "off-policy"),
        definition="OnlineOffPolicyReturn",
        options={"second_step_size": 0.0},
        look=Look(VERMILION, (), "s"),
        **_TRUE_ONLINE_GTD,
    ),
    Method(
        *("gtd", "GTD(λ)", "off-policy"),
        definition="GTDSum",
        forward_view="OnlineGTDReturn",
        settings={"second_step_size": 0.2},
        look=Look(BLUE, (4, 2), "o"),
        **_GTD,
    ),
    Method(
        *("true_online_gtd", "true online GTD(λ)", "off-policy"),
        definition="OnlineGTDReturn",
        settings={"second_step_size": 0.2},
        look=Look(BLUE, (), "o"),
        **_TRUE_ONLINE_GTD,
    ),
    Method(
        *("tdrc", "TDRC(λ)", "off-policy"),
        learner="TDRC",
        definition="TDRCSum",
        rule="tdrc",
        memory="two",
        swept=True,
        second_is_first=True,
        settings={"second_step_size": 0.2, "regularization": 0.7},
        parameters={
            "regularization": Parameter(1.0, least=0.0, about="κ ≥ 0, which pulls the second weights towards zero.")
        },
        look=Look(PINK, (4, 2), "v"),
    ),
    Method(
        *("gtd2", "GTD2(λ)", "off-policy"),
        learner="GTD2",
        definition="GTD2Sum",
        rule="gtd2",
        look=Look(SKY, (4, 2), "^"),
        **_GTD2,
    ),
    Method(
        *("proximal_gtd2", "proximal GTD2(λ)", "off-policy"),
        learner="ProximalGTD2",
        definition="ProximalGTD2Sum",
        rule="proximal_gtd2",
        look=Look(SKY, (), "^"),
        **_GTD2,
    ),
    Method(
        *("htd", "HTD(λ)", "off-policy"),
        learner="HTD",
        definition="HTDSum",
        rule="htd",
        memory="three",
        swept=True,
        settings={"second_step_size": 0.2},
        look=Look(BLUE, (2, 2), "v"),
    ),
    Method(
        *("tree_backup", "Tree Backup(λ)", "off-policy"),
        learner="TreeBackup",
        definition="TreeBackupSum",
        page="cut_traces.md",
        rule="tree_backup",
        swept=True,
        look=Look(GREY, (), "s"),
    ),
    Method(
        *("v_trace", "V-trace(λ)", "off-policy"),
        learner="VTrace",
        definition="VTraceSum",
        page="cut_traces.md",
        rule="v_trace",
        swept=True,
        settings={"largest_ratio": 1.3, "largest_trace_ratio": 0.8},
        parameters={
            "largest_ratio": Parameter(1.0, least=0.0, about="ρ̄, which the ratios of updates are clipped to."),
            "largest_trace_ratio": Parameter(1.0, least=0.0, about="c̄, which the ratios of the trace are clipped to."),
        },
        look=Look(GREY, (4, 2), "P"),
    ),
    Method(
        *("abtd", "ABTD(ζ)", "off-policy"),
        learner="ABTD",
        definition="ABTDSum",
        page="cut_traces.md",
        rule="abtd",
        trace="none",  # ζ does not bound what the trace keeps, so step-size adaptation cannot either
        swept=True,
        settings={"psi_0": 0.9, "psi_max": 2.5},
        parameters={
            "psi_0": Parameter(
                1.0, least=0.0, about="ψ₀, which is 1 over the largest max(π, b) of all states and actions."
            ),
            "psi_max": Parameter(2.0, least=0.0, about="ψ_max, which is 1 over the smallest max(π, b)."),
        },
        look=Look(GREY, (2, 2), "X"),
    ),
    Method(
        *("emphatic", "emphatic TD(λ)", "off-policy"),
        learner="EmphaticTD",
        definition="EmphaticSum",
        forward_view="OnlineEmphaticReturn",
        rule="emphatic_td",
        swept=True,
        look=Look(GREEN, (4, 2), "D"),
    ),
    Method(
        *("emphatic_beta", "emphatic TD(λ, β)", "off-policy"),
        learner="EmphaticTDBeta",
        definition="EmphaticBetaSum",
        page="emphatic_td.md",
        rule="emphatic_td_beta",
        swept=True,
        settings={"follow_on_decay": 0.6},
        parameters={"follow_on_decay": Parameter(0.8, 0.0, 1.0, "β in [0, 1], by which the follow-on trace decays.")},
        look=Look(GREEN, (2, 2), "X"),
    ),
    Method(
        *("true_online_emphatic", "true online emphatic TD(λ)", "off-policy"),
        learner="TrueOnlineEmphaticTD",
        definition="OnlineEmphaticReturn",
        page="emphatic_td.md",
        rule="true_online_emphatic_td",
        trace="dutch",
        swept=True,
        look=Look(GREEN, (), "D"),
    ),
    Method(
        *("provisional_td", "provisional TD(λ)", "off-policy"),
        learner="ProvisionalTD",
        definition="ProvisionalTDView",
        page="provisional.md",
        rule="provisional_td",
        memory="two traces",
        trace="provisional",
        look=Look(PINK, (), "^"),
    ),
    Method(
        *("provisional_q", "provisional Q(λ)", "off-policy"),
        learner="ProvisionalQ",
        definition="ProvisionalQView",
        page="provisional.md",
        rule="provisional_q",
        memory="two traces",
        trace="provisional",
        look=Look(PINK, (4, 2), "v"),
    ),
    Method(
        *("wis_td", "WIS-TD(λ)", "off-policy"),
        learner="WISTD",
        definition="OnlineWISReturn",
        rule="wis_td",
        memory="two traces and usage",
        trace="dutch",
        settings={"initial_step_size": 0.4},
        look=Look(SKY, (), "s"),
        page="wis.md",
    ),
    Method(
        *("wis_gtd", "WIS-GTD(λ)", "off-policy"),
        learner="WISGTD",
        definition="WISGTDSum",
        forward_view="OnlineWISGTDReturn",
        rule="wis_gtd",
        memory="two and usage",
        settings={"second_step_size": 0.2, "initial_step_size": 0.4},
        look=Look(SKY, (4, 2), "o"),
        page="wis.md",
    ),
    Method(
        *("wis_true_online_gtd", "WIS-TO-GTD(λ)", "off-policy"),
        learner="WISTrueOnlineGTD",
        definition="OnlineWISGTDReturn",
        rule="wis_true_online_gtd",
        memory="three and usage",
        trace="dutch",
        settings={"second_step_size": 0.2, "initial_step_size": 0.4},
        look=Look(SKY, (), "o"),
        page="wis.md",
    ),
    Method(
        *("true_online_differential", "true online differential TD(λ)", "average reward"),
        learner="learners.average_reward:TrueOnlineDifferentialTD",
        definition="OnlineDifferentialReturn",
        swept=True,
        **_DIFFERENTIAL,
    ),
    Method(
        *("true_online_differential_sarsa", "true online differential Sarsa(λ)", "average reward"),
        learner="control.true_online_differential_sarsa:TrueOnlineDifferentialSarsa",
        definition="OnlineDifferentialSarsaReturn",
        **_DIFFERENTIAL,
    ),
    Method(
        *("forward_td", "forward TD(λ)", "nonlinear"),
        learner="nonlinear.squashed:forward_td",
        definition="nonlinear.squashed:delayed_lambda_return",
        page="forward_td_nonlinear.md",
        trace="none",
        look=Look(SKY, (), "D"),
    ),
    *(
        Method(
            *(f"stream_{name.lower()}", f"stream {name}(λ)", "nonlinear"),
            learner=f"deep.checks.small:stream_{name.lower()}",
            definition=f"deep.checks.small:stream_{name.lower()}_definition",
            page="streaming_deep.md",
            look=Look(VERMILION, (), "D"),
        )
        for name in ("TD", "Q", "Sarsa", "AC")
    ),
    Method(
        *("accumulate_sarsa", "accumulate Sarsa(λ)", "control"),
        learner="control.accumulate_sarsa:AccumulateSarsa",
        definition="AccumulateSarsaSum",
        forward_view="OnlineSarsaReturn",
        page="sarsa.md",
        rule="accumulate_td",
        look=Look(VERMILION, (6, 2), "s"),
    ),
    Method(
        *("replace_sarsa", "replace Sarsa(λ)", "control"),
        learner="control.replace_sarsa:ReplaceSarsa",
        definition="ReplaceSarsaSum",
        forward_view="OnlineSarsaReturn",
        page="sarsa.md",
        rule="replace_td",
        trace="replacing",
        binary=True,
        look=Look(BLUE, (2, 2), "^"),
    ),
    Method(
        *("clearing_sarsa", "replace Sarsa(λ), clearing", "control"),
        learner="control.replace_sarsa:ReplaceSarsa",
        definition="ClearingSarsaSum",
        forward_view="OnlineSarsaReturn",
        page="sarsa.md",
        rule="replace_clearing",
        trace="replacing",
        binary=True,
        options={"clear_others": True},
        look=Look(SKY, (2, 1), "v"),
    ),
    Method(
        *("true_online_sarsa", "true online Sarsa(λ)", "control"),
        learner="control.true_online_sarsa:TrueOnlineSarsa",
        definition="OnlineSarsaReturn",
        page="sarsa.md",
        **_TRUE_ONLINE,
        look=Look(GREEN, (), "o"),
    ),
    Method(
        *("watkins_q", "Watkins's Q(λ)", "control"),
        learner="control.watkins_q:WatkinsQ",
        definition="WatkinsQSum",
        forward_view="OnlineWatkinsReturn",
        page="watkins_q.md",
        rule="accumulate_td",
        greedy=True,
        look=Look(PINK, (6, 2), "s"),
    ),
    Method(
        *("true_online_watkins_q", "true online Watkins's Q(λ)", "control"),
        learner="control.true_online_watkins_q:TrueOnlineWatkinsQ",
        definition="OnlineWatkinsReturn",
        page="watkins_q.md",
        **_TRUE_ONLINE,
        greedy=True,
        look=Look(PINK, (), "o"),
    ),
    Method(
        *("expected_sarsa", "Expected Sarsa(λ)", "control"),
        learner="control.off_policy:ExpectedSarsa",
        definition="ExpectedSarsaSum",
        rule="expected_sarsa",
        look=Look(BLUE, (4, 2), "D"),
        **_TARGETED,
    ),
    Method(
        *("tree_backup_q", "Tree Backup(λ) control", "control"),
        learner="control.off_policy:TreeBackupQ",
        definition="TreeBackupQSum",
        rule="tree_backup_q",
        look=Look(GREY, (), "s"),
        **_TARGETED,
    ),
    Method(
        *("gq", "GQ(λ)", "control"),
        learner="control.off_policy:GQ",
        definition="GQSum",
        rule="gq",
        memory="two",
        second_is_first=True,
        look=Look(BLUE, (), "v"),
        **_TARGETED,
    ),
    Method(
        *("swift_sarsa", "Swift-Sarsa", "control"),
        learner="control.swift_sarsa:SwiftSarsa",
        definition="SwiftSarsaEquations",
        **_SWIFT,
        look=Look(SKY, (), "P"),
    ),
)
METHODS: Mapping[str, Method] = MappingProxyType({row.name: row for row in _ROWS})


def names(group: str | None = None, *, swept: bool | None = None) -> tuple[str, ...]:
    """The names of the methods, in the order of the catalogue.

    Parameters
    ----------
    group : str, optional
        Only methods of this group.
    swept : bool, optional
        Only methods that sweeps have a kernel for, or only those that they have none for.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> names("prediction")[:4]
    ('accumulate', 'replace', 'true_online', 'monte_carlo')
    >>> "monte_carlo" in names("prediction", swept=True)
    False
    """
    return tuple(row.name for row in _ROWS if group in (None, row.group) and (swept is None or row.swept == swept))


def classes(folder: str = "learners") -> dict[str, Method]:
    """The classes of learners or agents in a folder of the package, each with the row that it is of.

    Parameters
    ----------
    folder : str, optional
        "learners", "control" or "nonlinear".

    Returns
    -------
    dict
        From the name of a class to a row. A class of several rows has the row that needs no options.

    Examples
    --------
    >>> [*classes()][:3], classes()["GTD"].name
    (['AccumulateTD', 'ReplaceTD', 'TrueOnlineTD'], 'gtd')
    """
    found: dict[str, Method] = {}
    for row in sorted(_ROWS, key=lambda row: bool(row.options)):
        module, _, name = row.learner.rpartition(":")
        if (module or "learners").partition(".")[0] == folder:
            found.setdefault(name, row)
    return found


def homes(folder: str) -> dict[str, str]:
    """The public classes that the rows name, and the modules that define them.

    Parameters
    ----------
    folder : str
        As for `classes`.

    Returns
    -------
    dict
        From the name of a class to its module, without `trueonline.`.

    Examples
    --------
    >>> homes("learners")["TDStar"], homes("control")["WatkinsQ"]
    ('learners.linear', 'control.watkins_q')
    """
    return {name: row.learner.rpartition(":")[0] or LINEAR_MODULE for name, row in classes(folder).items()}


def sweepable() -> tuple[str, ...]:
    """The names of the methods that sweeps take: predictions from one vector of features. Some have no kernel of a sweep.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> "monte_carlo" in sweepable(), "wis_gtd" in sweepable()   # WIS-GTD(λ) has a second step-size
    (True, False)
    """
    return tuple(
        row.name
        for row in _ROWS
        if row.group in ("prediction", "off-policy", "average reward")
        and row.name != "provisional_q"  # it needs φ̄' too
        and (row.swept or "second_step_size" not in row.settings)  # without a kernel a method has one step-size there
    )


def agents(*, scaled: bool = False) -> tuple[str, ...]:
    """The names of the agents that commands make: the methods of control whose learner needs no options.

    Parameters
    ----------
    scaled : bool, optional
        Only agents whose step-size may change from step to step. Runs on Atari games divide it.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> set(agents()) - set(agents(scaled=True))
    {'swift_sarsa'}
    """
    rows = (METHODS[name] for name in names("control"))
    return tuple(row.name for row in rows if not row.options and not (scaled and "alpha" in row.constants))
