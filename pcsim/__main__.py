"""`python -m pcsim VERB …` is `pcsim VERB …`."""

from pcsim.cli import main

if __name__ == "__main__":
    main()
