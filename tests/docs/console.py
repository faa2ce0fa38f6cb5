#!/usr/bin/env python3
"""Runs the sessions that a page of the manual shows, and compares their output.

  tests/docs/console.py PROGRAM PAGE...

A session is a code block that begins with `$ `. Its commands run in an empty directory, in which `basalt` is PROGRAM.
A comment before the block prepares the directory:

  <!-- console
  basalt put ./db user/42 Ada
  -->

Output agrees if it has the same words: any number stands for any other, any unit of size or time for another, `...` for
the rest of a line, and a line `...` for any lines.
"""

import os
import re
import subprocess
import sys
import tempfile

TIMEOUT_S = 120


def sessions(lines):
    """(line, preparation, [(command, expected lines)])"""
    preparation, comment, block, start = [], False, None, 0
    for number, line in enumerate(lines, 1):
        if comment:
            comment = line.strip() != "-->"
            if comment:
                preparation.append(line)
        elif block is not None:
            if line.strip() != "```":
                block.append(line)
                continue
            if block and block[0].startswith("$ "):
                yield start, preparation, commands(block)
            block, preparation = None, []
        elif line.startswith("```"):
            block, start = [], number
        elif line.strip() == "<!-- console":
            comment, preparation = True, []


def commands(block):
    found = []
    for line in block:
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def pattern(line):
    """A regular expression for a line of output."""
    if line.strip() == "...":
        return r"(?:.*\n)*?"
    result = ""
    for piece in re.findall(r"\.\.\.|\d[\d.,]*|\b(?:B|KiB|MiB|GiB|ns|us|ms|s)\b|\s+|.", line.rstrip()):
        if piece == "...":
            result += r".*"
        elif piece[0].isdigit():
            result += r"\d[\d.,]*"
        elif re.fullmatch(r"B|KiB|MiB|GiB", piece):
            result += r"(?:B|KiB|MiB|GiB)"
        elif re.fullmatch(r"ns|us|ms|s", piece):
            result += r"(?:ns|us|ms|s)"
        elif piece.isspace():
            # Columns run into each other where a number is wide.
            result += r"\s*" if result.endswith(r"\d[\d.,]*") else r"\s+"
        else:
            result += re.escape(piece)
    return result + r"[ \t]*\n"


def run(command, directory, environment):
    """Standard output and standard error, and the exit code."""
    done = subprocess.run(["bash", "-c", command], cwd=directory, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=TIMEOUT_S, check=False)
    return done.stdout.decode(), done.returncode


def check(page, program):
    """Prints each fault; the number of sessions and of faults."""
    ran = faults = 0
    with open(page, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for start, preparation, session in sessions(lines):
        ran += 1
        with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as programs:
            os.symlink(program, os.path.join(programs, "basalt"))
            path = os.pathsep.join([os.path.join(directory, "bin"), programs, os.environ["PATH"]])
            environment = {**os.environ, "PATH": path, "LC_ALL": "C"}
            if preparation:
                output, code = run("set -e\n" + "\n".join(preparation), directory, environment)
                if code != 0:
                    print(f"{page}:{start}: the preparation ends with {code}:\n{output}")
                    faults += 1
                    continue
            for command, expected in session:
                output, _ = run(command, directory, environment)
                if not re.fullmatch("".join(pattern(line) for line in expected), output):
                    print(f"{page}:{start}: another output of `{command}`:\n{output}expected:\n" + "\n".join(expected))
                    faults += 1
    return ran, faults


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__.strip())
    program = os.path.abspath(arguments[0])
    ran = faults = 0
    for page in arguments[1:]:
        counts = check(page, program)
        ran, faults = ran + counts[0], faults + counts[1]
    print(f"{ran} sessions, {faults} faults")
    return 1 if faults or not ran else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
