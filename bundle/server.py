"""What starts the server where the bundle was opened; the package is installed from the wheel beside it."""

import sys

from npl_mcp.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
