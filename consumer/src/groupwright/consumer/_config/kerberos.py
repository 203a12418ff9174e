"""Kerberos service tickets, fetched before a connection authenticates.

On the event loop, a slow KDC would delay heartbeats. `fetch_ticket` puts the ticket into the credential
cache, where the SASL mechanism finds it.
"""

from __future__ import annotations

import importlib

_KDC_UNREACHABLE = 2_529_639_068  # KRB5_KDC_UNREACH as an unsigned 32-bit number, as GSSAPI returns it


class TicketError(Exception):
    """There is no ticket, and a retry will not help."""


class NotLoggedInError(TicketError):
    """There is no ticket, because the credential cache is empty or expired; a later kinit helps."""


class KdcUnreachableError(Exception):
    """No KDC responded; retriable."""


def fetch_ticket(service: str, host: str) -> None:
    """Put the ticket for a service into the credential cache, unless it is there.

    Blocks while the KDC responds.

    Args:
        service: ``sasl.kerberos.service.name``.
        host: The broker's host name, as in its principal.

    Raises:
        NotLoggedInError: The cache has no ticket-granting ticket, or an expired one.
        TicketError: The KDC rejects the request.
        KdcUnreachableError: No KDC responds.
    """
    gssapi = importlib.import_module("gssapi")
    errors = gssapi.exceptions
    try:
        name = gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service)
        kerberos = gssapi.MechType.kerberos
        gssapi.SecurityContext(name=name.canonicalize(kerberos), mech=kerberos, usage="initiate").step()
    except errors.GSSError as error:
        # GSSAPI keeps the status text per thread, so it must be read on this one.
        status = "; ".join(error.get_all_statuses(error.min_code, is_maj=False)) or str(error)
        message = f"there is no Kerberos ticket for the service {service}/{host}: {status}"
        if error.min_code == _KDC_UNREACHABLE:
            raise KdcUnreachableError(message) from error
        if isinstance(error, (errors.MissingCredentialsError, errors.ExpiredCredentialsError)):
            raise NotLoggedInError(
                f"{message}; log in with kinit, or set sasl.kerberos.keytab and sasl.kerberos.principal"
            ) from error
        raise TicketError(f"{message}; is sasl.kerberos.service.name the broker's?") from error
