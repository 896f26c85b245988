import { spawn } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import type { Connector } from '../../../src/airbyte/protocol/connector.ts';
import { MessageWriter } from '../../../src/airbyte/protocol/message-writer.ts';
import { runConnector } from '../../../src/airbyte/protocol/run-connector.ts';
import type { Clock } from '../../../src/base/clock.ts';
import { systemEnv } from '../../../src/base/env.ts';
import { newFolder } from '../new-folder.ts';

export type Json = Record<string, unknown>;

/** A message as it was read back, with what the tests look at. */
export interface ParsedMessage {
  readonly type: string;
  readonly record?: { readonly stream: string; readonly data: Json; readonly emitted_at: number; readonly meta?: Json };
  readonly state?: {
    readonly type: string;
    readonly stream: { readonly stream_descriptor: { readonly name: string }; readonly stream_state: Json };
    readonly sourceStats: { readonly recordCount: number };
  };
  readonly log?: { readonly level: string; readonly message: string; readonly event?: string };
  readonly trace?: {
    readonly type: string;
    readonly emitted_at: number;
    readonly error?: { readonly message: string; readonly failure_type: string; readonly stream_descriptor?: Json };
    readonly stream_status?: {
      readonly stream_descriptor: { readonly name: string };
      readonly status: string;
      readonly reasons?: readonly { readonly type: string; readonly rate_limited: { readonly quota_reset: number } }[];
    };
  };
  readonly spec?: Json & { readonly connectionSpecification: Json; readonly protocol_version: string };
  readonly connectionStatus?: { readonly status: string; readonly message?: string };
  readonly catalog?: { readonly streams: readonly CatalogStream[] };
}

export interface CatalogStream {
  readonly name: string;
  readonly json_schema: { readonly type: string; readonly properties: Record<string, Json> };
  readonly supported_sync_modes: readonly string[];
  readonly source_defined_cursor: boolean;
  readonly default_cursor_field?: readonly string[];
  readonly source_defined_primary_key: readonly (readonly string[])[];
  readonly is_resumable: boolean;
}

/** What a run of a connector printed, and what it ended with. */
export class Output {
  readonly messages: readonly ParsedMessage[];
  readonly text: string;
  readonly code: number | null;
  readonly signal: string | null;
  readonly stderr: string;

  constructor(text: string, code: number | null, signal: string | null = null, stderr = '') {
    this.text = text;
    this.code = code;
    this.signal = signal;
    this.stderr = stderr;
    this.messages = text
      .split('\n')
      .filter((line) => line !== '')
      .map((line): ParsedMessage => JSON.parse(line));
  }

  of(type: string): ParsedMessage[] {
    return this.messages.filter((message) => message.type === type);
  }

  records(stream: string): Json[] {
    return this.of('RECORD').flatMap(({ record }) => (record?.stream === stream ? [record.data] : []));
  }

  /** The states of one stream, oldest first. */
  states(stream: string): Json[] {
    return this.of('STATE').flatMap(({ state }) =>
      state?.stream.stream_descriptor.name === stream ? [state.stream.stream_state] : [],
    );
  }

  statuses(stream: string): string[] {
    return this.messages.flatMap(({ trace }) =>
      trace?.stream_status?.stream_descriptor.name === stream ? [trace.stream_status.status] : [],
    );
  }

  errors(): NonNullable<NonNullable<ParsedMessage['trace']>['error']>[] {
    return this.messages.flatMap(({ trace }) => (trace?.error ? [trace.error] : []));
  }

  logs(event: string): string[] {
    return this.of('LOG').flatMap(({ log }) => (log?.event === event ? [log.message] : []));
  }

  catalog(): { readonly streams: readonly CatalogStream[] } {
    const [message] = this.of('CATALOG');
    if (message?.catalog === undefined) throw new Error(`no catalog: ${this.text.slice(0, 500)}`);
    return message.catalog;
  }

