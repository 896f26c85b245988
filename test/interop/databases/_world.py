"""A service of which each test says what its days hold."""

import contextlib
import csv
import io
import json
import threading
from datetime import date, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TODAY = datetime.now(timezone.utc).date()
HISTORY_DAYS = 30

Row = dict[str, str]


def day_before(days: int) -> date:
    return TODAY - timedelta(days=days)


def event(day: date, number: int, person: str, **cells: str) -> Row:
    """A row of an export; cells that are not given are empty."""
    time = f"{day} {number % 24:02d}:30:00.000"
    key = f"{day:%Y%m%d}-{number}"
    return {
        "df_unified_id": person, "df_api_version": "2", "df_event_name": "login", "df_server_datetime": time,
        "df_correction_datetime": time, "df_event_log_id": key, "df_event_detail_log_id": key, **cells,
    }


class World:
    def __init__(self) -> None:
        self.days: dict[date, list[Row]] = {}

    def csv(self, first: date, last: date) -> str:
        rows = [row for day, rows in sorted(self.days.items()) if first <= day <= last for row in rows]
        columns = sorted({name for row in [event(first, 0, ""), *rows] for name in row})
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    @contextlib.contextmanager
    def served(self):
        """Yields the source configuration of this world."""
        world = self

        class Service(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                first = date.fromisoformat(asked["from_date"])
                status, text = 200, world.csv(first, date.fromisoformat(asked["to_date"]))
                if first < day_before(HISTORY_DAYS):
                    status, text = 400, '{"result":"fail","message":"exceed_date_range_limit"}'
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/csv" if status == 200 else "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield {
                "base_url": f"http://127.0.0.1:{server.server_address[1]}",
                "service_id": "world",
                "export_token": "token",
                "history_days": HISTORY_DAYS,
            }
        finally:
            server.shutdown()
