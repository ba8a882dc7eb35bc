"""Saved files with other content, whose lists and digests fit it: what a forger would write."""

import json
import zipfile

import numpy as np

from trueonline import files


def members(path):
    """The members of a saved file, as bytes."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, parts, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def change_about(path, change):
    """Put other text into the place of the description: a text, or a function that changes the dictionary."""
    parts = members(path)
    if callable(change):
        about = json.loads(parts["about.json"])
        change(about)
        change = json.dumps(about)
    write_members(path, {**parts, "about.json": change})


def rewrite(path, *, kind=None, settings=None, out=None, **changes):
    """Write the file again with another class, settings or arrays. An array that is None is left out."""
    was, arguments, arrays = files.read_learner(path)
    arrays |= changes
    kept = {name: np.asarray(array) for name, array in arrays.items() if array is not None}
    files.write_learner(path if out is None else out, kind or was, arguments if settings is None else settings, kept)
