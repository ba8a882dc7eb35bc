"""Every public class, function, method and property says what it takes and what it returns, in the NumPy style."""

import inspect
from functools import cached_property
from importlib import import_module

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, validate

MODULES = (
    "",
    ".control",
    ".deep",
    ".derivation",
    ".features",
    ".forward",
    ".nonlinear",
    ".problems",
    ".streams",
    ".study",
)
CHECKS = {  # what numpydoc has to find, by its own codes
    "GL08": "a docstring",
    "SS01": "a summary",
    "PR01": "every parameter",
    "PR02": "no parameter that there is not",
    "PR04": "the type of a parameter",
    "PR07": "the description of a parameter",
    "RT01": "what is returned",
    "RT03": "the description of what is returned",
    "YD01": "what is yielded",
}


def public():
    """Every public class and function, and the public methods and properties of the classes, by name."""
    found = {}
    for module in MODULES:
        home = import_module(f"trueonline{module}")
        for name in home.__all__:
            thing = getattr(home, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                path = f"{thing.__module__}.{thing.__qualname__}"  # some have two public names
                found[path] = thing, inspect.getdoc(thing)
                found |= {f"{path}.{part}": member for part, member in _members(thing)}
    return found


def _members(kind):
    """The public methods and properties of a class that this package defines, each with its docstring."""
    for name in dir(kind) if inspect.isclass(kind) else ():
        member = inspect.getattr_static(kind, name)
        is_property = isinstance(member, property | cached_property)
        function = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
        if inspect.isfunction(function) and not name.startswith("_") and function.__module__.startswith("trueonline"):
            yield name, (member if is_property else function, inspect.getdoc(getattr(kind, name)))


class Documented(Validator):
    """numpydoc's view of an object that is at hand, with the docstring that `help` shows."""

    def __init__(self, obj_name, thing, text):
        self._name = obj_name
        super().__init__(get_doc_object(thing, doc=text, config={"show_class_members": False}))
        self.raw_doc = self.clean_doc = text

    @property
    def name(self):
        return self._name

    @property
    def doc_all_parameters(self):
        """The fields of a result may be documented as attributes, because users do not make it."""
        is_result = inspect.isclass(self.obj) and not self.doc["Parameters"]
        return self._doc_parameters(["Attributes" if is_result else "Parameters", "Other Parameters"])

    @property
    def signature_parameters(self):
        """Nobody makes an instance of a protocol, and a property takes nothing."""
        takes_none = getattr(self.obj, "_is_protocol", False) or isinstance(self.obj, property | cached_property)
        return tuple(self.doc_all_parameters) if takes_none else super().signature_parameters


PUBLIC = public()


def errors_of(name, thing, text):
    found = validate(name, Documented, thing=thing, text=text or "")["errors"]
    return [f"{code}: {message}" for code, message in found if code in CHECKS]


def test_public_names_are_documented():
    assert len(PUBLIC) > 1000
    assert {name: errors for name, about in PUBLIC.items() if (errors := errors_of(name, *about))} == {}


def test_missing_parts_are_found():
    def add(a, b):
        return a + b

    documented = (
        "Add.\n\nParameters\n----------\na : float\n    A.\nb : float\n    B.\n\nReturns\n-------\nfloat\n    a + b.\n"
    )
    assert errors_of("add", add, documented) == []
    assert [error[:4] for error in errors_of("add", add, "")] == ["GL08"]
    assert [error[:4] for error in errors_of("add", add, "Add.")] == ["PR01", "RT01"]
    for part, code in (
        ("b : float\n    B.\n", "PR01"),
        (" : float", "PR04"),
        ("    B.\n", "PR07"),
        ("    a + b.\n", "RT03"),
    ):
        assert code in {error[:4] for error in errors_of("add", add, documented.replace(part, ""))}


def test_a_learner_shows_the_parameters_of_all_learners_before_its_examples():
    text = inspect.getdoc(import_module("trueonline").TrueOnlineTD)
    assert text.index("n_features : int") < text.index("meta_step_size : float") < text.index("Examples\n--------")
    assert text.count("Parameters\n----------") == 1
