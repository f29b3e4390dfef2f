"""The parts of a certificate or a signing request that the owner of the key needs."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime
from ipaddress import ip_address

from msgspec import Struct

from glasslet.identity.der import (
    INTEGER,
    OBJECT_ID,
    OCTET_STRING,
    SEQUENCE,
    SET,
    BadDER,
    Element,
    element,
    elements,
    inside,
    moment,
    text,
)

_COMMON_NAME = bytes.fromhex("550403")
_ORGANIZATION = bytes.fromhex("55040a")
_ALTERNATIVE_NAMES = bytes.fromhex("551d11")
_DNS_NAME, _IP_ADDRESS = 0x82, 0x87
_EXTENSIONS = 0xA3
_VERSION = 0xA0
_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\s(.*?)-----END \1-----", re.DOTALL)

_LONGEST = 64 * 1024
"""Bytes of PEM. A chain has some thousand; the time to read grows with the square."""


class BadCertificate(ValueError):
    """PEM that is not what it should be. The text says what is wrong, never what a key holds."""


class Subject(Struct, frozen=True, kw_only=True):
    """The subject of a certificate. Addresses are in their shortest form; both name lists are sorted."""

    common_name: str
    organizations: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    ip_addresses: tuple[str, ...] = ()


class Certificate(Struct, frozen=True, kw_only=True):
    """One certificate. Times in UTC."""

    subject: Subject
    not_before: datetime
    not_after: datetime


class SigningRequest(Struct, frozen=True, kw_only=True):
    """A PKCS #10 request: its subject (without alternative names) and the public key as SubjectPublicKeyInfo."""

    subject: Subject
    public_key: bytes


def pem_blocks(data: bytes, kind: str) -> list[bytes]:
    """The DER of all PEM blocks of one kind (`CERTIFICATE`). Raises BadCertificate."""
    if len(data) > _LONGEST:
        raise BadCertificate(f"{len(data)} bytes of PEM: at most {_LONGEST} are read")
    try:
        return [base64.b64decode(body) for name, body in _BLOCK.findall(data) if name == kind.encode()]
    except (binascii.Error, ValueError):
        raise BadCertificate(f"PEM block {kind} is not base64") from None


def key_block(data: bytes) -> bytes:
    """The first PEM block with a private key, as it stands; empty if there is none."""
    for match in _BLOCK.finditer(data):
        if match[1].endswith(b"PRIVATE KEY"):
            return match[0] + b"\n"
    return b""


def read_certificates(pem: bytes) -> tuple[Certificate, ...]:
    """All certificates, the leaf first; none is an error. Raises BadCertificate."""
    blocks = pem_blocks(pem, "CERTIFICATE")
    if not blocks:
        raise BadCertificate("no PEM block of type CERTIFICATE")
    try:
        return tuple(_certificate(block) for block in blocks)
    except (BadDER, IndexError, ValueError) as error:
        raise BadCertificate(f"certificate cannot be read: {error}") from None


def read_request(pem: bytes) -> SigningRequest:
    """A signing request. Raises BadCertificate."""
    blocks = pem_blocks(pem, "CERTIFICATE REQUEST")
    if not blocks:
        raise BadCertificate("no PEM block of type CERTIFICATE REQUEST")
    try:
        fields = inside(inside(element(blocks[0]), SEQUENCE)[0], SEQUENCE)
        common_name, organizations = _name(fields[1])
        subject = Subject(common_name=common_name, organizations=organizations)
        return SigningRequest(subject=subject, public_key=fields[2].whole)
    except (BadDER, IndexError, ValueError) as error:
        raise BadCertificate(f"signing request cannot be read: {error}") from None


def _certificate(data: bytes) -> Certificate:
    fields = inside(inside(element(data), SEQUENCE)[0], SEQUENCE)
    if fields[0].tag == _VERSION:
        fields = fields[1:]
    if fields[0].tag != INTEGER:
        raise BadDER("no serial number")
    begin, end = inside(fields[3], SEQUENCE)
    common_name, organizations = _name(fields[4])
    dns_names, addresses = _alternative_names(fields[6:])
    return Certificate(
        subject=Subject(
            common_name=common_name, organizations=organizations, dns_names=dns_names, ip_addresses=addresses
        ),
        not_before=moment(begin),
        not_after=moment(end),
    )


def _name(name: Element) -> tuple[str, tuple[str, ...]]:
    """Common name and organisations."""
    common_name, organizations = "", []
    for part in inside(name, SEQUENCE):
        for attribute in inside(part, SET):
            kind, value = inside(attribute, SEQUENCE)
            if kind.content == _COMMON_NAME:
                common_name = text(value)
            elif kind.content == _ORGANIZATION:
                organizations.append(text(value))
    return common_name, tuple(organizations)


def _alternative_names(rest: list[Element]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """DNS names and addresses."""
    names: list[str] = []
    addresses: list[str] = []
    for extension in _extensions(rest):
        if extension[0].tag != OBJECT_ID or extension[0].content != _ALTERNATIVE_NAMES:
            continue
        value = next((field for field in extension if field.tag == OCTET_STRING), None)
        if value is None:
            raise BadDER("extension without a value")
        for entry in inside(element(value.content), SEQUENCE):
            if entry.tag == _DNS_NAME:
                names.append(entry.content.decode("ascii", "replace"))
            elif entry.tag == _IP_ADDRESS:
                addresses.append(str(ip_address(entry.content)))
    return tuple(sorted(names)), tuple(sorted(addresses))


def _extensions(rest: list[Element]) -> list[list[Element]]:
    for field in rest:
        if field.tag == _EXTENSIONS:
            return [inside(one, SEQUENCE) for one in elements(element(field.content).content)]
    return []
