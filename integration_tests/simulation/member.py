"""A member with the consumer's real code, into which faults are injected: its process and its application."""

import contextlib

from confluent_kafka import KafkaException, TopicPartition

from groupwright.testing._simulation.scheduler import SECOND
from integration_tests.simulation import forking
from integration_tests.simulation.application import Application, sleep
from integration_tests.simulation.runtime import VirtualThread
from integration_tests.simulation.scenario import Commits


class RealMember(Application):
    """A process with a consumer and its application, which is stopped, killed, interrupted and closed."""

    def start(self) -> None:
        """Start the process."""
        self.process.main = VirtualThread(self.process, self._run)
        self.process.main.start()

    def kill(self) -> None:
        """Kill the process."""
        self.ended = True
        self.process.kill()
        if self.consumer is not None:
            self.consumer._collection_hook.detach()

    def close(self) -> None:
        """Have the application close its consumer."""
        self.closing = True

    def close_by_other_thread(self) -> None:
        """Close the consumer by another thread of the process."""
        if self.consumer is not None and not self.closing:
            VirtualThread(self.process, self._close).start()

    def commit_by_other_thread(self) -> None:
        """Commit synchronously by another thread of the process, perhaps while the application closes."""

        def commit() -> None:
            last = (
                {} if self.plan.seeks else {key: at for key, at in self._last.items() if key in self._owned}
            )
            # They may be committed already; but without them, there may be nothing to commit.
            offsets = [TopicPartition(*key, at + 1) for key, at in sorted(last.items())] or None
            with contextlib.suppress(KafkaException, RuntimeError):  # refused, or the consumer was closed
                self.consumer.commit(offsets=offsets, asynchronous=False)

        if self.consumer is not None and not (self.closing or self.plan.own_store):
            self._threads.append(VirtualThread(self.process, commit))
            self._threads[-1].start()

    def be_busy(self, duration: int) -> None:
        """Have the application process for so long."""

        def order() -> None:
            began = self._scheduler.now
            sleep(duration)
            interval = self._scenario.auto_commit_interval
            is_long = interval + 3 * SECOND < duration < self._scenario.max_poll_interval
            if is_long and self.plan.commits is Commits.AUTO:
                self._observer.was_busy(self, began)
            if self._commits_itself:
                self._commit(self.consumer, synchronous=self.plan.commits is Commits.SYNC)

        self.orders.append(order)

    def wake_up(self) -> None:
        """Have the consumer's next poll raise; for a signal handler or another thread."""
        if self.consumer is not None:
            self.consumer.wakeup()

    def enforce_rebalance(self) -> None:
        """Have the consumer rejoin; for the application."""
        self.consumer.enforce_rebalance()

    def stop_and_close(self, duration: int, readings: int) -> None:
        """Have the process stopped within a rebalance, and its application close when it goes on."""
        if self.consumer is not None:
            with contextlib.suppress(KafkaException):  # it has no group
                self.consumer.enforce_rebalance()
            self.process.stop_at_reading(duration, readings)
            self.closing = True

    def stop_after_assignment(self, duration: int, readings: int) -> None:
        """Have the process stopped soon after its next `on_assign`, after so many readings of the clock."""
        self._in_on_assign = lambda: self.process.stop_at_reading(duration, readings)

    def fork(self, place: int) -> None:
        """Have the process fork: between two polls, on another thread, or in the next `on_assign`."""
        if place == 0:
            self.orders.append(self._fork)
        elif place == 1:
            VirtualThread(self.process, self._fork).start()
        else:
            self._in_on_assign = self._fork

    def _fork(self) -> None:
        if self.consumer is not None:
            self._observer.forked(self, forking.fork(self.consumer, self._random.random()))

    def interrupt(self, readings: int) -> None:
        """Have a signal handler raise within a poll, after so many readings of the clock.

        A third of the signals are followed by another one, while the first exception is handled. Two fifths
        of them come soon after the next `on_assign`.
        """
        if readings % 5 in {1, 2}:
            self._in_on_assign = lambda: self.process.signals.append(readings // 5 % 4)
            return
        self.process.signals = [readings // 3, readings % 5] if readings % 3 == 0 else [readings // 3]

    def subscribe_to(self, topics: list[str]) -> None:
        """Have the application subscribe to these topics."""
        self._topics = topics
        self.orders.append(self._subscribe)

    def unsubscribe(self, duration: int) -> None:
        """Have the application unsubscribe, and subscribe again after a while."""

        def order() -> None:
            self._has_left = True
            at_once = self._random.random() < 0.5 and not self._is_cooperative
            self.consumer.unsubscribe()
            self._observer.said(self, "has unsubscribed")
            self.must_return("nothing comes after unsubscribe")
            # A cooperative member first finishes a rebalance that is under way.
            before = set(self._owned)
            at_once = at_once and not self._checks.is_interrupted
            if at_once and self._poll(self.consumer, at_once=True) and before & self._owned:
                self.broken("the next poll after unsubscribe calls on_revoke", "poll(0) has not")
            until = self._scheduler.now + duration

            def again() -> None:
                if self._scheduler.now >= until:
                    self._subscribe()
                else:
                    self.orders.append(again)

            self.orders.append(again)

        self.orders.append(order)
