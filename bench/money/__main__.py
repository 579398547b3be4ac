"""``python -m bench.money [--quick] [--turns KIND,...] [--bodies FOLDER] [CLIENT-WIRE...]``: print each request."""

import argparse
from pathlib import Path

from bench.money.script import FULL, QUICK


def main() -> None:
    """Run the chosen clients one after the other, and print their bills."""
    from bench.figures import table
    from bench.money.clients import every_client
    from bench.money.report import figures, lines
    from bench.money.running import SessionBill, run_session

    parser = argparse.ArgumentParser(prog="python -m bench.money", description="Prices of a session.")
    parser.add_argument("clients", nargs="*", metavar="CLIENT-WIRE", help="such as isthmus-chat; default: all")
    parser.add_argument("--quick", action="store_true", help="ten turns")
    parser.add_argument("--turns", metavar="KIND,...", help="these kinds of turns, such as talk,read,edit")
    parser.add_argument("--bodies", type=Path, metavar="FOLDER", help="keep the bodies of all requests in this folder")
    options = parser.parse_args()
    usual = QUICK if options.quick else FULL
    kinds = tuple(options.turns.split(",")) if options.turns else usual
    sessions: list[SessionBill] = []
    for client in every_client():
        title = f"{client.name.replace(' ', '').lower()}-{client.wire}"
        if options.clients and title not in options.clients:
            continue
        print(f"{title} {client.missing()}", flush=True)
        if not client.missing():
            bodies = None if options.bodies is None else options.bodies / title
            sessions.append(run_session(client, kinds, is_verbose=True, bodies=bodies))
    print("\n".join([*lines(sessions), *table(figures(sessions))]), flush=True)


if __name__ == "__main__":
    main()
