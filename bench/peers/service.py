"""What every peer is given: the exports of the served days, asked for as their users would."""

import os

import requests

DAYS = os.environ["BENCH_DAYS"].split(",")
TARGET = os.environ["BENCH_TARGET"]
KEY = "df_event_detail_log_id"


def export(day: str) -> requests.Response:
    response = requests.post(
        f"{os.environ['BENCH_URL']}/api/v1/export/event",
        params={"service_id": "bench"},
        json={"events_condition_type": "all", "from_date": day, "to_date": day},
        headers={"Authorization": "Bearer bench-export"},
        stream=True,
        timeout=60,
    )
    response.raise_for_status()
    response.raw.decode_content = True
    # Else it closes itself with its last byte, and the reader above it fails where it looks for the next.
    response.raw.auto_close = False
    return response
