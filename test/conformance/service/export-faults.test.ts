import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { ask, CSV, CSV_HEAD, GZIP, length } from '../../support/service/faulty-export.ts';
import {
  CHUNKED,
  chunks,
  type FaultyServerOptions,
  gzip,
  head,
  LAST_CHUNK,
  type Step,
  serve,
  whole,
} from '../../support/service/faulty-server.ts';
import { selfSigned } from '../../support/service/self-signed.ts';
import { answerOf, CANARY, EXPORT_REQUEST, exportService } from '../../support/service/service.ts';
import { deferred } from '../../support/wait.ts';

const NEVER = new AbortController().signal;
const GZIP_HEAD = { ...CSV_HEAD, 'Content-Encoding': 'gzip' };

/** Reads a body whose end must be a reset; `read` is awaited behind each chunk with the bytes so far. */
async function endsInReset(steps: readonly Step[], read: (bytes: number) => unknown): Promise<void> {
  const { service } = exportService((await serve(() => steps)).url);
  const reading = service.export(EXPORT_REQUEST, NEVER, async (answer) => {
    let bytes = 0;
    for await (const chunk of answer.kind === 'data' ? answer.stream : []) {
      bytes += chunk.length;
      await read(bytes);
    }
  });
  await expect(reading).rejects.toMatchObject({ kind: 'transient', failure: { code: 'reset' } });
}

describe('complete bodies', () => {
  const cases: Record<string, { steps: Step[]; text?: string }> = {
    'with a length': { steps: whole(200, CSV, CSV_HEAD) },
    chunked: { steps: [{ send: head(200, CHUNKED) }, { send: chunks(CSV) }, { send: LAST_CHUNK }] },
    'up to the end of the connection': {
      steps: [{ send: head(200, { ...CSV_HEAD, Connection: 'close' }) }, { send: CSV }, { close: true }],
    },
    gzip: { steps: whole(200, GZIP, GZIP_HEAD) },
    'gzip in two members': {
      steps: whole(200, Buffer.concat([gzip(CSV.slice(0, 500)), gzip(CSV.slice(500))]), GZIP_HEAD),
    },
    'gzip, chunked, byte by byte': {
      steps: [
        { send: head(200, { ...CHUNKED, 'Content-Encoding': 'gzip' }) },
        { send: chunks(GZIP, 1) },
        { send: LAST_CHUNK },
      ],
    },
    'a slow trickle': {
      steps: [{ send: head(200, length(CSV.slice(0, 200))) }, { trickle: CSV.slice(0, 200), bytes: 7 }],
      text: CSV.slice(0, 200),
    },
    'with a BOM': { steps: whole(200, `\uFEFF${CSV}`, CSV_HEAD), text: `\uFEFF${CSV}` },
    'the header alone': { steps: whole(200, 'a,b\n', CSV_HEAD), text: 'a,b\n' },
  };

  it.each(Object.entries(cases))('%s', async (_name, { steps, text = CSV }) => {
    const { answer, quota } = await ask(steps);
    expect(answer).toEqual({ kind: 'data', text });
    expect(quota).toMatchObject({ entered: 1, released: 1, answers: [{ kind: 'data' }] });
  });

  it.each([
    ['of a declared length', head(200, length(CSV)), [CSV.slice(0, 900), CSV.slice(900)]],
    ['in chunks', head(200, CHUNKED), [chunks(CSV.slice(0, 900)), `${chunks(CSV.slice(900))}${LAST_CHUNK}`]],
  ])('%s, with a reset behind the last byte', async (_name, start, [first, rest]) => {
    const { promise: isRead, resolve: go } = deferred();
    const steps = [{ send: start }, { send: first }, { until: isRead }, { send: rest }, { reset: true as const }];
    let bytes = 0;
    await exportService((await serve(() => steps)).url).service.export(EXPORT_REQUEST, NEVER, async (answer) => {
      for await (const chunk of answer.kind === 'data' ? answer.stream : []) {
        bytes += chunk.length;
        go();
        // The reset comes before the rest is read.
        await delay(40);
      }
    });
    expect(bytes).toBe(CSV.length);
  });
});

it.each([
  ['no byte', whole(200, '', CSV_HEAD)],
  ['a BOM and a line end alone', whole(200, '\uFEFF\r\n', CSV_HEAD)],
  ['no byte, though gzip was announced', whole(200, '', GZIP_HEAD)],
  [
    'no byte, though chunks of gzip were announced',
    [{ send: head(200, { ...CHUNKED, 'Content-Encoding': 'gzip' }) }, { send: LAST_CHUNK }],
  ],
])('a body with %s is empty', async (_content, steps) => {
  const { answer } = await ask(steps);
  expect(answer).toMatchObject({ kind: 'empty', code: 'empty_body' });
});

it('a failure behind 64 KiB of white space is no empty body', async () => {
  const { answer } = await ask(whole(200, `${' '.repeat(65_600)}{"message":"query_error"}`, CSV_HEAD));
  expect(answer.kind).not.toBe('empty');
});

it('a refusal whose body is cut is known by what came of it', async () => {
  const reason = '{"result":"fail","message":"invalid_token"}';
  const { answer } = await ask([{ send: head(400, length(reason, 5)) }, { send: reason }, { close: true }]);
  expect(answer).toMatchObject({ kind: 'config', code: 'invalid_token' });
});

