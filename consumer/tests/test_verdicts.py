"""The table of what error codes mean."""

import pytest

from groupwright.consumer._protocol.error_policy import Api, Verdict, verdict
from groupwright.consumer._protocol.model import ErrorCode, error_name

FINE, REJOIN, LATER, ELSEWHERE = Verdict.FINE, Verdict.REJOIN, Verdict.LATER, Verdict.ELSEWHERE
NEW_GENERATION, NEW_MEMBER = Verdict.NEW_GENERATION, Verdict.NEW_MEMBER
FENCED, REFUSED = Verdict.FENCED, Verdict.REFUSED

CODES = (0, 3, 7, 14, 15, 16, 22, 25, 27, 30, 69, 82, 88, 999)
TABLE = {
    Api.FIND_COORDINATOR: (
        *(FINE, REFUSED, LATER, LATER, LATER, LATER, REFUSED, REFUSED),
        *(REFUSED, REFUSED, REFUSED, REFUSED, REFUSED, REFUSED),
    ),
    Api.JOIN_GROUP: (
        *(FINE, REFUSED, REFUSED, LATER, ELSEWHERE, ELSEWHERE, NEW_GENERATION, NEW_MEMBER),
        *(REJOIN, REFUSED, NEW_MEMBER, FENCED, REFUSED, REFUSED),
    ),
    Api.SYNC_GROUP: (
        *(FINE, REFUSED, REFUSED, LATER, ELSEWHERE, ELSEWHERE, NEW_GENERATION, NEW_MEMBER),
        *(REJOIN, REFUSED, NEW_MEMBER, FENCED, REFUSED, REFUSED),
    ),
    Api.HEARTBEAT: (
        *(FINE, LATER, LATER, LATER, ELSEWHERE, ELSEWHERE, NEW_GENERATION, NEW_MEMBER),
        *(REJOIN, LATER, NEW_MEMBER, FENCED, LATER, LATER),
    ),
    Api.OFFSET_FETCH: (
        *(FINE, LATER, LATER, LATER, ELSEWHERE, ELSEWHERE, REFUSED, REFUSED),
        *(REFUSED, REFUSED, REFUSED, REFUSED, LATER, REFUSED),
    ),
    Api.OFFSET_COMMIT: (
        *(FINE, FINE, ELSEWHERE, FINE, ELSEWHERE, ELSEWHERE, NEW_GENERATION, NEW_MEMBER),
        *(REJOIN, FINE, NEW_MEMBER, FENCED, FINE, FINE),
    ),
}


@pytest.mark.parametrize("api", list(Api), ids=lambda api: api.value)
def test_what_each_code_means(api: Api) -> None:
    assert {code: verdict(api, code) for code in CODES} == dict(zip(CODES, TABLE[api], strict=True))


def test_an_error_is_named_as_the_protocol_names_it() -> None:
    assert error_name(25) == "UNKNOWN_MEMBER_ID"
    assert error_name(ErrorCode.NONE) == "NONE"
    assert error_name(999) == "error 999"