  /** The last state of every stream, as the platform hands it back. */
  lastStates(): Json[] {
    const last = new Map<string, Json>();
    for (const { state } of this.of('STATE')) {
      if (state) last.set(state.stream.stream_descriptor.name, { type: state.type, stream: state.stream });
    }
    return [...last.values()];
  }
}

/** Input files of a connector, mode 0444 as some clients write them. */
export class InputFiles {
  readonly dir = newFolder();
  #count = 0;

  write(value: unknown, extension = 'json'): string {
    const path = join(this.dir, `input-${++this.#count}.${extension}`);
    writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value));
    chmodSync(path, 0o444);
    return path;
  }
}

export interface InProcess {
  readonly clock: Clock;
  /** Lines, and bytes as they are. */
  readonly input?: readonly (string | Uint8Array)[] | undefined;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly onText?: (text: string) => void;
}

/** Runs a verb in this process, under a clock of the test's. */
export async function runInProcess(
  connector: Connector,
  words: readonly string[],
  { clock, input = [], env = {}, signal = new AbortController().signal, onText }: InProcess,
): Promise<Output> {
  const parts: Buffer[] = [];
  const out = new Writable({
    write(chunk: Buffer, _encoding, done) {
      parts.push(Buffer.from(chunk));
      onText?.(chunk.toString());
      setImmediate(done);
    },
  });
  const ending = new AbortController();
  const code = await runConnector(connector, {
    args: words,
    writer: new MessageWriter(out, (error) => ending.abort(error)),
    input: Readable.from(input.map((line) => (typeof line === 'string' ? Buffer.from(`${line}\n`) : line))),
    clock,
    env,
    random: () => 0.5,
    signal: AbortSignal.any([signal, ending.signal]),
  });
  return new Output(Buffer.concat(parts).toString(), code);
}

/** Bundles a connector as its image has it; returns the file. */
export async function bundleConnector(name: string, dir: string): Promise<string> {
  const { bundle } = await import(pathToFileURL(join(import.meta.dirname, '../../../connectors/bundle.mjs')).href);
  const file = join(dir, `${name}.mjs`);
  await bundle(name, file);
  return file;
}

export interface RunningConnector {
  readonly ended: Promise<Output>;
  readonly stdout: Readable;
  kill(signal: NodeJS.Signals): boolean;
}

/** Starts a connector's file as a process of its own. */
export function startConnector(
  file: string,
  words: readonly string[],
  input = '',
  env: Readonly<Record<string, string>> = {},
): RunningConnector {
  const child = spawn(process.execPath, [file, ...words], {
    env: { PATH: systemEnv.PATH, TMPDIR: systemEnv.TMPDIR, ...env },
  });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const ended = new Promise<Output>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      const text = Buffer.concat(out).toString();
      // A message cut by kill -9 is no message.
      const whole = signal === 'SIGKILL' ? text.slice(0, text.lastIndexOf('\n') + 1) : text;
      resolve(new Output(whole, code, signal, Buffer.concat(err).toString()));
    });
  });
  return { ended, stdout: child.stdout, kill: (signal) => child.kill(signal) };
}

/** The states that a platform saved for these streams. */
export const savedStates = (value: Json, ...names: string[]) =>
  names.map((name) => ({ type: 'STREAM', stream: { stream_descriptor: { name }, stream_state: value } }));

/** A configured catalog over discovered streams. */
export function configured(
  streams: readonly CatalogStream[],
  more: Json = {},
  only: readonly string[] = streams.map((stream) => stream.name),
): Json {
  return {
    streams: streams
      .filter((stream) => only.includes(stream.name))
      .map((stream) => ({
        stream,
        sync_mode: 'incremental',
        destination_sync_mode: 'append_dedup',
        cursor_field: stream.default_cursor_field,
        primary_key: stream.source_defined_primary_key,
        generation_id: 1,
        minimum_generation_id: 0,
        sync_id: 1,
        ...more,
      })),
  };
}
