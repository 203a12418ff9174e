"""Error codes, beside those of librdkafka."""

from confluent_kafka import KafkaError

from groupwright.core.error_codes import ErrorCode, LibrdkafkaError, error_name

SHORTER_NAMES = {"UNKNOWN_TOPIC_OR_PARTITION": "UNKNOWN_TOPIC_OR_PART"}


def test_the_codes_are_librdkafkas() -> None:
    for code in ErrorCode:
        assert code <= 0 or getattr(KafkaError, SHORTER_NAMES.get(code.name, code.name)) == code
    for own in LibrdkafkaError:
        assert getattr(KafkaError, f"_{own.name}") == own


def test_an_error_is_named_as_the_protocol_names_it() -> None:
    assert error_name(25) == "UNKNOWN_MEMBER_ID"
    assert error_name(ErrorCode.NONE) == "NONE"
    assert error_name(999) == "error 999"
