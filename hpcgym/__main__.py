"""``python -m hpcgym`` is the program ``hpcgym``."""

from hpcgym.cli import main

if __name__ == "__main__":  # workers of MPI import this too, by another name
    main()
