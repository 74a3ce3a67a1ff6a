"""Lists, reads and searches the text files in the folder notes/.

A note is chosen from the names of existing notes. A name is never used as a path, so `../agent.gram`
and `/etc/passwd` are just notes that do not exist.
"""

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).with_name("notes")


def all_notes():
    """Returns the text of each note by its name. Skips links, because they can point outside the folder."""
    return {
        path.stem: path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(FOLDER.glob("*.txt"))
        if path.is_file() and not path.is_symlink()
    }


def plain(name):
    """Removes differences in spelling that do not matter: case, spaces and the extension."""
    return name.strip().casefold().removesuffix(".txt").replace(" ", "-")


def list_notes(arguments):
    print(json.dumps(list(all_notes())))


def read_note(arguments):
    notes = all_notes()
    for name, text in notes.items():
        if plain(name) == plain(arguments["note"]):
            print(json.dumps(text.rstrip("\n")))
            return
    sys.exit(f"there is no note {arguments['note']!r}. There are: {', '.join(notes)}")


def search_notes(arguments):
    word = arguments["query"].strip().casefold()
    if not word:
        sys.exit("the word to search for is empty")
    found = [
        f"{name}, line {number}: {line.strip()}"
        for name, text in all_notes().items()
        for number, line in enumerate(text.splitlines(), start=1)
        if word in line.casefold()
    ]
    print(json.dumps("\n".join(found) or f"no note mentions {arguments['query']!r}"))


if __name__ == "__main__":
    action = {"list": list_notes, "read": read_note, "search": search_notes}[sys.argv[1]]
    action(json.load(sys.stdin.buffer))
