"""`python -m groupwright.cli` is `groupwright`."""

from groupwright.cli import main

main()
