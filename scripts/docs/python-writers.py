"""Writes each value of a JSON list on stdin as Python's standard library writes it."""

import argparse
import ast
import base64
import binascii
import codecs
import collections
import configparser
import csv
import dataclasses
import difflib
import email.header
import email.message
import enum
import functools
import html
import http.cookies
import inspect
import io
import json
import logging
import pickle
import plistlib
import pprint
import re
import reprlib
import quopri
import shlex
import sqlite3
import string
import subprocess
import sys
import textwrap
import traceback
import types
import urllib.parse
import warnings
import xml.dom.minidom
import xml.etree.ElementTree
import xml.sax.saxutils
import zlib

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Record:
    key: str


def message_of(act):
    try:
        act()
    except BaseException as error:
        return str(error)
    raise AssertionError("nothing was raised")


def traceback_of(error):
    return "".join(traceback.format_exception(type(error), error, None))


def group_traceback(value):
    if sys.version_info < (3, 11):  # what later versions write
        return textwrap.indent("ValueError: " + value, "    | ", lambda _line: True)
    group = ExceptionGroup("g", [ValueError(value), ExceptionGroup(value, [KeyError(value)])])  # noqa: F821
    return traceback_of(group)


def quoted_mail(value):
    message = email.message.EmailMessage()
    message.set_content(value, cte="quoted-printable")
    return message.get_payload()


def written_by(act):
    out = io.StringIO()
    act(out)
    return out.getvalue()


def cookie_of(value):
    cookie = http.cookies.SimpleCookie()
    cookie["k"] = value
    return cookie.output()


def element_of(value, encoding):
    element = xml.etree.ElementTree.Element("e", {"k": value})
    element.text = value
    return xml.etree.ElementTree.tostring(element, encoding=encoding)


def document_of(value):
    document = xml.dom.minidom.Document()
    element = document.createElement("e")
    element.setAttribute("k", value)
    document.appendChild(element)
    return document.toxml()


def config_of(value):
    config = configparser.ConfigParser(interpolation=None)
    config["s"] = {"k": value}
    return written_by(config.write)


def parser_error(value):
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--n", choices=["a"])
    parser.parse_args(["--n=" + value])


def quoted_by_sqlite(value):
    return sqlite3.connect(":memory:").execute("SELECT quote(?)", [value]).fetchone()[0]


def utf8(value):
    return value.encode()


