"""Maintain the file of people who may sign in to the page (MDQA_USERS).

add, remove, list, or change a password or a role. A password is asked for, or read from standard input; never give it
on the command line, where others can see it. A running page follows the file at once.
"""

from __future__ import annotations

import argparse
import getpass
import sys
from dataclasses import replace
from pathlib import Path

from mdqa.commands.listing import add_output_argument, show
from mdqa.errors import ConfigError, InputError
from mdqa.settings import Settings
from mdqa.users import ROLES, User, clean_name, hashed, read_users, too_open, write_users


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    for action, words in {
        "add": "let somebody in",
        "remove": "let somebody in no more",
        "list": "who may sign in",
        "password": "set a new password",
        "role": "give somebody another role",
    }.items():
        one = actions.add_parser(action, help=words, description=words)
        if action == "list":
            add_output_argument(one)
        else:
            one.add_argument("name", metavar="NAME")
        if action in ("add", "role"):
            one.add_argument("--role", required=True, choices=ROLES, help="annotator judges, analyst sees and runs")
        one.add_argument("--file", type=Path, metavar="FILE", help="the users file (default: MDQA_USERS)")


def run(args: argparse.Namespace) -> int:
    """Carry out one action."""
    path = args.file or Settings.from_environment().users
    if path is None:
        raise ConfigError("say which file it is: --file FILE, or the variable MDQA_USERS")
    users = dict(read_users(path)) if path.exists() or args.action != "add" else {}
    if path.exists() and too_open(path):
        print(f"others on this machine can read {path}; take that away with: chmod 600 {path}", file=sys.stderr)
    if args.action == "list":
        rows = [{"name": user.name, "role": user.role} for user in users.values()]
        return show(rows, args.output, empty="nobody may sign in")
    name = clean_name(args.name)
    if args.action == "add" and name in users:
        raise InputError("is in the file already; set a new password or another role", place=name)
    if args.action != "add" and name not in users:
        raise InputError(f"is not in {path}", place=name)
    if args.action == "add":
        users[name] = User(name, args.role, hashed(_password()))
    elif args.action == "password":
        users[name] = replace(users[name], password=hashed(_password()))
    elif args.action == "role":
        users[name] = replace(users[name], role=args.role)
    else:
        del users[name]
    write_users(path, users.values())
    print(f"{path}: {len(users)} {'person' if len(users) == 1 else 'people'}", file=sys.stderr)
    return 0


def _password() -> str:
    """Asked for twice where somebody types, else the first line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass.getpass("Password: ")
    if getpass.getpass("Once more: ") != first:
        raise InputError("the two are not the same; nothing was changed", place="password")
    return first
