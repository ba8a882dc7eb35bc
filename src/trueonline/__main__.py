"""`python -m trueonline` is the command `trueonline`."""

from trueonline.cli import main

if __name__ == "__main__":
    main(prog_name="trueonline")
