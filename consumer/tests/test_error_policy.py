"""The table of what error codes mean."""

import pytest

from groupwright.consumer._protocol.error_policy import Api, ErrorAction, classify
from groupwright.core import ErrorCode, error_name

NONE, REJOIN, LATER, ELSEWHERE = (
    ErrorAction.NONE,
    ErrorAction.REJOIN,
    ErrorAction.RETRY,
    ErrorAction.REDISCOVER,
)
NEW_GENERATION, NEW_MEMBER = ErrorAction.NEW_GENERATION, ErrorAction.NEW_MEMBER
FENCED, REFUSED = ErrorAction.FENCED, ErrorAction.FATAL

CODES = (0, 3, 7, 14, 15, 16, 22, 25, 27, 30, 69, 82, 88, 999)
TABLE = {
    Api.FIND_COORDINATOR: (
        *(NONE, REFUSED, LATER, LATER, LATER, LATER, REFUSED, REFUSED),
        *(REFUSED, REFUSED, REFUSED, REFUSED, REFUSED, REFUSED),
    ),
    Api.JOIN_GROUP: (
        *(NONE, REFUSED, REFUSED, LATER, ELSEWHERE, ELSEWHERE, NEW_GENERATION, NEW_MEMBER),
        *(REJOIN, REFUSED, NEW_MEMBER, FENCED, REFUSED, REFUSED),
    ),
    Api.SYNC_GROUP: (
        *(NONE, REFUSED, REFUSED, LATER, ELSEWHERE, ELSEWHERE, NEW_GENERATION, NEW_MEMBER),
        *(REJOIN, REFUSED, NEW_MEMBER, FENCED, REFUSED, REFUSED),
    ),
    Api.HEARTBEAT: (
        *(NONE, LATER, LATER, LATER, ELSEWHERE, ELSEWHERE, NEW_GENERATION, NEW_MEMBER),
        *(REJOIN, LATER, NEW_MEMBER, FENCED, LATER, LATER),
    ),
    Api.OFFSET_FETCH: (
        *(NONE, LATER, LATER, LATER, ELSEWHERE, ELSEWHERE, REFUSED, REFUSED),
        *(REFUSED, REFUSED, REFUSED, REFUSED, LATER, REFUSED),
    ),
    Api.OFFSET_COMMIT: (
        *(NONE, NONE, ELSEWHERE, NONE, ELSEWHERE, ELSEWHERE, NEW_GENERATION, NEW_MEMBER),
        *(REJOIN, NONE, NEW_MEMBER, FENCED, NONE, NONE),
    ),
    Api.LEAVE_GROUP: (
        *(NONE, NONE, NONE, LATER, ELSEWHERE, ELSEWHERE, NONE, NONE),
        *(NONE, NONE, NONE, NONE, NONE, NONE),
    ),
}


@pytest.mark.parametrize("api", list(Api), ids=lambda api: api.value)
def test_what_each_code_means(api: Api) -> None:
    assert {code: classify(api, code) for code in CODES} == dict(zip(CODES, TABLE[api], strict=True))


def test_an_error_is_named_as_the_protocol_names_it() -> None:
    assert error_name(25) == "UNKNOWN_MEMBER_ID"
    assert error_name(ErrorCode.NONE) == "NONE"
    assert error_name(999) == "error 999"
