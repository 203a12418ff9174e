"""Installs Spark's Kafka source into Spark's jars, so that containers download nothing at startup."""

import re
import shutil
import sys
from pathlib import Path

import pyspark

from groupwright.pipeline.jobs import CONNECTOR
from groupwright.testing._java.java import resolve_jars

_VERSION = re.compile(r"-\d[\w.]*\.jar$")

jars = Path(pyspark.__file__).parent / "jars"
installed = {_VERSION.sub("", jar.name) for jar in jars.glob("*.jar")}
for jar in resolve_jars(CONNECTOR):
    if _VERSION.sub("", jar.name) not in installed:
        shutil.copy(jar, jars)
        sys.stdout.write(f"{jar.name}\n")
