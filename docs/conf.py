"""The documentation as a site: `make docs` builds it, and it works as plain files, offline."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "zerogap"
author = "The zerogap developers"
copyright = author
version = release = installed("zerogap")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "code_blocks",
    "reference_pages",
    "repository_links",
    "tutorial_pages",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["build"]
suppress_warnings = ["config.cache"]  # the order of the gallery is a class, which is no data
nitpicky = False
highlight_language = "none"  # formulas and drawings are no Python; what is says so
show_warning_types = True

myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # the docstrings say types in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
default_role = "code"
smartquotes_action = "qe"  # quotes and dots, not dashes: `--tol` in the help of a command stays

copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": "/",
    "within_subsection_order": "gallery_order.NewcomersFirst",
    "min_reported_time": 10**6,  # seconds: how long an example took here tells nobody anything
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
}

LONG_PAGES = (  # have a table of their sections beside them
    *("command-line", "proof-format"),
    *("benchmarks/*", "develop/*", "reference/commands", "reference/names", "reference/faults"),
    *("reference/security",),
)
html_theme = "pydata_sphinx_theme"
html_title = "zerogap"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"five-reports": []}  # one page without others beside it; its tables are wide
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],  # a field would need a second line
    "header_links_before_dropdown": 8,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {page: ["page-toc"] for page in LONG_PAGES},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
