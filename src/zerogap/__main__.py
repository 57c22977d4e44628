"""`python -m zerogap` is the command `zerogap`."""

from zerogap.cli import main

main()
