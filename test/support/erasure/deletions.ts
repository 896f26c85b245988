import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { destination } from '../../../src/airbyte/destination/destination.ts';
import type { Clock } from '../../../src/base/clock.ts';
import { InputFiles, type Json, type Output, runInProcess } from '../airbyte/connector.ts';
import { LeapingClock } from '../clock.ts';
import { newFolder } from '../new-folder.ts';

export const SUCCESS = { status: true, code: '20000', message: 'OK', data: true };

/** One request as the server saw it; `id` is undefined where the body had none. */
interface Deletion {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly id: string | undefined;
}

export type Answer = (deletion: Deletion, response: ServerResponse, nth: number) => void;

export const json = (response: ServerResponse, body: unknown, status = 200) => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
};

export const code = (response: ServerResponse, value: string, status = 200) =>
  json(response, { status: false, code: value, message: 'X', data: false }, status);

const accept: Answer = (_deletion, response) => json(response, SUCCESS);

export type DeletionServer = Awaited<ReturnType<typeof startDeletionServer>>;

/** A server written for these tests alone: it counts everything, and answers as the test says. */
export async function startDeletionServer(answer: Answer = accept) {
  const seen: Deletion[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const body = Buffer.concat(parts).toString();
      const { method = '', url = '', headers } = request;
      const deletion = { method, url, headers, body, id: idIn(body) };
      seen.push(deletion);
      if (method === 'HEAD') response.end();
      else answer(deletion, response, seen.filter(({ id }) => id === deletion.id).length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    /** Every request, of any method and path, in order of arrival. */
    seen,
    ids: () => seen.filter(({ method }) => method === 'POST').map(({ id }) => id),
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

function idIn(body: string): string | undefined {
  try {
    return JSON.parse(body).identity?.external_id;
  } catch {
    return undefined;
  }
}

function newFolders() {
  const root = newFolder();
  const ledger = join(root, 'ledger');
  const ledgerLines = (): Json[] => {
    const lines = readFileSync(join(ledger, 'ledger.jsonl'), 'utf8').split('\n');
    return lines.filter((line) => line !== '').map((line): Json => JSON.parse(line));
  };
  return { root, ledger, ledgerLines };
}

export const TOKEN = 'marked-token-5b1f0c';

/** What a test of deletions works with. */
interface DeletionSetup {
  server: DeletionServer;
  folders: ReturnType<typeof newFolders>;
  files: InputFiles;
  /** How the server answers; at first with success. */
  answer: Answer;
  /** A configuration that deletes at the server, into the ledger of `folders`. */
  config(more?: Json): Json;
  /** Runs `write` in this process over whole input lines. */
  write(input: readonly string[], more?: Json, catalog?: Json, clock?: Clock): Promise<Output>;
}

/** A server, folders and input files, made for each test of the calling file and removed after it. */
export function setUpDeletions(settings: Json = {}): DeletionSetup {
  const setup: Partial<DeletionSetup> = {};
  beforeEach(async () => {
    setup.answer = accept;
    setup.server = await startDeletionServer((...all) => setup.answer?.(...all));
    setup.folders = newFolders();
    setup.files = new InputFiles();
  });
  afterEach(() => setup.server?.close());
  setup.config = (more = {}) => ({
    base_url: setup.server?.url,
    service_id: 'svc 1/ä',
    import_token: TOKEN,
    dry_run: false,
    ledger_dir: setup.folders?.ledger,
    ...settings,
    ...more,
  });
  const complete = setup as DeletionSetup;
  complete.write = (input, more, catalog = people(), clock = new LeapingClock()) => {
    const { files } = complete;
    const words = ['write', '--config', files.write(complete.config(more)), '--catalog', files.write(catalog, 'txt')];
    return runInProcess(destination, words, { clock, input });
  };
  return complete;
}

/** The counts that the connector added to each STATE. */
export const statsOf = (output: Output): unknown[] =>
  output
    .of('STATE')
    .map(({ state: one }) => Object.entries(one ?? {}).find(([key]) => key === 'destinationStats')?.[1]);

export const people = (more: Json = {}, stream: Json = {}): Json => ({
  streams: [
    {
      stream: {
        name: 'people',
        json_schema: { type: 'object', properties: { external_id: { type: ['null', 'string'] } } },
        supported_sync_modes: ['full_refresh'],
        ...stream,
      },
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
      primary_key: [['external_id']],
      ...more,
    },
  ],
});

export const record = (id: unknown, more: Json = {}, stream = 'people'): string =>
  JSON.stringify({
    type: 'RECORD',
    record: { stream, emitted_at: 1_700_000_000_000, data: { external_id: id, ...more } },
  });

export const state = (n: number): string =>
  JSON.stringify({
    type: 'STATE',
    state: { type: 'STREAM', id: n, stream: { stream_descriptor: { name: 'people' }, stream_state: { n } } },
  });
