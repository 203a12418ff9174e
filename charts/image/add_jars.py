"""Installs the jars of Spark's Kafka source, of Delta and of other table formats, for containers offline.

add_jars.py FOLDER [iceberg]
"""

import re
import shutil
import sys
from pathlib import Path

from groupwright.pipeline.jobs import CONNECTOR, FORMAT_JARS
from groupwright.testing._java.java import resolve_jars

_VERSION = re.compile(r"-\d[\w.]*\.jar$")

folder, formats = Path(sys.argv[1]), ["delta", *sys.argv[2:]]
if unknown := set(formats) - FORMAT_JARS.keys():
    sys.exit(f"unknown format {', '.join(sorted(unknown))}; known formats: {', '.join(FORMAT_JARS)}")
for coordinate in (CONNECTOR, *(FORMAT_JARS[name] for name in formats)):
    installed = {_VERSION.sub("", jar.name) for jar in folder.glob("*.jar")}
    for jar in resolve_jars(coordinate):
        if _VERSION.sub("", jar.name) not in installed:
            shutil.copy(jar, folder)
            sys.stdout.write(f"{jar.name}\n")
