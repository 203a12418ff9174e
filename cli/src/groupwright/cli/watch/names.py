"""Short names of members while a group is watched. Pure."""

from collections import Counter
from collections.abc import Sequence

from groupwright.cli._cluster.model import GroupMember


class MemberNames:
    """Names by the members' identities: the instance or client id, with a part of the member id if needed.

    A member that leaves and joins again gets its old name, unless several members share its client id.
    """

    def __init__(self) -> None:
        """Start without members."""
        self._names: dict[str, str] = {}
        self._shared: set[str] = set()
        self._gone: set[tuple[str, str]] = set()

    def learn(self, members: Sequence[GroupMember]) -> None:
        """Take the group's present members. Names of others stay known until a member gets them."""
        count = Counter(_short(member) for member in members)
        self._shared |= {name for name, number in count.items() if number > 1}
        for member in members:
            if member.identity not in self._names:
                self._names[member.identity] = self._new(member)

    def forget(self, member: GroupMember) -> None:
        """Take a member that left."""
        self._gone.add((_short(member), member.host))

    def returns(self, member: GroupMember) -> bool:
        """Return whether a member with the same name and host has left before."""
        return _short(member) not in self._shared and (_short(member), member.host) in self._gone

    def __getitem__(self, identity: str) -> str:
        """Return the name of a member that is or was in the group."""
        return self._names[identity]

    def _new(self, member: GroupMember) -> str:
        short = _short(member)
        return f"{short}/{member.id.removeprefix(f'{short}-')[:8]}" if short in self._shared else short


def _short(member: GroupMember) -> str:
    return member.instance_id or member.client_id or member.id