it('a defect while an answer is classified is thrown, and is no failure of the network', async () => {
  const { url } = await serve(() => whole(500, 'no'));
  const reveal = vi
    .fn()
    .mockReturnValueOnce(CANARY)
    .mockImplementation(() => {
      throw new TypeError('a defect');
    });
  const { service } = exportService(url, { exportToken: Object.assign(new Secret(CANARY), { reveal }) });
  await expect(answerOf(service)).rejects.toThrow(new TypeError('a defect'));
});

it.each([
  ['first', 2],
  ['second', 3],
])('a defect while the %s bytes come is thrown, and is no failure of the network', async (_bytes, nth) => {
  const { url } = await serve(() => whole(200, CSV, CSV_HEAD));
  let waits = 0;
  const after = (ms: number, callback: () => void) => {
    // Each wait for bytes has this limit, and the wait for the head.
    if (ms === 600_000 && ++waits === nth) throw new TypeError('a defect');
    return systemClock.after(ms, callback);
  };
  const { service } = exportService(url, { clock: { ...systemClock, after } });
  await expect(answerOf(service)).rejects.toThrow(new TypeError('a defect'));
});

describe('incomplete bodies', () => {
  const cut = CSV.length - 300;
  const corrupt = Buffer.from(GZIP);
  corrupt[corrupt.length - 6] ^= 1;
  const cases: Record<string, { steps: Step[]; code: string }> = {
    'a FIN before the declared length': {
      steps: [{ send: head(200, length(CSV)) }, { send: CSV.slice(0, cut) }, { close: true }],
      code: 'length',
    },
    'a FIN between two chunks': {
      steps: [{ send: head(200, CHUNKED) }, { send: chunks(CSV.slice(0, cut)) }, { close: true }],
      code: 'reset',
    },
    'a chunk size that is none': {
      steps: [{ send: head(200, CHUNKED) }, { send: chunks(CSV) }, { send: 'zz\r\n' }],
      code: 'protocol',
    },
    'more than declared': {
      steps: [{ send: head(200, length(CSV, -50)) }, { send: CSV }],
      code: 'length',
    },
    'gzip without its trailer': { steps: whole(200, GZIP.subarray(0, -8), GZIP_HEAD), code: 'gzip' },
    'gzip with a corrupt trailer': { steps: whole(200, corrupt, GZIP_HEAD), code: 'gzip' },
  };

  it.each(Object.entries(cases))('%s', async (_name, { steps, code }) => {
    const { answer, quota } = await ask(steps);
    expect(answer).toMatchObject({ kind: 'retry', code });
    expect(quota.released).toBe(1);
  });

  it.each([
    ['within a declared length', head(200, length(CSV)), CSV.slice(0, cut)],
    ['within chunks', head(200, CHUNKED), chunks(CSV.slice(0, cut))],
    ['where only the end ends the body', head(200, { ...CSV_HEAD, Connection: 'close' }), CSV.slice(0, cut)],
  ])('a reset %s', async (_name, start, sent) => {
    const { promise: isRead, resolve: go } = deferred();
    // Only then: a reset that overtakes unread bytes is shown by Node as the end of the connection.
    const steps = [{ send: start }, { send: sent }, { until: isRead }, { reset: true as const }];
    await endsInReset(steps, (bytes) => bytes === cut && go());
  });

  it('a reset while the reader is paused is an error, not an end and not a crash', async () => {
    const big = 'x'.repeat(4 * 1024 * 1024);
    const steps: readonly Step[] = [
      { send: head(200, CHUNKED) },
      { trickle: chunks(big, 64 * 1024), bytes: 256 * 1024 },
      { reset: true },
    ];
    await endsInReset(steps, () => delay(2));
  });
});

describe('requests without an answer', () => {
  it.each<[string, readonly Step[], FaultyServerOptions, string, string]>([
    ['a reset connection', [], { resetOnConnect: true }, 'retry', 'reset'],
    ['a connection closed before the head', [{ close: true }], {}, 'retry', 'reset'],
    ['a connection closed within the head', [{ send: 'HTTP/1.1 200 O' }, { close: true }], {}, 'retry', 'reset'],
    ['an answer that is not HTTP', [{ send: 'SSH-2.0-OpenSSH_9.6\r\n' }], {}, 'retry', 'protocol'],
    ['an untrusted certificate', whole(200, CSV), { tls: selfSigned() }, 'config', 'certificate'],
  ])('%s', async (_what, steps, options, kind, code) => {
    const { answer, quota } = await ask(steps, options);
    expect(answer).toMatchObject({ kind, code });
    expect(answer).not.toHaveProperty('status');
    expect(quota).toMatchObject({ entered: 1, released: 1, answers: [] });
  });

  const withoutTls = async () =>
    (await serve(() => [], { greeting: 'HTTP/1.1 400 Bad Request\r\n\r\n' })).url.replace('http:', 'https:');
  it.each([
    // No system gives a port so low to anybody who asks for a free one.
    ['a refused connection', 'refused', async () => 'http://127.0.0.1:1'],
    ['an unknown host', 'dns', async () => `https://${'a'.repeat(64)}.invalid`],
    ['a server without TLS', 'tls', withoutTls],
  ])('%s is a retry, and is named', async (_what, code, urlOf) => {
    const url = await urlOf();
    const clause = expect.stringContaining(new URL(url).host);
    expect(await answerOf(exportService(url).service)).toMatchObject({ kind: 'retry', code, clause });
  });

  it('an untrusted certificate is refused although Node is configured to accept any', async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      const { answer } = await ask(whole(200, CSV), { tls: selfSigned() });
      expect(answer).toMatchObject({ kind: 'config', code: 'certificate' });
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    }
  });
});
