"""Lists, reads and searches the text files in the folder notes/.

A note is chosen from the names that are really there. A name is never made into a path, so that
`../agent.gram` or `/etc/passwd` is only a note that does not exist.
"""

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).with_name("notes")


def all_notes():
    """The notes by name. Links are left out: they could lead anywhere."""
    return {
        path.stem: path
        for path in sorted(FOLDER.glob("*.txt"))
        if path.is_file() and not path.is_symlink()
    }


def list_notes(arguments):
    print(json.dumps(list(all_notes())))


def read_note(arguments):
    notes = all_notes()
    wanted = arguments["name"].strip().casefold().removesuffix(".txt").replace(" ", "-")
    if wanted not in notes:
        sys.exit(f"there is no note {arguments['name']!r}. There are: {', '.join(notes)}")
    print(json.dumps(notes[wanted].read_text(encoding="utf-8").rstrip("\n")))


def search_notes(arguments):
    word = arguments["word"].strip().casefold()
    if not word:
        sys.exit("the word to search for is empty")
    found = [
        f"{name}, line {number}: {line.strip()}"
        for name, path in all_notes().items()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if word in line.casefold()
    ]
    print(json.dumps(found, ensure_ascii=False))


if __name__ == "__main__":
    action = {"list": list_notes, "read": read_note, "search": search_notes}[sys.argv[1]]
    action(json.load(sys.stdin))
