"""The table of what error codes mean."""

import pytest

from groupwright.consumer._protocol.error_policy import Api, ErrorAction, classify
from groupwright.core import ErrorCode

NONE, REJOIN, LATER, ELSEWHERE = (
    ErrorAction.NONE,
    ErrorAction.REJOIN,
    ErrorAction.RETRY,
    ErrorAction.REDISCOVER,
)
NEW_GENERATION, NEW_MEMBER = ErrorAction.NEW_GENERATION, ErrorAction.NEW_MEMBER
FENCED, REFUSED = ErrorAction.FENCED, ErrorAction.FATAL

CODES = (*ErrorCode, 999)
COORDINATOR = {0: NONE, 15: ELSEWHERE, 16: ELSEWHERE}
MEMBER = {
    **COORDINATOR,
    14: LATER,
    22: NEW_GENERATION,
    25: NEW_MEMBER,
    27: REJOIN,
    69: NEW_MEMBER,
    82: FENCED,
}
TABLE = {
    Api.FIND_COORDINATOR: (REFUSED, {0: NONE, 7: LATER, 14: LATER, 15: LATER, 16: LATER}),
    Api.JOIN_GROUP: (REFUSED, MEMBER),
    Api.SYNC_GROUP: (REFUSED, MEMBER),
    Api.HEARTBEAT: (LATER, MEMBER),
    Api.OFFSET_FETCH: (REFUSED, {**COORDINATOR, 3: LATER, 7: LATER, 14: LATER, 88: LATER}),
    Api.OFFSET_COMMIT: (NONE, {**MEMBER, 7: ELSEWHERE, 14: NONE}),
    Api.LEAVE_GROUP: (NONE, {**COORDINATOR, 14: LATER}),
}
"""Actions by request: for any other code, and for these."""


@pytest.mark.parametrize("api", list(Api), ids=lambda api: api.value)
def test_what_each_code_means(api: Api) -> None:
    others, known = TABLE[api]

    assert {code: classify(api, code) for code in CODES} == {**dict.fromkeys(CODES, others), **known}
