"""The sdist and the wheel: their files, the package page, and tests that run against the installed wheel."""

import email
import email.message
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from groupwright.testing import LocalKafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.patience import PATIENCE
from tools import licences

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
PARTS = [Path(package).parts[0] for package in PACKAGES]
LOCK = ROOT / "requirements-dev.txt"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an sdist, and of the wheel that the standard frontend builds from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def source_files(built: Path) -> set[str]:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as sdist:
        return {name.partition("/")[2] for name in sdist.getnames()}


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (archive,) = built.glob("*.whl")
    return archive


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


@pytest.mark.slow
def test_two_builds_are_equal_to_the_byte(built: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT)
    first, second = (
        {file.name: file.read_bytes() for file in folder.iterdir()} for folder in (built, tmp_path)
    )

    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="an unpacked sdist has no list of its files")
def test_the_sdist_has_every_file_of_the_repository(source_files: set[str]) -> None:
    git = ("git", "-c", "safe.directory=*")
    listed = run(*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard")

    assert source_files == {name for name in listed.split("\0") if (ROOT / name).is_file()} | {"PKG-INFO"}


@pytest.mark.slow
def test_the_sdist_has_all_that_the_readme_names(source_files: set[str]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = {link.rstrip("/") for link in re.findall(r"\]\((?!https?://|#)([^)#]+)", readme)}

    assert linked
    assert {
        link for link in linked if not any(f"{name}/".startswith(f"{link}/") for name in source_files)
    } == set()
    assert "Makefile" in source_files


@pytest.mark.medium
def test_the_wheel_has_the_parts_and_nothing_else(wheel: Path) -> None:
    expected = {
        file.relative_to(ROOT / part / "src").as_posix()
        for part in PARTS
        for file in (ROOT / part / "src" / "groupwright").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())

    assert {name for name in names if ".dist-info/" not in name} == expected
    assert {f"groupwright/{part}/py.typed" for part in PARTS} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


@pytest.mark.medium
def test_links_work_on_a_package_page(metadata: email.message.Message) -> None:
    page = metadata.get_payload()
    assert isinstance(page, str)
    links = re.findall(r"\]\(([^)]+)\)", page)
    base = f"{PROJECT['project']['urls']['Source']}/blob/v{metadata['Version']}/"
    ours = [link.removeprefix(base) for link in links if link.startswith(base)]

    assert [link for link in links if not link.startswith("https://")] == []
    assert "CHANGELOG.md" in ours
    assert f"]({base.replace('/blob/', '/raw/')}docs/demo.svg)" in page
    assert [link for link in ours if not (ROOT / link.partition("#")[0]).exists()] == []


def test_the_metadata_name_the_project(metadata: email.message.Message) -> None:
    urls = dict(url.split(", ", 1) for url in metadata.get_all("Project-URL", []))

    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= urls.keys()
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Metadata-Version"] == "2.4"
    extras = {"cli", "containers", "demo", "otel", "pipeline", "testing"}
    assert set(metadata.get_all("Provides-Extra", [])) == extras


@pytest.mark.slow
def test_tests_run_against_the_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    """In an environment that has no editable installation: what is not in the wheel, it does not find."""
    run(sys.executable, ROOT / ".ci" / "wheel-venv", tmp_path / "venv", wheel)
    python = tmp_path / "venv" / "bin" / "python"
    version = PROJECT["project"]["version"]
    program = (
        "import importlib.metadata, groupwright.assignors, groupwright.consumer\n"
        "print(*groupwright.assignors.__path__, *groupwright.consumer.__path__)\n"
        "print(importlib.metadata.version('groupwright'))\n"
    )
    assert run(python, "-c", program).count(str(tmp_path)) == 2
    assert run(python, "-c", program).splitlines()[-1] == version
    assert version in run(tmp_path / "venv" / "bin" / "groupwright", "--version")
    assert re.search(
        r"^\d+ passed",
        run(python, "-m", "pytest", "-q", "core", "assignors/tests/test_range.py"),
        re.MULTILINE,
    )


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("other", ["kafka-python==2.0.2", "kafka-python-ng", "kafka-python"])
def test_the_wheel_consumes_beside_another_client(
    wheel: Path, local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, tmp_path: Path, other: str
) -> None:
    """A service may keep the client that it has, in any version: no module of it is imported."""
    python = tmp_path / "venv" / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv")
    run(uv, "pip", "install", "--quiet", "--python", python, wheel, other)
    topic = new_kafka_topic(1)
    producer = Producer({"bootstrap.servers": local_kafka.bootstrap_servers})
    producer.produce(topic, b"one")
    assert producer.flush(PATIENCE) == 0
    program = tmp_path / "program.py"
    program.write_text(_CONSUMES_ONE, encoding="utf-8")

    assert run(python, program, local_kafka.bootstrap_servers, topic) == "b'one' False\n"


_CONSUMES_ONE = f"""
import sys
from groupwright.consumer import Consumer

servers, topic = sys.argv[1:]
consumer = Consumer({{
    "bootstrap.servers": servers,
    "group.id": topic,
    "auto.offset.reset": "earliest",
    "partition.assignment.strategy": "sticky",
}})
consumer.subscribe([topic])
message = consumer.poll({PATIENCE})
print(message.value(), "kafka" in sys.modules)
consumer.close()
"""


def locked() -> Iterator[tuple[str, str]]:
    for line in LOCK.read_text(encoding="utf-8").splitlines():
        if pin := re.match(r"([\w.-]+)(?:\[[^]]*\])?==(\S+)", line):
            yield canonicalize_name(pin[1]), pin[2]


def direct_requirements() -> list[Requirement]:
    project, groups = PROJECT["project"], PROJECT["dependency-groups"]
    lists = [project["dependencies"], *project["optional-dependencies"].values(), *groups.values()]
    found = [Requirement(each) for one in lists for each in one if isinstance(each, str)]
    return [requirement for requirement in found if requirement.name != "groupwright"]


def test_the_lock_file_satisfies_every_requirement() -> None:
    """`make lock` makes it anew."""
    versions: dict[str, list[str]] = {}
    for name, version in locked():
        versions.setdefault(name, []).append(version)

    unsatisfied = [
        str(requirement)
        for requirement in direct_requirements()
        if not (found := versions.get(canonicalize_name(requirement.name)))
        or not all(requirement.specifier.contains(version, prereleases=True) for version in found)
    ]
    assert unsatisfied == []


def test_the_lock_file_works_with_any_package_index() -> None:
    assert "://" not in LOCK.read_text(encoding="utf-8")
    assert "--hash=sha256:" in LOCK.read_text(encoding="utf-8")


def test_the_page_of_licences_says_what_the_installed_packages_say() -> None:
    """An older Python needs some packages more, so the page may have others besides."""
    rows = re.findall(r"^\| ([\w-]+) \| (.+?) \|", licences.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    listed = dict(rows)

    assert {
        name: licence for name, (licence, _) in licences.licences().items() if listed.get(name) != licence
    } == {}


def test_runtime_requirements_have_lower_bounds() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    requirements = map(
        Requirement, [*PROJECT["project"]["dependencies"], *(each for extra in extras for each in extra)]
    )

    assert [
        str(requirement)
        for requirement in requirements
        if requirement.name != "groupwright"
        and not any(specifier.operator == ">=" for specifier in requirement.specifier)
    ] == []


def run(*command: str | Path) -> str:
    """Run a program in the repository, without the settings of the outer pytest, and return its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
