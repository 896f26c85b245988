import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { dirname, join } from 'node:path';

/** The outcome of one request: executed and answered, refused, cut half-way, executed with its answer lost, or answered with a page. */
export type S3Outcome =
  | 'normal'
  | 'cut'
  | 'stalled'
  | 'slow'
  | 'answer lost'
  | 'page'
  | { readonly status: number; readonly code: string; readonly message?: string; readonly more?: string };

export interface S3Request {
  /** `PutObject`, `ListObjectsV2` and so on. */
  readonly what: string;
  readonly key: string;
  /** What a list is asked for. */
  readonly prefix: string | null;
  /** How often exactly this was requested, this time included. */
  readonly attempt: number;
}

/** Pause between two bytes of a slow answer (ms). */
const SLOW_MS = 100;
const S3_KEY = 'fake-key-id';
const S3_BUCKET = 'bucket';

interface StoredObject {
  readonly bytes: Buffer;
  readonly modified: Date;
}

/** One version of an object of a versioned bucket; without bytes: a delete marker. */
interface Version {
  readonly id: string;
  readonly key: string;
  readonly bytes: Buffer | undefined;
  readonly modified: Date;
}

/** A bucket in memory, on loopback: conditional creates, versions, and whatever goes wrong that a test sets. */
export class FakeS3 {
  /** The versions of a versioned bucket, newest first; absent if it does not know versions. */
  versions: Version[] | undefined;
  /** Objects or versions in one page of a list. */
  pageSize = 1_000;
  now = () => new Date();
  readonly objects = new Map<string, StoredObject>();
  readonly requests: S3Request[] = [];
  outcomeOf: (request: S3Request) => S3Outcome = () => 'normal';
  /** Called once a request was executed, before its answer is sent. */
  onExecuted: (request: S3Request) => void = () => {};
  /** Names of the header fields of each request. */
  readonly headers: string[][] = [];
  /** False if `If-None-Match` is ignored. */
  isConditional = true;
  /** False if a list of versions does not say where it goes on. */
  hasMarkers = true;
  /** False if lists ignore the prefix. */
  knowsPrefixes = true;
  readonly #server: Server;
  readonly #attempts = new Map<string, number>();
  readonly #sockets = new Set<Socket>();
  url = '';

  private constructor() {
    this.#server = createServer(
      (request, response) => void this.#take(request, response).catch(() => request.destroy()),
    );
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  static async start(): Promise<FakeS3> {
    const fake = new FakeS3();
    await new Promise<void>((resolve) => fake.#server.listen(0, '127.0.0.1', resolve));
    fake.url = `http://127.0.0.1:${(fake.#server.address() as AddressInfo).port}`;
    return fake;
  }

  /** The variables with which the SDK's own chain finds it, and asks nobody else. */
  get env(): Record<string, string> {
    return {
      AWS_ENDPOINT_URL_S3: this.url,
      AWS_ACCESS_KEY_ID: S3_KEY,
      AWS_SECRET_ACCESS_KEY: 'secret',
      AWS_REGION: 'us-east-1',
      AWS_EC2_METADATA_DISABLED: 'true',
    };
  }

  /** Forgets the requests, not the objects. */
  reset(): void {
    this.requests.length = 0;
    this.#attempts.clear();
    this.outcomeOf = () => 'normal';
  }

  /** Writes all objects below a prefix into a folder, which is made anew. */
  dump(prefix: string, folder: string): void {
    rmSync(folder, { recursive: true, force: true });
    for (const [key, { bytes }] of this.objects) {
      if (!key.startsWith(prefix)) continue;
      const file = join(folder, key.slice(prefix.length));
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, bytes);
    }
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    const [bucket = '', ...rest] = decodeURIComponent(url.pathname.slice(1)).split('/');
    const requested = { key: rest.join('/'), query: url.searchParams, method: request.method ?? '' };
    const what = operationOf(requested);
    const id = `${what} ${requested.key} ${url.search}`;
    const attempt = (this.#attempts.get(id) ?? 0) + 1;
    this.#attempts.set(id, attempt);
    const noted = { what, key: requested.key, prefix: url.searchParams.get('prefix'), attempt };
    this.requests.push(noted);
    const outcome = this.outcomeOf(noted);
    if (outcome === 'cut') return cut(request, response);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const answer = this.#answer(request, { ...requested, what, bucket, body: Buffer.concat(chunks) }, outcome);
    if (answer.status < 300) this.onExecuted(noted);
    if (outcome === 'answer lost') return void request.socket.destroy();
    this.headers.push(Object.keys(request.headers));
    // Some stores give answers without a body the type of a page.
    const type = answer.body.length === 0 && { 'content-type': 'text/html; charset=utf-8' };
    response.writeHead(answer.status, { 'content-length': answer.body.length, ...type, ...answer.headers });
    if (outcome === 'stalled') return void response.write(answer.body.subarray(0, 1));
    if (outcome === 'slow') {
      for (const byte of answer.body) {
        response.write(Buffer.of(byte));
        await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
      }
      return void response.end();
    }
    response.end(answer.body);
  }

  #answer(request: IncomingMessage, requested: ParsedRequest, outcome: S3Outcome): Answer {
    if (outcome === 'page') return { status: 200, headers: { 'content-type': 'text/html' }, body: Buffer.from('<p>') };
    if (typeof outcome === 'object') return refusal(outcome.status, outcome.code, outcome.message, outcome.more);
    const key = /Credential=([^/]+)\//.exec(request.headers.authorization ?? '')?.[1];
    if (key !== S3_KEY) return refusal(403, 'InvalidAccessKeyId');
    if (requested.bucket !== S3_BUCKET) return refusal(404, 'NoSuchBucket');
    const isCreate = this.isConditional && request.headers['if-none-match'] === '*';
    return this.#execute(requested, isCreate);
  }

