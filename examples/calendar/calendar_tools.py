"""Calendar arithmetic with dates of the Gregorian calendar, years 1 to 9999."""

import json
import sys
from datetime import datetime, timedelta

# strftime("%A") would use the language of the environment.
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def read_date(text):
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError as error:
        sys.exit(f"not a date of the form YYYY-MM-DD: {text!r} ({error})")


def weekday(day):
    return WEEKDAYS[day.weekday()]


def between(arguments):
    print((read_date(arguments["end"]) - read_date(arguments["start"])).days)


def shift(arguments):
    start = read_date(arguments["date"])
    days, direction = arguments["days"], arguments["direction"]
    try:
        day = start + timedelta(days=-days if direction == "before" else days)
    except OverflowError:
        sys.exit(f"{days} days {direction} {start} is outside the years 1 to 9999")
    print(json.dumps({"date": day.isoformat(), "weekday": weekday(day)}))


def name_weekday(arguments):
    print(weekday(read_date(arguments["date"])))


if __name__ == "__main__":
    {"between": between, "shift": shift, "weekday": name_weekday}[sys.argv[1]](json.load(sys.stdin.buffer))
