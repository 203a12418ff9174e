"""The Kerberos ticket for a broker, fetched before the connection that needs it is made.

kafka-python would fetch it on the event loop, where a slow KDC holds back heartbeats; and what the Kerberos
library raises there looks like a broken connection, and would be tried for ever. Once fetched, it is in the
cache of tickets.
"""

import importlib

_UNREACHABLE = 2_529_639_068  # KRB5_KDC_UNREACH, as GSSAPI's unsigned number


class TicketError(Exception):
    """There is no ticket, and trying again unchanged would not help."""


class NotLoggedInError(TicketError):
    """There is no ticket since nobody has logged in, or too long ago."""


class KdcUnreachableError(Exception):
    """No KDC has answered."""


def fetch_ticket(service: str, host: str) -> None:
    """Have a ticket for a service in the cache; this blocks while a KDC is asked.

    Args:
        service: ``sasl.kerberos.service.name``.
        host: the broker's, as its principal has it.

    Raises:
        NotLoggedInError: the cache has no ticket to begin with, or an expired one.
        TicketError: the KDC refuses.
        KdcUnreachableError: none answers.
    """
    gssapi = importlib.import_module("gssapi")
    errors = gssapi.exceptions
    try:
        name = gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service)
        kerberos = gssapi.MechType.kerberos
        gssapi.SecurityContext(name=name.canonicalize(kerberos), mech=kerberos, usage="initiate").step()
    except errors.GSSError as error:
        # The library keeps its words on the thread that it failed on.
        words = "; ".join(error.get_all_statuses(error.min_code, is_maj=False)) or str(error)
        told = f"there is no Kerberos ticket for the service {service}/{host}: {words}"
        if error.min_code == _UNREACHABLE:
            raise KdcUnreachableError(told) from error
        if isinstance(error, (errors.MissingCredentialsError, errors.ExpiredCredentialsError)):
            raise NotLoggedInError(
                f"{told}; log in with kinit, or set sasl.kerberos.keytab and sasl.kerberos.principal"
            ) from error
        raise TicketError(f"{told}; is sasl.kerberos.service.name the broker's?") from error
