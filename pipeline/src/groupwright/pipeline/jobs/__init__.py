"""The jobs: `stream` keeps the tables up to date, `batch` brings them up to a time or to offsets.

`main.py` is what `spark-submit` takes; `groupwright pipeline` runs the same on a Spark of its own.
"""
