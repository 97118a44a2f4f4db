"""What programs and workers share with the process that forks them: imported packages, lasting objects."""

import pkgutil
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.http.app import create_app
from npl_mcp.http.policy import Policy
from npl_mcp.web.rendering import environment
from tests.tools import npl_load_tailored

_IMPORTED_LATE = (
    "fastmcp.client html5lib hypothesis jsonschema psycopg xdist.remote uvicorn.lifespan.on"
    " uvicorn.protocols.http.h11_impl uvicorn.protocols.websockets.auto"
)


def make() -> None:
    """Import all packages; make schemas of tools, routes, templates, tables of the ranking."""
    for package in ("npl_index", "npl_mcp"):
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__") and ".migrations." not in module.name:
                import_module(module.name)
    for name in _IMPORTED_LATE.split():
        import_module(name)
    with TemporaryDirectory() as name:
        folder = Path(name)
        settings = Settings(
            cwd=folder, home=folder, system=folder, data_dir=folder / "data", web_url="http://none"
        )
        create_app(Policy(settings, frozenset(), own_token=""))
        for template in environment().list_templates():
            environment().get_template(template)
        app = App(settings)
        npl_load_tailored(app, context="prompt")
        app.close()
