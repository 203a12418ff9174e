"""A simulated member's session: heartbeats, and the session timeout on the member's own clock."""

from collections.abc import Callable
from functools import partial

from groupwright.core import ErrorCode
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.cluster import AnyResponse
from groupwright.testing._simulation.model_client import ModelClient
from groupwright.testing._simulation.model_settings import MemberSettings
from groupwright.testing._simulation.scheduler import SECOND, Event, Process

_RENEWING = {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}


class ModelSession:
    """Sends heartbeats, at most one at a time, and watches the session timeout."""

    def __init__(
        self,
        process: Process,
        client: ModelClient,
        settings: MemberSettings,
        *,
        identity: Callable[[], tuple[str, int]],
        is_due: Callable[[], bool],
        on_response: Callable[[ErrorCode], object],
        on_expired: Callable[[], object],
    ) -> None:
        """Create a session that has not begun.

        Args:
            process: The member's process.
            client: The member's connections.
            settings: The member's settings.
            identity: Returns the present member id and generation.
            is_due: Whether heartbeats are sent in the member's state.
            on_response: Called with each response to a heartbeat of the present identity.
            on_expired: Called once a second while the session has expired.
        """
        self._process = process
        self._client = client
        self._settings = settings
        self._identity = identity
        self._is_due = is_due
        self._on_response = on_response
        self._on_expired = on_expired
        self._next: Event | None = None
        self._in_flight = False
        self._end = 0
        self._check_timer: Event | None = None

    def begin(self) -> None:
        """Start the session, and heartbeats one interval later, after JoinGroup."""
        self.renew()
        self._schedule()

    def renew(self) -> None:
        """Start the session timeout again."""
        self._end = self._process.scheduler.now + self._settings.session_timeout
        if self._check_timer is None:
            self._check_timer = self._process.call_at(self._end, self._check)

    def stop(self) -> None:
        """Send no more heartbeats."""
        for timer in (self._next, self._check_timer):
            if timer is not None:
                timer.cancel()

    def _schedule(self) -> None:
        if self._next is not None:
            self._next.cancel()
        self._next = self._process.call_in(self._settings.heartbeat_interval, self._send)

    def _send(self) -> None:
        self._schedule()
        if self._is_due() and self._client.is_ready and not self._in_flight:
            self._in_flight = True
            request = msg.HeartbeatRequest(
                self._settings.group_id, *self._identity(), self._settings.group_instance_id
            )
            self._client.send(request, partial(self._answered, request))

    def _answered(self, request: msg.HeartbeatRequest, response: AnyResponse | None) -> None:
        self._in_flight = False
        is_current = (request.member_id, request.generation_id) == self._identity()
        if isinstance(response, msg.HeartbeatResponse) and is_current:
            if response.error in _RENEWING:
                self.renew()
            self._on_response(response.error)

    def _check(self) -> None:
        now = self._process.scheduler.now
        self._check_timer = None
        if now >= self._end:
            self._on_expired()
        self._check_timer = self._process.call_at(max(self._end, now + SECOND), self._check)
