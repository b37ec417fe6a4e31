"""A broker with TLS, SASL/SCRAM and an authorizer, for tests of what each principal may do.

Beside the listener for tests, on which everyone is a super user, it has one for clients that
authenticate: SASL_SSL on 127.0.0.1, with a certificate that is made for this run.
"""

import subprocess
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import (  # The admin module doesn't export all of these,
    AclBinding,  # so mypy wants the private modules.
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
)
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from localkafka.broker import KafkaCluster, _Node, wait_until
from localkafka.jars import java

PASSWORD: Final = "for this run only"  # noqa: S105 -- nobody else reaches the broker
MECHANISM: Final = "SCRAM-SHA-512"
SECONDS: Final = 60.0
VALID_DAYS: Final = 2


class SecuredKafka(KafkaCluster):
    """One broker on which users authenticate, and may do what they were granted."""

    def __init__(self) -> None:
        """Prepare the broker, and make its certificate."""
        super().__init__(1, proxied=True)
        self._store = self._directory / "broker.p12"
        self.certificate = self._directory / "ca.pem"
        self._make_certificate()

    def _make_certificate(self) -> None:
        keytool = str(Path(java()).resolve().with_name("keytool"))
        store = ["-alias", "broker", "-keystore", str(self._store), "-storepass", PASSWORD]
        names = ["-dname", "CN=127.0.0.1", "-ext", "SAN=ip:127.0.0.1,dns:127.0.0.1"]
        key = ["-keyalg", "RSA", "-keysize", "2048", "-validity", str(VALID_DAYS)]
        _run(keytool, "-genkeypair", *store, "-storetype", "PKCS12", *key, *names)
        _run(keytool, "-exportcert", "-rfc", *store, "-file", str(self.certificate))

    def _properties(self, node: _Node) -> dict[str, str | int]:
        """Return the properties, with the listener for proxies as the secured one."""
        given = super()._properties(node)
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        listener = "listener.name.proxied"
        return {
            **given,
            "advertised.listeners": (
                f"PLAINTEXT://{node.address},PROXIED://127.0.0.1:{node.proxied_port}"
            ),
            "listener.security.protocol.map": (
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:SASL_SSL"
            ),
            f"{listener}.ssl.keystore.type": "PKCS12",
            f"{listener}.ssl.keystore.location": str(self._store),
            f"{listener}.ssl.keystore.password": PASSWORD,
            f"{listener}.sasl.enabled.mechanisms": MECHANISM,
            f"{listener}.{MECHANISM.lower()}.sasl.jaas.config": scram,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }

    @property
    def secured_bootstrap(self) -> str:
        """Return the address of the listener for users."""
        return ",".join(f"127.0.0.1:{node.proxied_port}" for node in self._nodes.values())

    def client_settings(self, user: str) -> dict[str, str]:
        """Return what librdkafka needs to connect as a user."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.certificate),
        }

    def add_user(self, name: str) -> None:
        """Create a user without any rights."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        wanted = UserScramCredentialUpsertion(name, info, PASSWORD.encode())
        admin = self.admin()  # Held: its requests die with it.
        admin.alter_user_scram_credentials([wanted])[name].result(SECONDS)
        wait_until(partial(self._may_connect, name), SECONDS, f"{name} to be known")

    def _may_connect(self, name: str) -> bool:
        address: dict[str, str | int | float] = {"bootstrap.servers": self.secured_bootstrap}
        try:
            client = AdminClient({**address, "log_level": 0, **self.client_settings(name)})
            client.list_topics(timeout=3)
        except KafkaException:
            return False
        return True

    def allow(self, user: str, kind: str, name: str, operation: str, *, prefixed: bool) -> None:
        """Grant an operation on a resource, and wait until the broker has it."""
        binding = _binding(user, kind, name, operation, prefixed=prefixed)
        admin = self.admin()  # Held: its requests die with it.
        admin.create_acls([binding])[binding].result(SECONDS)
        wait_until(partial(self._has, binding, count=1), SECONDS, f"{binding} to hold")

    def revoke(self, user: str, kind: str, name: str, operation: str, *, prefixed: bool) -> None:
        """Take a grant back, and wait until the broker has forgotten it."""
        binding = _binding(user, kind, name, operation, prefixed=prefixed)
        wanted = _filter(binding)
        admin = self.admin()  # Held: its requests die with it.
        admin.delete_acls([wanted])[wanted].result(SECONDS)
        wait_until(partial(self._has, binding, count=0), SECONDS, f"{binding} to be gone")

    def _has(self, binding: AclBinding, *, count: int) -> bool:
        admin = self.admin()  # Held: its requests die with it.
        return len(admin.describe_acls(_filter(binding)).result(SECONDS)) == count


def _binding(user: str, kind: str, name: str, operation: str, *, prefixed: bool) -> AclBinding:
    return AclBinding(
        {
            "topic": ResourceType.TOPIC,
            "group": ResourceType.GROUP,
            "transactional-id": ResourceType.TRANSACTIONAL_ID,
        }[kind],
        name,
        ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        {
            "Read": AclOperation.READ,
            "Write": AclOperation.WRITE,
            "Create": AclOperation.CREATE,
            "Alter": AclOperation.ALTER,
            "Delete": AclOperation.DELETE,
            "Describe": AclOperation.DESCRIBE,
            "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
        }[operation],
        AclPermissionType.ALLOW,
    )


def _filter(binding: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission_type,
    )


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stdout}{done.stderr}")
