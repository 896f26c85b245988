# The image of the command line, tried by test/images/run: `command_line`, with its helpers build, serve, fail and say.

command_line() {
  build dfinery-elt Dockerfile /opt/dfinery-elt $((100 * 1000 * 1000))
  # Nothing mounted, nothing set, no network.
  docker run --network none --read-only --tmpfs /tmp:rw,mode=1777 localhost/dfinery-elt demo >"$work/demo.txt"
  grep -q 'Events a day' "$work/demo.txt" || fail 'the demo in its container shows no chart'
  say 'dfinery-elt: the demo on a read-only root, nothing mounted, without network'
  configured_by_environment
  stopped
}

# The variables alone; the data in a folder of the host; the summary on the last line of both streams together.
configured_by_environment() {
  install -d -m 777 "$work/data"
  local run=(docker run --read-only --tmpfs /tmp:rw,mode=1777 -v "$work/data:/data")
  local name
  for name in base_url service_id export_token; do
    run+=(-e "DFINERY_${name^^}=$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1]))[process.argv[2]]' "$work/in/config.json" "$name")")
  done
  "${run[@]}" localhost/dfinery-elt sync duckdb events.duckdb --json >"$work/sync.txt" 2>&1
  tail -1 "$work/sync.txt" | node -e 'const s = JSON.parse(require("fs").readFileSync(0)); process.exit(s.days > 0 && s.rows > 0 ? 0 : 1)' ||
    fail "the last line of both streams is no summary: $(tail -1 "$work/sync.txt")"
  "${run[@]}" localhost/dfinery-elt verify duckdb events.duckdb
  local code=0
  "${run[@]}" -e DFINERY_SERVICEID=x localhost/dfinery-elt plan 2>"$work/misspelt.txt" || code=$?
  ((code == 2)) && grep -q 'did you mean DFINERY_SERVICE_ID' "$work/misspelt.txt" || fail "a misspelt variable: exit $code"
  say 'dfinery-elt: sync by environment alone, summary last; verify; a misspelt variable is refused'
}

# The program is the first process of its container, which signals do not end by themselves.
stopped() {
  serve '{"answers": [{"latency_ms": 86400000}]}'
  docker run "${hard[@]}" localhost/dfinery-elt sync duckdb /tmp/x.duckdb --config /in/config.json 2>"$work/stop.txt" &
  local run=$! code=0 began
  # The first line of progress comes once the export is under way.
  for _ in $(seq 600); do
    grep -qs 'days stored' "$work/stop.txt" && break
    kill -0 "$run" || fail "ended by itself: $(cat "$work/stop.txt")"
    sleep 0.1
  done
  began=$SECONDS
  kill -TERM "$run"
  wait "$run" || code=$?
  ((code == 143 && SECONDS - began <= 6)) || fail "stopped by SIGTERM: exit $code after $((SECONDS - began)) s"
  say 'dfinery-elt: SIGTERM ends the container within 5 s, exit 143'
}
