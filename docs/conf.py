"""How the documentation site is built: Markdown by MyST, the reference from docstrings."""

import ebert

project = "ebert"
author = "The ebert developers"
copyright = "The ebert developers, Apache-2.0"  # noqa: A001
release = version = ebert.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_click"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"ebert {release}"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
default_role = "code"  # docstrings name code in single backquotes
nitpicky = False
