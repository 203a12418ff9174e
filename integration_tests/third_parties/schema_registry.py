"""confluent-kafka's (de)serializers with an in-memory registry, on both consumers."""

import asyncio
from collections.abc import Callable
from typing import Any

import confluent_kafka
from confluent_kafka import aio
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from integration_tests.third_parties.common import (
    OURS,
    PATIENCE,
    consumer_class,
    new_group,
    new_topic,
    produce,
    settings,
    wait_for,
)

_AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "number", "type": "int"}]}'
_JSON = (
    '{"type": "object", "title": "Order", '
    '"properties": {"number": {"type": "integer"}}, "required": ["number"]}'
)
_Codec = tuple[Callable[..., bytes], Callable[..., Any], Callable[[int], Any]]


def _registry() -> SchemaRegistryClient:
    return SchemaRegistryClient.new_client({"url": "mock://"})


def _order(number: int) -> dict[str, int]:
    return {"number": number}


def _avro() -> _Codec:
    registry = _registry()
    return AvroSerializer(registry, _AVRO), AvroDeserializer(registry), _order


def _json() -> _Codec:
    registry = _registry()
    return JSONSerializer(_JSON, registry), JSONDeserializer(_JSON, schema_registry_client=registry), _order


def _protobuf_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="third_parties_order.proto", syntax="proto3")
    field = file.message_type.add(name="Order").field.add(name="number", number=1)
    field.type, field.label = field.TYPE_INT32, field.LABEL_OPTIONAL
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Order"))


def _protobuf() -> _Codec:
    registry, kind = _registry(), _protobuf_class()
    serialize = ProtobufSerializer(kind, registry, {"use.deprecated.format": False})
    deserialize = ProtobufDeserializer(kind, {"use.deprecated.format": False}, registry)
    return serialize, deserialize, lambda number: kind(number=number)


def _fill(bootstrap: str, codec: _Codec) -> str:
    serialize, _, value = codec
    topic = new_topic(bootstrap, 1)
    context = SerializationContext(topic, MessageField.VALUE)
    good = [serialize(value(number), context) for number in range(4)]
    produce(bootstrap, topic, [*good[:2], b"no schema", *good[2:]], 1)
    return topic


def _built_in(which: str, bootstrap: str, codec: _Codec) -> Any:
    topic = _fill(bootstrap, codec)
    kind: Any = confluent_kafka.DeserializingConsumer
    if which == OURS:
        from groupwright.consumer import DeserializingConsumer as kind  # noqa: N813 - one name for both
    config = settings(bootstrap, new_group()) | {"value.deserializer": codec[1]}
    consumer = kind(config)
    consumer.subscribe([topic])
    got: list[str] = []

    def poll() -> bool:
        try:
            message = consumer.poll(0.5)
        except confluent_kafka.error.ValueDeserializationError as error:
            refused: Any = error.kafka_message
            got.append(f"{type(error).__name__} {error.name} {refused.value()!r}")
        else:
            if message is not None:
                got.append(str(message.value()))
        return len(got) == 5

    wait_for(poll, "five messages")
    consumer.close()
    return got


def _decoded(codec: _Codec, message: Any) -> str:
    context = SerializationContext(message.topic(), MessageField.VALUE, message.headers())
    try:
        return str(codec[1](message.value(), context))
    except Exception as error:  # noqa: BLE001 - which one it is, is what is compared
        return type(error).__name__


def _by_hand(which: str, bootstrap: str, codec: _Codec) -> Any:
    topic = _fill(bootstrap, codec)
    consumer = consumer_class(which)(settings(bootstrap, new_group()))
    consumer.subscribe([topic])
    got: list[str] = []

    def poll() -> bool:
        message = consumer.poll(0.5)
        if message is not None:
            got.append(_decoded(codec, message))
        return len(got) == 5

    wait_for(poll, "five messages")
    consumer.close()
    return got


async def _by_hand_asyncio(which: str, bootstrap: str, codec: _Codec) -> Any:
    topic = _fill(bootstrap, codec)
    kind: Any = aio.AIOConsumer
    if which == OURS:
        from groupwright.consumer import AIOConsumer as kind  # noqa: N813 - one name for both
    consumer = kind(settings(bootstrap, new_group()))
    await consumer.subscribe([topic])
    got: list[str] = []

    async def read() -> None:
        while len(got) < 5:
            message = await consumer.poll(0.5)
            if message is not None:
                got.append(_decoded(codec, message))

    await asyncio.wait_for(read(), PATIENCE)
    await consumer.close()
    return got


def _everywhere(which: str, bootstrap: str, make: Callable[[], _Codec]) -> Any:
    return {
        "DeserializingConsumer": _built_in(which, bootstrap, make()),
        "Consumer": _by_hand(which, bootstrap, make()),
        "AIOConsumer": asyncio.run(_by_hand_asyncio(which, bootstrap, make())),
    }


def avro(which: str, bootstrap: str) -> Any:
    """Deserialize Avro."""
    return _everywhere(which, bootstrap, _avro)


def json_schema(which: str, bootstrap: str) -> Any:
    """Deserialize JSON with a schema."""
    return _everywhere(which, bootstrap, _json)


def protobuf(which: str, bootstrap: str) -> Any:
    """Deserialize Protobuf."""
    return _everywhere(which, bootstrap, _protobuf)
