import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { parse } from 'csv-parse/sync';
import { afterEach, describe, expect, it } from 'vitest';
import type { Simulator } from '../../../src/simulator/index.ts';
import { dayBody, exportRequest, SERVICE_ID, startTestSimulator, TOKENS } from '../../support/service/simulator.ts';

const DAY = '2026-01-10';
let sim: Simulator | undefined;
afterEach(async () => sim?.close());

/** A request over a bare socket: every byte that came, and whether the other side ended or reset. */
async function rawExport(
  simulator: Simulator,
  headers = '',
): Promise<{ head: string; body: Buffer; end: 'fin' | 'reset' | 'none' }> {
  const body = JSON.stringify(dayBody(DAY));
  const socket = connect(simulator.port, '127.0.0.1');
  const chunks: Buffer[] = [];
  let end: 'fin' | 'reset' | 'none' = 'none';
  socket.write(
    `POST /api/v1/export/event?service_id=${SERVICE_ID} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}` +
      `Authorization: Bearer ${TOKENS.export}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await new Promise<void>((resolve) => {
    socket.once('end', () => {
      end = 'fin';
      resolve();
    });
    socket.once('error', () => {
      end = 'reset';
      resolve();
    });
  });
  socket.destroy();
  const all = Buffer.concat(chunks);
  const split = all.indexOf('\r\n\r\n');
  return { head: all.subarray(0, Math.max(split, 0)).toString(), body: all.subarray(split + 4), end };
}

/** The data of a chunked body, and whether its last chunk came. */
function dechunk(body: Buffer): { data: Buffer; isWhole: boolean } {
  const parts: Buffer[] = [];
  let at = 0;
  while (at < body.length) {
    const line = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.subarray(at, line).toString(), 16);
    if (size === 0) return { data: Buffer.concat(parts), isWhole: true };
    parts.push(body.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
  return { data: Buffer.concat(parts), isWhole: false };
}

async function withFault(fault: object, more: object = {}) {
  sim = await startTestSimulator({ faults: [fault], ...more });
  return sim;
}

async function goodBody(): Promise<Buffer> {
  const plain = await startTestSimulator();
  const body = Buffer.from(await (await exportRequest(plain, dayBody(DAY))).arrayBuffer());
  await plain.close();
  return body;
}

const countQuotes = (bytes: Buffer) => bytes.filter((byte) => byte === 0x22).length;

describe('the end of an export', () => {
  it('is clean at the byte of a cut', async () => {
    const { body, end } = await rawExport(await withFault({ kind: 'cut', at_byte: 1_500 }));
    const { data, isWhole } = dechunk(body);
    expect(isWhole).toBe(true);
    expect(end).toBe('fin');
    expect(data).toEqual((await goodBody()).subarray(0, 1_500));
  });

  it('has no last chunk after a drop', async () => {
    const { body, end } = await rawExport(await withFault({ kind: 'drop', at_byte: 1_500 }));
    const { data, isWhole } = dechunk(body);
    expect(isWhole).toBe(false);
    expect(end).toBe('fin');
    expect(data).toHaveLength(1_500);
  });

  it('is a reset', async () => {
    const { head, end } = await rawExport(await withFault({ kind: 'reset', at_byte: 1_500 }));
    expect(head).toContain('200 OK');
    expect(end).toBe('reset');
  });

  it('is a reset before any byte', async () => {
    const { head, end } = await rawExport(await withFault({ kind: 'refuse' }));
    expect(head).toBe('');
    expect(end).toBe('reset');
  });

  it('is between rows, within a row or within quotes', async () => {
    const whole = await goodBody();
    const cuts: Record<string, Buffer> = {};
    for (const at of ['between_rows', 'row_end', 'mid_row', 'mid_quote']) {
      const simulator = await startTestSimulator({ faults: [{ kind: 'cut', at, after_rows: 5 }] });
      cuts[at] = Buffer.from(await (await exportRequest(simulator, dayBody(DAY))).arrayBuffer());
      await simulator.close();
      expect(whole.subarray(0, cuts[at].length)).toEqual(cuts[at]);
      expect(cuts[at].length).toBeLessThan(whole.length);
    }
    expect(parse(cuts.between_rows, { columns: false })).toHaveLength(6);
    expect(cuts.between_rows.at(-1)).toBe(0x0a);
    expect(cuts.row_end.length).toBe(cuts.between_rows.length - 1);
    expect(cuts.mid_row.length).toBe(cuts.between_rows.length + 9);
    expect(countQuotes(cuts.mid_quote) % 2).toBe(1);
  });

  it('does not come after a stall, until the client disconnects', async () => {
    const simulator = await withFault({ kind: 'stall', at_byte: 100 });
    const gone = new AbortController();
    const answer = await exportRequest(simulator, dayBody(DAY));
    const reader = answer.body?.getReader();
    expect((await reader?.read())?.value).toHaveLength(100);
    const next = reader?.read().then(() => 'more');
    const quiet = new Promise((resolve) => setTimeout(resolve, 30, 'quiet'));
    expect(await Promise.race([next, quiet])).toBe('quiet');
    gone.abort();
    await reader?.cancel();
  });

  it('is clean after a stall with a duration', async () => {
    const simulator = await withFault({ kind: 'stall', at_byte: 100, for_s: 600 });
    expect((await (await exportRequest(simulator, dayBody(DAY))).arrayBuffer()).byteLength).toBe(100);
  });
});

describe('the body of an export', () => {
  const textOf = async (fault: object, more: object = {}) =>
    (await exportRequest(await withFault(fault, more), dayBody(DAY))).text();

  it('is JSON in a 200', async () => {
    expect(JSON.parse(await textOf({ kind: 'json_200' }))).toEqual({
      result: 'fail',
      message: 'client_connection_closed',
    });
  });

  it('ends with JSON, after all rows or some', async () => {
    const whole = (await goodBody()).toString();
    const tail = '{"result":"fail","message":"client_connection_closed"}';
    expect(await textOf({ kind: 'json_tail' })).toBe(whole + tail);
    await sim?.close();
    const early = await textOf({ kind: 'json_tail', after_rows: 2 });
    expect(early.endsWith(`\n${tail}`)).toBe(true);
    expect(parse(early.slice(0, -tail.length), { columns: false })).toHaveLength(3);
  });

  it('is empty', async () => {
    expect(await textOf({ kind: 'empty_body' })).toBe('');
  });

  it('has a row that is too short or too long', async () => {
    const widths = (csv: string) => parse(csv, { columns: false, relax_column_count: true }).map((row) => row.length);
    const [width, ...rest] = widths(await textOf({ kind: 'row_short', row: 4 }));
    expect(rest.map((one) => one - width).filter((off) => off !== 0)).toEqual([-1]);
    expect(rest[3]).toBe(width - 1);
    await sim?.close();
    const long = widths(await textOf({ kind: 'row_long', row: 1 }));
    expect(long[1]).toBe(width + 1);
    expect(new Set(long.slice(2))).toEqual(new Set([width]));
  });

  it('has a BOM, CRLF or no final newline', async () => {
    const whole = (await goodBody()).toString();
    const rows = parse(whole, { columns: false });
    const simulator = await withFault({ kind: 'bom' });
    const bytes = Buffer.from(await (await exportRequest(simulator, dayBody(DAY))).arrayBuffer());
    expect(bytes.subarray(0, 3)).toEqual(Buffer.from([0xef, 0xbb, 0xbf]));
    expect(bytes.subarray(3).toString()).toBe(whole);
    await sim?.close();
    const crlf = await textOf({ kind: 'crlf' });
    expect(parse(crlf, { columns: false, record_delimiter: '\r\n' })).toEqual(rows);
    await sim?.close();
    sim = await startTestSimulator({ format: { final_newline: false } });
    expect(await (await exportRequest(sim, dayBody(DAY))).text()).toBe(whole.slice(0, -1));
  });

  it('is complete at a low rate', async () => {
    const simulator = await withFault({ kind: 'slow', bytes_per_s: 2_000 });
    const body = Buffer.from(await (await exportRequest(simulator, dayBody(DAY))).arrayBuffer());
    expect(body).toEqual(await goodBody());
  });

  it('is a redirect to nothing', async () => {
    const simulator = await withFault({ kind: 'redirect', status: 307 });
    const answer = await exportRequest(simulator, dayBody(DAY));
    expect(answer.status).toBe(307);
    expect(answer.headers.get('location')).toBe('/elsewhere');
  });

  it.each([503, 500])('is a %i with a Retry-After', async (status) => {
    const answer = await exportRequest(await withFault({ kind: 'status', status, retry_after_s: 40 }), dayBody(DAY));
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([status, '40']);
  });

  it('is a 429 with its own headers', async () => {
    const fault = { kind: 'rate_limit', remaining: 12, reset: 'absent' };
    const answer = await exportRequest(await withFault(fault), dayBody(DAY));
    expect(answer.status).toBe(429);
    expect(answer.headers.get('x-ratelimit-remaining')).toBe('12');
    expect(answer.headers.get('x-ratelimit-reset')).toBeNull();
  });
});

describe('the encoding of an export', () => {
  it('is gzip when accepted', async () => {
    sim = await startTestSimulator({ format: { gzip: 'accepted' } });
    const zipped = await rawExport(sim, 'Accept-Encoding: gzip\r\n');
    expect(zipped.head).toMatch(/content-encoding: gzip/i);
    expect(gunzipSync(dechunk(zipped.body).data)).toEqual(await goodBody());
    expect((await rawExport(sim)).head).not.toMatch(/content-encoding/i);
  });

  it.each([
    ['cut', /unexpected end of file/],
    ['corrupt_trailer', /incorrect data check/],
    ['not_gzip', /incorrect header check/],
  ])('is broken gzip: %s', async (variant, error) => {
    const { body } = await rawExport(await withFault({ kind: 'gzip', variant }));
    const { data, isWhole } = dechunk(body);
    expect(isWhole).toBe(true);
    expect(() => gunzipSync(data)).toThrow(error);
  });

  it.each([0, 50, -50])('has a Content-Length that is off by %i', async (by) => {
    const simulator = await withFault({ kind: 'wrong_length', by });
    const { head, body, end } = await rawExport(simulator);
    const whole = await goodBody();
    expect(head).toContain(`Content-Length: ${whole.length + by}`);
    expect(body).toEqual(whole);
    expect(end).toBe('fin');
  });

  it('has a correct Content-Length', async () => {
    sim = await startTestSimulator({ format: { framing: 'length' } });
    const answer = await exportRequest(sim, dayBody(DAY));
    expect(answer.headers.get('content-length')).toBe(String((await answer.arrayBuffer()).byteLength));
  });
});

describe('a fault', () => {
  const statuses = async (simulator: Simulator, days: readonly string[]) => {
    const out: number[] = [];
    for (const day of days) {
      const answer = await exportRequest(simulator, dayBody(day));
      out.push(answer.status);
      await answer.arrayBuffer();
    }
    return out;
  };

  it('happens at the n-th request, on a day, a number of times', async () => {
    const nth = await withFault({ kind: 'status', when: { nth: [2, 4] } });
    expect(await statuses(nth, [DAY, DAY, DAY, DAY, DAY])).toEqual([200, 500, 200, 500, 200]);
    nth.setScenario({ faults: [{ kind: 'status', status: 502, when: { day: DAY, times: 2 } }] });
    expect(await statuses(nth, ['2026-01-09', DAY, DAY, DAY])).toEqual([200, 502, 502, 200]);
    nth.setScenario({ faults: [] });
    expect(await statuses(nth, [DAY])).toEqual([200]);
  });

  it('happens with a probability, the same for the same seed', async () => {
    const runs: number[][] = [];
    for (const seed of [1, 1, 2]) {
      const simulator = await startTestSimulator(
        { faults: [{ kind: 'status', when: { probability: 0.5 } }] },
        { seed },
      );
      runs.push(await statuses(simulator, Array<string>(30).fill(DAY)));
      await simulator.close();
    }
    expect(runs[0]).toEqual(runs[1]);
    expect(runs[0]).not.toEqual(runs[2]);
    expect(runs[0].filter((status) => status === 500).length).toBeGreaterThan(5);
    expect(runs[0].filter((status) => status === 200).length).toBeGreaterThan(5);
  });

  it('happens for long ranges, many rows or unfiltered requests only', async () => {
    sim = await startTestSimulator({ too_big: { longest_days: 2, days: [DAY], most_rows: 500 } });
    const status = async (body: object) => (await exportRequest(sim as Simulator, body)).status;
    expect(await status(dayBody('2026-01-01', '2026-01-03'))).toBe(500);
    expect(await status(dayBody('2026-01-01', '2026-01-02'))).toBe(200);
    expect(await status(dayBody(DAY))).toBe(500);
    const few = { events: ['df_purchase'] };
    expect(await status({ ...dayBody(DAY), ...few, events_condition_type: 'include' })).toBe(200);
    expect(await status({ ...dayBody(DAY), ...few, events_condition_type: 'exclude' })).toBe(200);
    sim.setScenario({ too_big: { most_rows: 3 } });
    expect(await status(dayBody('2026-01-02'))).toBe(500);
  });
});