  #execute(requested: ParsedRequest, isCreate: boolean): Answer {
    const { what, key, query, body } = requested;
    if (!this.knowsPrefixes) query.delete('prefix');
    if (what === 'GetObject') return this.#get(key);
    if (what === 'PutObject') {
      if (isCreate && this.objects.has(key)) return refusal(412, 'PreconditionFailed');
      return this.#store(key, body);
    }
    if (what === 'DeleteObject') return this.#delete(key, query.get('versionId'));
    if (what === 'ListObjectsV2') return this.#list(query);
    return this.#listVersions(query);
  }

  #get(key: string): Answer {
    const held = this.objects.get(key);
    if (held === undefined) return refusal(404, 'NoSuchKey');
    return { status: 200, headers: {}, body: held.bytes };
  }

  #store(key: string, bytes: Buffer): Answer {
    const modified = this.now();
    this.objects.set(key, { bytes, modified });
    this.versions?.unshift({ id: randomUUID(), key, bytes, modified });
    return { status: 200, headers: {}, body: Buffer.alloc(0) };
  }

  #delete(key: string, id: string | null): Answer {
    if (id !== null) this.versions = this.versions?.filter((version) => version.id !== id);
    else this.versions?.unshift({ id: randomUUID(), key, bytes: undefined, modified: this.now() });
    const latest = this.versions?.find((version) => version.key === key);
    if (latest?.bytes === undefined) this.objects.delete(key);
    else this.objects.set(key, { bytes: latest.bytes, modified: latest.modified });
    return { status: 204, headers: {}, body: Buffer.alloc(0) };
  }

  #listVersions(query: URLSearchParams): Answer {
    if (this.versions === undefined) return refusal(501, 'NotImplemented');
    const [prefix, after] = [query.get('prefix') ?? '', query.get('version-id-marker') ?? ''];
    const [from, versions] = [query.get('key-marker') ?? '', this.versions.filter(({ key }) => key.startsWith(prefix))];
    const keys = [...new Set(versions.map(({ key }) => key))].sort();
    const listed = keys.flatMap((key) => versions.filter((version) => version.key === key));
    const marked = listed.findIndex(({ key, id }) => key === from && id === after);
    const following = marked >= 0 ? listed.slice(marked + 1) : listed.filter(({ key }) => key > from);
    const page = following.slice(0, this.pageSize);
    const isMore = following.length > page.length;
    const last = page.at(-1);
    const next = `<NextKeyMarker>${escaped(last?.key ?? '')}</NextKeyMarker><NextVersionIdMarker>${last?.id}</NextVersionIdMarker>`;
    const texts = page.map(({ key, id, bytes, modified }) => {
      const kind = bytes === undefined ? 'DeleteMarker' : 'Version';
      const isLatest = versions.find((version) => version.key === key)?.id === id;
      return `<${kind}><Key>${escaped(key)}</Key><VersionId>${id}</VersionId><IsLatest>${isLatest}</IsLatest><LastModified>${modified.toISOString()}</LastModified></${kind}>`;
    });
    const more = `<IsTruncated>${isMore}</IsTruncated>${isMore && this.hasMarkers ? next : ''}`;
    return ok(`<ListVersionsResult>${more}${texts.join('')}</ListVersionsResult>`);
  }

  #list(query: URLSearchParams): Answer {
    const after = query.get('continuation-token') ?? query.get('start-after') ?? '';
    const prefix = query.get('prefix') ?? '';
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
    const page = keys.slice(0, this.pageSize);
    const contents = page.map((key) => {
      const { bytes, modified } = this.objects.get(key) as StoredObject;
      return `<Contents><Key>${escaped(key)}</Key><Size>${bytes.length}</Size><LastModified>${modified.toISOString()}</LastModified></Contents>`;
    });
    const more = keys.length > page.length;
    const next = more ? `<NextContinuationToken>${escaped(page.at(-1) ?? '')}</NextContinuationToken>` : '';
    return ok(`<ListBucketResult><IsTruncated>${more}</IsTruncated>${next}${contents.join('')}</ListBucketResult>`);
  }
}

// What the bucket of the tests receives and answers, in the words of the protocol of S3.

interface ParsedRequest {
  readonly what: string;
  readonly bucket: string;
  readonly key: string;
  readonly query: URLSearchParams;
  readonly body: Buffer;
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

function operationOf({ method, key, query }: { method: string; key: string; query: URLSearchParams }): string {
  if (method === 'PUT') return 'PutObject';
  if (method === 'DELETE') return 'DeleteObject';
  if (key !== '') return 'GetObject';
  return query.has('versions') ? 'ListObjectVersions' : 'ListObjectsV2';
}

/** Takes some of the body, or gives half a head, and hangs up. */
function cut(request: IncomingMessage, response: ServerResponse): void {
  if (request.method === 'GET') {
    response.writeHead(200, { 'content-length': 1_000 });
    response.write('half');
  }
  setTimeout(() => request.socket.destroy(), 5);
}

const XML = { 'content-type': 'application/xml' };
const ok = (xml = ''): Answer => ({ status: 200, headers: XML, body: Buffer.from(xml) });
const refusal = (status: number, code: string, message = 'as the test wants it', more = ''): Answer => ({
  status,
  headers: XML,
  body: Buffer.from(`<Error><Code>${code}</Code><Message>${message}</Message>${more}</Error>`),
});
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
