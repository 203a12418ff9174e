"""A group by its name, and short names of its members."""

from typing import TYPE_CHECKING

from groupwright.cli._command_line.suggest import unknown_group

if TYPE_CHECKING:  # `groupwright --help` needs no client
    from collections.abc import Collection

    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli._cluster.model import DescribedGroup, GroupMember


def find_group(cluster: "Cluster", group: str) -> "DescribedGroup":
    """Return a group.

    Raises:
        CommandError: It does not exist; the message suggests one that does.
    """
    described = cluster.describe([group])[group]
    if not described.exists:
        listed, _ = cluster.groups()
        raise unknown_group(group, [each.id for each in listed])
    return described


def member_names(members: "Collection[GroupMember]") -> dict[str, str]:
    """Return a short name for each member id: the instance or client id, with a part of the id if needed."""
    short = {member.id: member.instance_id or member.client_id or member.id for member in members}
    taken = list(short.values())
    return {
        id_: name if taken.count(name) == 1 else f"{name}/{id_.removeprefix(f'{name}-')[:8]}"
        for id_, name in short.items()
    }
