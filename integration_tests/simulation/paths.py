"""Print the files that a rebalance passes through, with their functions.

Both paths begin with a decoded response. The leader's ends with SyncGroup's request, the revocation's with
the call of `on_revoke`. A file of `consumer`, `assignors` or `core` is on a path if one of its functions is
called. Files that decide or convert come first, in the order of their first calls. The files of the model
follow: values such as a group, and the columns of its assignment.

The assignor's own computation is left out, since an application may have an assignor of its own; so are
sockets (`consumer/_network`), which are simulated, and locks (`core/locking.py`), which neither
decide nor convert.
"""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType

from integration_tests.simulation import lanes

lanes.start()  # before the consumer is imported

from greenlet import getcurrent  # noqa: E402

from groupwright.testing._simulation.scheduler import MS, SECOND  # noqa: E402
from integration_tests.simulation import player  # noqa: E402
from integration_tests.simulation.runtime import VirtualThread  # noqa: E402
from integration_tests.simulation.scenario import Fault, Kind, MemberPlan, Scenario  # noqa: E402

_SOURCES = re.compile(r".*/src/groupwright/((?:consumer|assignors|core)/.*)(?<!core/locking\.py)$")
_MODEL = ("assignors/_model/", "consumer/_protocol/model.py")
_ASSIGNOR = "RangeAssignor.assign"
_RESPONSES = {"Network.join": "JoinGroupResponse", "Network.heartbeat": "int"}
_FIRST, _SECOND = (MemberPlan(name, processing=0) for name in ("m1", "m2"))
_SCENARIO = Scenario(
    1,
    members=(_FIRST,),
    produce_interval=50 * MS,
    faults=(Fault(10 * SECOND, Kind.JOIN, plan=_SECOND), Fault(20 * SECOND, Kind.WAKE)),
)
"""The first member leads. The second one joins, so that partitions of the first one are revoked."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function, or the response that one has returned.

    Attributes:
        thread: The virtual thread.
        function: Its qualified name.
        file: Its file, from the part's name on; empty if it is in none of the parts.
        responds: Whether the function has returned a response.
    """

    thread: VirtualThread
    function: str
    file: str
    responds: bool = False


def record() -> list[Call]:
    """Play the scenario, and return all calls of the first member's process, but those of its assignor."""
    calls: list[Call] = []
    assigning: dict[VirtualThread, FrameType] = {}

    def profile(frame: FrameType, event: str, value: object) -> None:
        thread = getcurrent()
        if not isinstance(thread, VirtualThread) or thread.process.scheduler.now > _SCENARIO.calm_at:
            return  # afterwards topics change
        if thread.process.name == _FIRST.name:
            name, source = frame.f_code.co_qualname, _SOURCES.match(frame.f_code.co_filename)
            file = "" if source is None else source[1]
            if thread in assigning:
                if event == "return" and frame is assigning[thread]:
                    del assigning[thread]
            elif event == "call" and name == _ASSIGNOR:
                assigning[thread] = frame
            elif event == "call":
                calls.append(Call(thread, name, file))
            elif event == "return" and _RESPONSES.get(name) == type(value).__name__:
                calls.append(Call(thread, name, file, responds=True))

    sys.setprofile(profile)
    try:
        player.play(_SCENARIO)
    finally:
        sys.setprofile(None)
    return calls


def path_of_leader(calls: list[Call]) -> dict[str, list[str]]:
    """Return the path from the last response to JoinGroup to SyncGroup's request."""
    begin = _last(calls, "Network.join", responds=True)
    end = begin + next(index for index, call in enumerate(calls[begin:]) if call.function == "Network.sync")
    polling = {call.thread for call in calls if call.function == "Consumer.poll"}
    return _path(call for call in calls[begin:end] if call.thread not in polling)


def path_of_revocation(calls: list[Call]) -> dict[str, list[str]]:
    """Return the path from a response to Heartbeat to the last call of `on_revoke`."""
    end = _last(calls, "Application._on_revoke")
    put = _last(calls[:end], "Inbox.put")
    begin = _last(calls[:put], "Network.heartbeat", responds=True)
    network, polling = calls[begin].thread, calls[end].thread
    served = [call for call in calls[put:end] if call.thread is polling]
    return _path([call for call in calls[begin : put + 1] if call.thread is network] + served)


def _last(calls: list[Call], function: str, *, responds: bool = False) -> int:
    found = (call.function == function and call.responds is responds for call in reversed(calls))
    return len(calls) - 1 - next(index for index, is_it in enumerate(found) if is_it)


def _path(calls: Iterable[Call]) -> dict[str, list[str]]:
    """Return the functions by file, both in the order of their first calls."""
    path: dict[str, list[str]] = {}
    for call in calls:
        if call.file and call.function not in path.setdefault(call.file, []):
            path[call.file].append(call.function)
    return path


def main() -> None:
    """Print both paths."""
    calls = record()
    paths = {"leader": path_of_leader(calls), "revocation": path_of_revocation(calls)}
    for name, path in paths.items():
        model = {file: functions for file, functions in path.items() if file.startswith(_MODEL)}
        others = {file: functions for file, functions in path.items() if file not in model}
        print(f"{name}: {len(path)} files: {len(others)} that decide or convert, {len(model)} of the model")
        for file, functions in {**others, **model}.items():
            print(f"  {file}: {', '.join(functions)}")


if __name__ == "__main__":
    main()