# Redaction finds the value in the texts of these.
WRITERS = {
    # repr and its users
    "str(v)": lambda v: v,
    "repr(v)": repr,
    "f'{v!r}'": lambda v: f"key={v!r}",
    "repr(repr(v))": lambda v: repr(repr(v)),
    "repr([repr({'k': v})])": lambda v: repr([repr({"k": v})]),
    "str({v: [(v,)]})": lambda v: str({v: [(v,)]}),
    "'%r' % {'k': [v]}": lambda v: "%r" % {"k": [v]},
    "repr(v + both quotes)": lambda v: repr(v + "'\""),
    "ascii(v)": ascii,
    "ascii({'k': repr(v)})": lambda v: ascii({"k": repr(v)}),
    "repr(bytes)": lambda v: repr(utf8(v)),
    "str([bytearray])": lambda v: str([bytearray(utf8(v))]),
    "repr(KeyError(v))": lambda v: repr(KeyError(v)),
    "str(KeyError(v))": lambda v: str(KeyError(v)),
    "str(KeyError(repr(v)))": lambda v: str(KeyError(repr(v))),
    "a traceback of KeyError(v)": lambda v: traceback_of(KeyError(v)),
    "a traceback of ValueError({v: v})": lambda v: traceback_of(ValueError({v: v})),
    "a traceback of ExceptionGroup": group_traceback,
    "{}[v]": lambda v: message_of(lambda: {}[v]),
    "getattr(object, v)": lambda v: message_of(lambda: getattr(object, v)),
    "open(v)": lambda v: message_of(lambda: open("/nowhere/" + v)),
    "float(v)": lambda v: message_of(lambda: float("x" + v)),
    "int(v)": lambda v: message_of(lambda: int("x" + v)),
    "str(CalledProcessError)": lambda v: str(subprocess.CalledProcessError(1, ["curl", v])),
    "str(TimeoutExpired)": lambda v: str(subprocess.TimeoutExpired(["curl", v], 1)),
    "an error of argparse": lambda v: message_of(lambda: parser_error(v)),
    "an error of enum": lambda v: message_of(lambda: enum.Enum("E", "a")(v)),
    "namedtuple": lambda v: repr(Point(v, [v])),
    "dataclass": lambda v: repr(Record(v)),
    "SimpleNamespace": lambda v: repr(types.SimpleNamespace(k=v)),
    "Enum": lambda v: repr(enum.Enum("E", {"a": v}).a),
    "partial": lambda v: repr(functools.partial(print, v, k=v)),
    "deque, Counter, ChainMap": lambda v: repr([collections.deque([v]), collections.Counter([v]), collections.ChainMap({v: v})]),
    "inspect.signature": lambda v: str(inspect.signature(eval("lambda k=v: 0", {"v": v}))),
    "ast.dump, ast.unparse": lambda v: ast.dump(ast.Constant(v)) + ast.unparse(ast.Constant(v)),
    "pprint.pformat": lambda v: pprint.pformat({"k": [v]}),
    "pprint.pformat(width=20)": lambda v: pprint.pformat({"k": v}, width=20),
    "pprint.saferepr": pprint.saferepr,
    "logging with %r": lambda v: logging.Formatter().format(logging.LogRecord("n", 10, "p", 1, "%r", ({"k": v},), None)),
    "warnings.formatwarning": lambda v: warnings.formatwarning(v, UserWarning, "f.py", 1, "k = %r" % v),
    "re.escape": re.escape,
    "difflib.ndiff": lambda v: "".join(difflib.ndiff([repr(v)], ["'x'"])),
    "string.Template": lambda v: string.Template("$k").substitute(k=repr(v)),
    "textwrap.indent": lambda v: textwrap.indent(v, "    "),
    "textwrap.indent with '> ', '# ', '| '": lambda v: "\n".join(textwrap.indent(v, lead) for lead in ("> ", "# ", "| ")),
    "pickle (protocol 0)": lambda v: repr(pickle.dumps({"k": v}, 0)),
    "pickle": lambda v: repr(pickle.dumps({"k": v})),
    # Formats of data
    "json.dumps": lambda v: json.dumps({"k": v}),
    "json.dumps(ensure_ascii=False)": lambda v: json.dumps({v: v}, ensure_ascii=False),
    "json.dumps(json.dumps(v))": lambda v: json.dumps({"body": json.dumps({"k": v})}),
    "json.dumps, three times": lambda v: json.dumps(json.dumps(json.dumps(v))),
    "repr(json.dumps(v))": lambda v: repr([json.dumps({"k": v})]),
    "csv": lambda v: written_by(lambda out: csv.writer(out).writerow([v, 1])),
    "csv with \\": lambda v: written_by(lambda out: csv.writer(out, quoting=csv.QUOTE_NONE, escapechar="\\").writerow([v])),
    "sqlite3 quote()": quoted_by_sqlite,
    "configparser": config_of,
    "plistlib": lambda v: plistlib.dumps({"k": v}).decode(),
    "html.escape": html.escape,
    "html.escape(quote=False)": lambda v: html.escape(v, quote=False),
    "html.escape(repr(v))": lambda v: html.escape(repr({"k": v})),
    "html.escape, twice": lambda v: html.escape(html.escape(v)),
    "saxutils.escape, quoteattr": lambda v: xml.sax.saxutils.escape(v) + xml.sax.saxutils.quoteattr(v),
    "ElementTree": lambda v: element_of(v, "us-ascii").decode(),
    "ElementTree as Unicode": lambda v: element_of(v, "unicode"),
    "minidom": document_of,
    "http.cookies": cookie_of,
    # Shells and addresses
    "shlex.quote": shlex.quote,
    "shlex.join": lambda v: shlex.join(["curl", "-H", v]),
    "repr([shlex.quote(v)])": lambda v: repr([shlex.quote(v)]),
    "urllib.parse.quote": lambda v: urllib.parse.quote(v),
    "urllib.parse.quote(safe='')": lambda v: urllib.parse.quote(v, safe=""),
    "urllib.parse.quote_plus": urllib.parse.quote_plus,
    "urllib.parse.urlencode": lambda v: urllib.parse.urlencode({"k": v}),
    "urllib.parse.quote, twice": lambda v: urllib.parse.quote(urllib.parse.quote(v)),
    "urllib.parse.quote(json.dumps(v))": lambda v: urllib.parse.quote(json.dumps({"k": v})),
    "urllib.parse.quote(repr(v))": lambda v: urllib.parse.quote(repr(v)),
    # Codecs
    "unicode_escape": lambda v: v.encode("unicode_escape").decode(),
    "raw_unicode_escape": lambda v: v.encode("raw_unicode_escape").decode("latin1"),
    "backslashreplace": lambda v: v.encode("ascii", "backslashreplace").decode(),
    "xmlcharrefreplace": lambda v: v.encode("ascii", "xmlcharrefreplace").decode(),
    "base64.b64encode": lambda v: base64.b64encode(utf8(v)).decode(),
    "base64.urlsafe_b64encode": lambda v: base64.urlsafe_b64encode(b"user:" + utf8(v)).decode(),
    "base64.encodebytes": lambda v: base64.encodebytes(utf8(v)).decode(),
    "repr(base64.encodebytes(v))": lambda v: repr(base64.encodebytes(b"ab" + utf8(v))),
    "base64 of json.dumps(v)": lambda v: base64.b64encode(json.dumps({"k": v}).encode()).decode(),
    "base64 of repr(v)": lambda v: base64.b64encode(repr({"k": v}).encode()).decode(),
    "bytes.hex": lambda v: utf8(v).hex(),
    "bytes.hex().upper()": lambda v: utf8(v).hex().upper(),
}

