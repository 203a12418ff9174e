"""How a group goes over to KIP-848, without a broker."""

from groupwright.assignors import Topic
from groupwright.cli._cluster.model import GroupMember, GroupType
from groupwright.cli._study.model import StudiedGroup
from groupwright.cli.migrate.plan import Brokers, Plan, Verdict, Way, make_plan

SETTINGS = {"group.consumer.migration.policy": "bidirectional", "group.consumer.max.size": "2"}


def plan(members: int, **settings: str) -> Plan:
    names = [f"worker-{number}" for number in range(members)]
    group = StudiedGroup(
        "billing",
        GroupType.CLASSIC,
        "Stable" if members else "Empty",
        "range",
        tuple(GroupMember(name, name, "10.0.0.1", topics=("orders",)) for name in names),
        {"orders": Topic(4)},
    )
    return make_plan(group, Brokers(serves_protocol=True, settings=SETTINGS | settings))


def test_a_group_larger_than_the_brokers_allow_cannot_go_over_by_a_full_stop() -> None:
    found = plan(3)

    assert found.way is Way.NONE
    assert [(each.subject, each.detail) for each in found.checks if each.verdict is Verdict.HINDERS] == [
        (
            "size",
            (
                "the group has 3 members, and group.consumer.max.size is 2: raise it in all brokers first, "
                "for they refuse more members after a full stop, too"
            ),
        )
    ]
    assert found.steps == ("Change what hinders it, and run this command again",)
    assert found.back == ()
    assert plan(2).way is Way.ONLINE
    assert plan(0).way is Way.EMPTY


def test_a_policy_alone_asks_for_a_full_stop() -> None:
    assert plan(2, **{"group.consumer.migration.policy": "disabled"}).way is Way.FULL_STOP
