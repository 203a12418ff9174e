"""Access control lists of a broker."""

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter

from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until


def allow(admin: AdminClient, *bindings: AclBinding) -> None:
    """Add these rights, and wait until the broker applies them: the request's end is the controller's."""
    for added in admin.create_acls([*bindings]).values():
        added.result(PATIENCE)
    for each in bindings:
        wanted = AclBindingFilter(
            each.restype,
            each.name,
            each.resource_pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        wait_until(lambda wanted=wanted: bool(admin.describe_acls(wanted).result(PATIENCE)), f"{each}")  # type: ignore[misc]
