"""Groups to study, made up."""

from collections.abc import Mapping
from typing import Any

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
