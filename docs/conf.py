"""Settings of the documentation site. `make docs` builds it, offline, and stops at the first warning."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent)]  # the extensions of this site, and the benchmarks

project = "trueonline"
author = "The trueonline developers"
copyright = "2026, The trueonline developers"
release = version = installed("trueonline")

extensions = [
    "myst_nb",  # Markdown pages; tutorials are notebooks in Markdown, executed when the site is built
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "stored_results",  # docs/_ext: verdicts, experiments and benchmarks, from docs/results/data
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "light_pages",  # docs/_ext: the gallery's styles stay in the gallery
    "sphinx.ext.mathjax",  # marks equations up; KaTeX draws them, see below
    "explorable",  # docs/_ext: the explorable pages, inside other pages
    "generated_pages",  # docs/_ext: the API's lists of names, and the catalogue of methods
    "method_pictures",  # docs/_ext: a picture for each linear method, drawn from its learners
    "accidents",  # docs/_ext: broken lists, cards without a link, dead links and raw asterisks stop the build
    "whole_search",  # docs/_ext: the search finds every page, also after a build that was interrupted
]
exclude_patterns = [
    "_build",
    "jupyter_execute",  # myst-nb puts the executed notebooks and their pictures here
    "**/_template.md",
    "gallery/**.ipynb",
    "gallery/**.py",
    "gallery/**.md5",
    "gallery/**.zip",
    "gallery/**.json",
    "sg_execution_times.rst",
    "**/sg_execution_times.rst",
]
highlight_language = "none"  # a block that names no language is plain text
nitpicky = True
nitpick_ignore_regex = [("py:class", r"trueonline\.forward\..*")]  # classes behind a public name of another spelling
templates_path = ["_templates"]

# Markdown
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4
nb_execution_mode = "cache"  # a page whose code did not change is not executed again
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_cache_path = str(DOCS / "_build" / ".jupyter_cache")
nb_merge_streams = True
suppress_warnings = ["config.cache"]  # settings of extensions that hold functions

# Reference
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # numpydoc's tables have the types
numpydoc_show_class_members = False
numpydoc_attributes_as_param_list = True
default_role = "literal"  # in docstrings, which are reStructuredText
autodoc_member_order = "bysource"
numpydoc_class_members_toctree = False

# Gallery
GALLERY = ("exactness", "functions", "off_policy", "control", "streams")
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "image_scrapers": ("matplotlib",),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 3600,
    "abort_on_example_error": True,
    "thumbnail_size": (640, 448),
    "image_srcset": ["2x"],  # sharp on screens with many pixels
    "subsection_order": [f"../examples/gallery/{name}" for name in GALLERY],
    "within_subsection_order": "FileNameSortKey",
}

# Look
html_theme = "furo"
html_title = "trueonline"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # it loads every page that was found, which a browser refuses for files
smartquotes = False  # they would turn the two dashes of an option into one
html_favicon = "_static/icon.svg"
html_theme_options = {"navigation_with_keys": True}

# Mathematics: a copy of KaTeX lies in the site, so that equations are drawn without the network, and in a tenth of MathJax's size.
mathjax_path = "katex/render.js"
myst_update_mathjax = False
