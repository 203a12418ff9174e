"""Kerberos realm for tests: MIT's KDC as a child process on loopback, with its files in one directory."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from groupwright.testing._kafka import ports
from groupwright.testing._kafka.process import GuardedProcess
from integration_tests.harness.waiting import wait_until

NAME = "GROUPWRIGHT.TEST"
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")

_SERVERS = ("/usr/sbin", "/usr/local/sbin")  # where systems keep them, which is not on every user's path
_SECONDS = 30.0

_CLIENTS = """\
[libdefaults]
  default_realm = {name}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {name} = {{
    kdc = {host}:{port}
  }}
"""
_KDC = """\
[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = {host}:{port}
[realms]
  {name} = {{
    database_name = {directory}/principals
    key_stash_file = {directory}/stash
    acl_file = {directory}/acl
  }}
"""


def missing_programs() -> list[str]:
    """Return the realm's programs that are missing on this machine."""
    return [name for name in PROGRAMS if _program(name) is None]


class Realm:
    """A KDC with a few principals, and a keytab of each."""

    def __init__(self, directory: Path, principals: Iterable[str]) -> None:
        self._directory = directory
        self._principals = tuple(principals)
        self._process: GuardedProcess | None = None

    @property
    def config(self) -> Path:
        """The ``krb5.conf`` of clients and services."""
        return self._directory / "krb5.conf"

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables that point MIT's library to this realm."""
        return {"KRB5_CONFIG": str(self.config)}

    def keytab(self, principal: str) -> Path:
        """Return the path of a principal's keytab."""
        return self._directory / f"{principal.replace('/', '-')}.keytab"

    def log_in(self, principal: str, cache: Path) -> None:
        """Store a principal's ticket in a cache, as kinit does."""
        self._run("kinit", "-c", f"FILE:{cache}", "-k", "-t", self.keytab(principal), principal)

    def __enter__(self) -> Self:
        port = ports.free_port()
        values = {"name": NAME, "host": ports.HOST, "port": port, "directory": self._directory}
        self.config.write_text(_CLIENTS.format(**values), encoding="ascii")
        self._kdc_config.write_text(_KDC.format(**values), encoding="ascii")
        self._run("kdb5_util", "create", "-s", "-r", NAME, "-P", "the-master-key-of-a-test")
        for principal in self._principals:
            self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
            self._run("kadmin.local", "-q", f"ktadd -norandkey -k {self.keytab(principal)} {principal}")
        environment = [f"{name}={value}" for name, value in self._environment().items()]
        self._process = GuardedProcess(
            ["/usr/bin/env", *environment, str(_program("krb5kdc")), "-n", "-r", NAME],
            log_path=self._directory / "kdc.log",
            remove_if_orphaned=None,
        )
        self._process.start()
        wait_until(lambda: _listens(port), "the KDC")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()

    @property
    def _kdc_config(self) -> Path:
        return self._directory / "kdc.conf"

    def _environment(self) -> dict[str, str]:
        return {**self.environment, "KRB5_KDC_PROFILE": str(self._kdc_config)}

    def _run(self, program: str, *arguments: str | Path) -> None:
        command: list[str | Path] = [str(_program(program)), *arguments]
        environment = {**os.environ, **self._environment()}
        subprocess.run(command, check=True, capture_output=True, env=environment, timeout=_SECONDS)


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *_SERVERS)))


def _listens(port: int) -> bool:
    try:
        socket.create_connection((ports.HOST, port), timeout=1.0).close()
    except OSError:
        return False
    return True
