// What a verb printed inside a container, looked at from outside: exits 1 with a sentence for the first thing wrong.
//   node check.mjs spec|check|discover|read|facts FILE [CATALOG.json | MOST_BYTES FOLDER]
import { readFileSync, writeFileSync } from 'node:fs';
import { argv, exit, stderr } from 'node:process';

const [what, file, catalogFile, folder] = argv.slice(2);
const text = readFileSync(file, 'utf8');
const fail = (why) => {
  stderr.write(`${what}: ${why}\n`);
  exit(1);
};

if (what === 'facts') {
  const [uid, gid, bytes, writable] = text.split('\n');
  if (uid !== '1000' || gid !== '1000') fail(`runs as ${uid}:${gid}`);
  if (!(Number(bytes) <= Number(catalogFile))) fail(`adds ${bytes} bytes to its base`);
  if (writable !== 'writable') fail(`${folder} cannot be written`);
  exit(0);
}

const messages = text
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line));
const of = (type) => messages.filter((message) => message.type === type);
const errors = messages.filter(({ trace }) => trace?.type === 'ERROR');
if (errors.length > 0) fail(errors[0].trace.error.message);

const CHECKS = {
  spec() {
    if (messages.length !== 1 || of('SPEC').length !== 1) fail(`${messages.length} messages`);
  },
  check() {
    const [status] = of('CONNECTION_STATUS');
    if (status?.connectionStatus.status !== 'SUCCEEDED') fail(JSON.stringify(status));
  },
  discover() {
    const [{ catalog }] = of('CATALOG');
    const streams = catalog.streams.map((stream) => ({
      stream,
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
      cursor_field: stream.default_cursor_field,
      primary_key: stream.source_defined_primary_key,
    }));
    if (streams.length !== 3) fail(`${streams.length} streams`);
    writeFileSync(catalogFile, JSON.stringify({ streams }));
  },
  read() {
    for (const name of ['events', 'event_logs', 'event_items']) {
      const statuses = messages.flatMap(({ trace }) =>
        trace?.stream_status?.stream_descriptor.name === name ? [trace.stream_status.status] : [],
      );
      if (statuses[0] !== 'STARTED' || statuses.at(-1) !== 'COMPLETE') fail(`${name} went ${statuses.join(', ')}`);
      const records = of('RECORD').filter(({ record }) => record.stream === name).length;
      const counted = of('STATE')
        .filter(({ state }) => state.stream.stream_descriptor.name === name)
        .reduce((sum, { state }) => sum + state.sourceStats.recordCount, 0);
      if (records === 0 || records !== counted) fail(`${name}: ${records} records, ${counted} counted`);
    }
  },
};
CHECKS[what]();
