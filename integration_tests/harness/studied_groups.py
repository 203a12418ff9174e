"""Groups to study, made up."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from groupwright.cli._command_line.assignors import ASSIGNOR_NAMES
from groupwright.cli._study.files import study_of
from groupwright.cli._study.model import StudiedGroup


def member(id_: str, *topics: str, **fields: Any) -> dict[str, Any]:
    """Return a member in the form of the files; it subscribes to `orders` by default."""
    return {"id": id_, "topics": list(topics or ("orders",)), **fields}


def study(
    members: list[dict[str, Any]],
    topics: Mapping[str, Any] | None = None,
    assignor: str | None = "range",
    **fields: Any,
) -> StudiedGroup:
    """Return a group; `orders` has 6 partitions by default."""
    return study_of(
        {
            "group": "billing",
            "assignor": assignor,
            "members": members,
            "topics": {"orders": 6} if topics is None else dict(topics),
            **fields,
        }
    )


_PARTITIONS = st.dictionaries(
    st.sampled_from(["orders", "audit", "gone"]), st.lists(st.integers(0, 6), max_size=4), max_size=3
)
_NAMES = st.lists(st.sampled_from(["orders", "audit", "gone"]), unique=True)
_RACK = st.sampled_from([None, "x", "y"])


@st.composite
def any_study(draw: st.DrawFn) -> StudiedGroup:
    """Return any group that a file may hold, also one that contradicts itself."""
    has_assignment = draw(st.booleans())
    taken: set[tuple[str, int]] = set()

    def assigned() -> dict[str, list[int]]:
        """Draw partitions that no other member has: files with two owners are refused."""
        drawn: dict[str, list[int]] = draw(_PARTITIONS)
        free = {
            topic: [number for number in numbers if (topic, number) not in taken]
            for topic, numbers in drawn.items()
        }
        taken.update((topic, number) for topic, numbers in free.items() for number in numbers)
        return free

    members = [
        {
            "id": f"m{number}",
            "client_id": draw(st.sampled_from(["app", f"app-{number}"])),
            "instance_id": draw(st.sampled_from([None, f"pod-{number}"])),
            "topics": draw(_NAMES),
            "rack": draw(_RACK),
            "owned": draw(_PARTITIONS),
            "target": draw(st.none() | _PARTITIONS),
            "capacity": draw(st.sampled_from([1, 2.5])),
            **({"assigned": assigned()} if has_assignment else {}),
        }
        for number in range(draw(st.integers(0, 4)))
    ]
    racks = draw(st.none() | st.lists(st.lists(st.sampled_from("xy"), max_size=2), min_size=5, max_size=5))
    weights = draw(st.none() | st.lists(st.integers(0, 3), min_size=5, max_size=5))
    assignor = draw(st.sampled_from([*ASSIGNOR_NAMES, "mine", None]))
    orders = {"partitions": 5, "racks": racks, "weights": weights}
    topics = {"orders": orders, "audit": draw(st.integers(0, 3))}
    return study(members, topics, assignor, type=draw(st.sampled_from(["classic", "consumer"])))
