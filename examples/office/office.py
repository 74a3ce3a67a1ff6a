"""Lists, writes to and deletes files in one folder: OFFICE_FOLDER, or else `windlass-office` in the
directory for temporary files. An empty folder gets two files to start with.

A file is chosen from the names of existing files, so no name leads out of the folder.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

FIRST_FILES = {
    "journal.txt": "Monday: the roof was repaired.\n",
    "draft.txt": "Dear Sir or Madam,\n",
}


def folder():
    named = os.environ.get("OFFICE_FOLDER")
    place = Path(named) if named else Path(tempfile.gettempdir()) / "windlass-office"
    place.mkdir(parents=True, exist_ok=True)
    if not any(place.iterdir()):
        for name, text in FIRST_FILES.items():
            (place / name).write_text(text, encoding="utf-8")
    return place


def files():
    return {path.name: path for path in sorted(folder().glob("*.txt")) if path.is_file()}


def chosen(arguments):
    found = files().get(arguments["file"])
    if found is None:
        sys.exit(f"there is no file {arguments['file']!r}. There are: {', '.join(files())}")
    return found


def list_files(arguments):
    print(json.dumps(list(files())))


def write_note(arguments):
    with chosen(arguments).open("a", encoding="utf-8") as file:
        file.write(arguments["line"].rstrip("\n") + "\n")
    print(json.dumps(f"written to {arguments['file']}"))


def delete_file(arguments):
    chosen(arguments).unlink()
    print(json.dumps(f"deleted {arguments['file']}"))


if __name__ == "__main__":
    action = {"list": list_files, "write": write_note, "delete": delete_file}[sys.argv[1]]
    action(json.load(sys.stdin.buffer))
