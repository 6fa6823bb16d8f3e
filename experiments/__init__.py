"""The papers' experiments, each run and checked by one command: `onedraw reproduce list`. How to write one: `study.py`."""
