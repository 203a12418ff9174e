"""Orders of hash tables. Expected orders are those of the JDK 17 and of Scala 2.13."""

from groupwright.core.hash_order import java_hash_map, scala_mutable_hash_map


def test_a_table_is_ordered_by_hash_and_a_bucket_as_the_table_says() -> None:
    assert java_hash_map(["b", "a"]) == ["a", "b"]
    assert java_hash_map(["q", "a"]) == ["q", "a"]  # one bucket, by insertion
    assert scala_mutable_hash_map(["q", "a"]) == ["a", "q"]  # one bucket, sorted by hash
