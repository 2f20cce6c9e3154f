"""The version of the wire protocol, which the host compares with its own."""

PROTOCOL_VERSION = 2