# These leak a value: redaction does not search for them.
UNKNOWN = {
    "reprlib.repr": reprlib.repr,
    "textwrap.shorten, a slice": lambda v: v[2:-2],
    "list(v)": lambda v: str(list(v)),
    "list(bytes)": lambda v: str(list(utf8(v))),
    "v[::-1], v.swapcase()": lambda v: v[::-1] + v.swapcase(),
    "difflib.ndiff of similar lines": lambda v: "\n".join(difflib.ndiff([v], [v[:-1] + "_"])),
    "email.header.Header": lambda v: email.header.Header(utf8(v), "utf-8").encode(),
    "email.message.EmailMessage": quoted_mail,
    "int.from_bytes": lambda v: str(int.from_bytes(utf8(v), "big")),
    "bytes.hex(':')": lambda v: utf8(v).hex(":"),
    "base64 of base64": lambda v: base64.b64encode(base64.b64encode(utf8(v))).decode(),
    "base64.b32encode": lambda v: base64.b32encode(utf8(v)).decode(),
    "base64.b85encode, a85encode": lambda v: (base64.b85encode(utf8(v)) + base64.a85encode(utf8(v))).decode(),
    "binascii.b2a_uu": lambda v: "".join(binascii.b2a_uu(utf8(v)[i : i + 45]).decode() for i in range(0, len(utf8(v)), 45)),
    "quopri": lambda v: quopri.encodestring(utf8(v)).decode(),
    "namereplace": lambda v: v.encode("ascii", "namereplace").decode(),
    "UTF-7, punycode": lambda v: v.encode("utf-7").decode() + v.encode("punycode").decode(),
    "rot13": lambda v: codecs.encode(v, "rot13"),
    "zlib": lambda v: repr(zlib.compress(utf8(v) * 9)),
}


def write_all(value):
    """Returns the texts of all writers that accept the value: some refuse control characters."""
    written = {}
    for name, write in {**WRITERS, **UNKNOWN}.items():
        try:
            written[name] = write(value)
        except Exception as error:
            if name != "plistlib" and not isinstance(error, http.cookies.CookieError):
                raise
    return written


if __name__ == "__main__":
    json.dump({"unknown": list(UNKNOWN), "written": [write_all(value) for value in json.load(sys.stdin)]}, sys.stdout)
