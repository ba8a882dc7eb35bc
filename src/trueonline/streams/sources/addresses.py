"""Addresses of MQTT brokers: their parts, who connects and how, and how much of an address may be shown.

A user and a password are for the broker alone. `without_credentials` leaves them out of what is stored and compared.
`shown_address` is for eyes. It also hides what might be half a password, because somebody wrote it with a bare slash.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

USER, PASSWORD = "TRUEONLINE_MQTT_USER", "TRUEONLINE_MQTT_PASSWORD"  # names of environment variables
MQTT_FORM = "mqtt://[user[:password]@]host[:port]/topic, or mqtts://… with TLS"
DEFAULT_PORTS = {"mqtt": 1883, "mqtts": 8883}
MAX_BYTES = 2**16 - 1  # bytes in a topic, a user or a password: MQTT has 16 bits for a length
MQTT_ADDRESS = re.compile(
    r"(?P<scheme>(?i:mqtts?))://(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?P<host>\[[^\]/]+\]|[^:/@]+)(?::(?P<port>\d{1,5}))?/(?P<topic>.+)"
)
# An address of MQTT may lack its colon or a slash by mistake. C:// is a drive.
ADDRESS_HEAD = re.compile(r"(?i:mqtts?)(?:[:;]/*|//+)|.{2,}?://", re.DOTALL)
LIKE_MQTT = re.compile(r"(?i:mqtts?)(?:[:;]|//)")
FILE_ADDRESS = re.compile(r"(?i:file):(?://(?P<host>[^/]*))?(?P<path>/.*)", re.DOTALL)
NAMELESS = ("arm://", "lsl://")  # addresses that never have a user, even with an @ in them


def scheme_of(spec: str) -> str:
    """The part before :// in an address, in small letters. "" for a path: one letter is a drive of Windows.

    >>> [scheme_of(spec) for spec in ("MQTT://host/topic", "logs/arm.csv", "C:/arm.csv", "C://arm.csv")]
    ['mqtt', '', '', '']
    """
    scheme, sign, _ = spec.partition("://")
    return scheme.lower() if sign and len(scheme) != 1 else ""


def local_path(spec: str) -> str:
    """The path that a file:/// address stands for. Anything else is as it was.

    >>> local_path("file:///logs/my%20arm.csv"), local_path("arm.csv")
    ('/logs/my arm.csv', 'arm.csv')
    """
    parts = FILE_ADDRESS.fullmatch(spec)
    if parts is None:
        return spec
    if (parts["host"] or "").lower() not in ("", "localhost"):
        raise ValueError(f"{spec} is on another machine; give a file of this one, as file:///folder/file.csv")
    from urllib.request import url2pathname

    return url2pathname(parts["path"])


@dataclass(frozen=True)
class Address:
    """The parts of the address of a topic."""

    scheme: str
    host: str
    port: int
    topic: str
    user: str | None
    password: bytes | None = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> Address:
        """Take an address apart. ValueError if it is malformed, or its topic is."""
        parts = MQTT_ADDRESS.fullmatch(url)
        if parts is None or not _can_be_host(parts["host"]):
            raise ValueError(
                f"the address must be {MQTT_FORM}, got {shown_address(url)} (in a user or a password, write / as %2F and @ as %40)"
            )
        scheme = parts["scheme"].lower()
        port = int(parts["port"] or DEFAULT_PORTS[scheme])
        if not 0 < port < 2**16:
            raise ValueError(f"the address must be {MQTT_FORM}, with a port from 1 to 65535, got {shown_address(url)}")
        check_topic(parts["topic"])
        user, password = parts["user"], parts["password"]
        return cls(
            scheme,
            parts["host"].strip("[]"),
            port,
            parts["topic"],
            None if user is None else unquote(user),
            None if password is None else unquote_to_bytes(password.encode("utf-8", "surrogateescape")),
        )


def check_topic(topic: str) -> None:
    """ValueError unless a client may subscribe to the topic. Paho would find out only in its own thread, once connected."""
    levels = topic.split("/")
    misplaced = [level for level in levels if len(level) > 1 and ("+" in level or "#" in level)]
    if misplaced or "#" in levels[:-1]:
        shown = shown_address(f"mqtt://host/{topic}").partition("host/")[2]
        raise ValueError(
            f"the topic {shown} is not valid: + must be a whole level, and # the whole last level, as in a/+/b/#"
        )
    if "\0" in topic or not 0 < _bytes_of(topic) <= MAX_BYTES:
        raise ValueError(f"the topic must be text in UTF-8 of at most {MAX_BYTES:,} bytes, without a null character")


def credentials(address: Address, password_file: str | os.PathLike | None) -> tuple[str, bytes] | None:
    """The user and the password: from the address, the password from a file, or either from the environment."""
    user = address.user if address.user is not None else os.environ.get(USER) or None
    password = address.password
    if password_file is not None:
        if password is not None:
            raise ValueError("the password is in the address and in --mqtt-password-file; give it once")
        password = _password_in(password_file)
    elif password is None:
        password = os.fsencode(os.environ.get(PASSWORD, "")) or None
    if user is None:
        if password is not None:
            raise ValueError(f"an MQTT password needs a user: give mqtt://USER@host/topic, or set {USER}")
        return None
    if not 0 <= _bytes_of(user) <= MAX_BYTES or len(password or b"") > MAX_BYTES:
        raise ValueError(f"an MQTT user and password must be text in UTF-8 of at most {MAX_BYTES:,} bytes each")
    return user, password or b""


def _password_in(path: str | os.PathLike) -> bytes:
    """The password in a file. A line break at its end does not belong to it."""
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_BYTES + 3)
    except OSError as error:
        raise ValueError(
            f"--mqtt-password-file {path} cannot be read: {error.strerror}; name a file that has the password and nothing else"
        ) from None
    password = text.removesuffix(b"\n").removesuffix(b"\r")
    if not password:
        raise ValueError(f"--mqtt-password-file {path} is empty; name a file that has the password and nothing else")
    return password


def tls_context(address: Address, ca: str | os.PathLike | None) -> Any:
    """How to check the certificate of a broker, or None without TLS. `ca` replaces the system's certificates."""
    if address.scheme != "mqtts":
        if ca is not None:
            raise ValueError("--mqtt-ca is for TLS: give an address mqtts://host/topic, or leave --mqtt-ca out")
        return None
    import ssl

    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:  # ssl's errors are of this kind
        reason = "it has no certificate in PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise ValueError(
            f"--mqtt-ca {ca} cannot be used: {reason}; name a file with the certificate of the broker's authority"
        ) from None


