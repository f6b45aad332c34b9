"""Start the page: settings, store, engine, tabs, launch. ``python app.py --help`` lists the options."""

from __future__ import annotations

import sys

from mdqa.errors import MdqaError
from ui.context import open_context
from ui.launching import check_address, check_people, check_storage, launch_options, read_settings, stop_on_terminate
from ui.layout import appearance, build_ui
from ui.logs import start_log


def main() -> int:
    """Serve until the program is stopped; 2 for settings that cannot be used."""
    stop_on_terminate()
    try:
        settings = read_settings()
        start_log(settings.log_level)
        check_people(settings)
        check_address(settings)
        check_storage(settings)
        context = open_context(settings)
    except MdqaError as problem:
        print(f"app.py: {problem}", file=sys.stderr)
        return 2
    try:
        page = build_ui(context).queue(max_size=settings.queue * 8, default_concurrency_limit=40)
        print(f"Serving on http://{settings.host}:{settings.port} (stop with Ctrl+C)", flush=True)
        page.launch(**launch_options(settings), **appearance())
    finally:
        context.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