def divided_access(
    urls: Sequence[str], password_file: str | os.PathLike | None, ca: str | os.PathLike | None
) -> list[dict[str, Any]]:
    """For each address the password file and the certificates that are meant for it, if brokers share these options.

    The password file is for addresses without a password. Certificates are for those with TLS. If there is no such address, the
    first one gets them, and says what is wrong.
    """
    addresses = [Address.parse(url) for url in urls]
    without = [address.password is None for address in addresses]
    secure = [address.scheme == "mqtts" for address in addresses]
    return [
        {
            "password_file": password_file if bare or not (i or any(without)) else None,
            "ca": ca if tls or not (i or any(secure)) else None,
        }
        for i, (bare, tls) in enumerate(zip(without, secure, strict=True))
    ]


# --- What may be shown or stored ------------------------------------------------------------------


def without_credentials(spec: str) -> str:
    """A source without its user and password, to be stored and compared. A path is as it was.

    Parameters
    ----------
    spec : str
        A path or an address, as for `open_source`.

    Returns
    -------
    str
        The same without what precedes the host. If the address is malformed, all before its last @ is left out.
    """
    head = ADDRESS_HEAD.match(spec)
    if head is None or head[0].lower() in NAMELESS:
        return spec
    rest = spec[head.end() :]
    if MQTT_ADDRESS.fullmatch(spec):
        place, _, topic = rest.partition("/")
        return f"{head[0]}{place.rpartition('@')[2]}/{topic}"
    return head[0] + rest.rpartition("@")[2]


def shown_address(spec: str) -> str:
    """A source as it may be shown: without user and password, and without what precedes an @ in the topic.

    Parameters
    ----------
    spec : str
        A path or an address, as for `open_source`.

    Returns
    -------
    str
        The same, with … for what is hidden in a topic.
    """
    plain = without_credentials(spec)
    head = ADDRESS_HEAD.match(plain)
    if head is None or head[0].lower() in NAMELESS or "@" not in plain:
        return plain
    place, _, topic = plain[head.end() :].partition("/")
    return f"{head[0]}{place}/…@{topic.rpartition('@')[2]}"


def _bytes_of(text: str) -> int:
    """The length in UTF-8, or -1 if it cannot be written so."""
    try:
        return len(text.encode())
    except UnicodeError:
        return -1


def _can_be_host(host: str) -> bool:
    """Whether Python can write the name of a host. If not, it would end the client's thread."""
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False
