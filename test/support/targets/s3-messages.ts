import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

// What the bucket of the tests is asked and answers, in the words of the protocol of S3.

export interface Asked {
  readonly what: string;
  readonly bucket: string;
  readonly key: string;
  readonly query: URLSearchParams;
  readonly body: Buffer;
  /** Of a part, as the client counted it. */
  readonly checksum: string | undefined;
}

export interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

export function operationOf({ method, key, query }: { method: string; key: string; query: URLSearchParams }): string {
  const isPart = query.has('uploadId');
  if (method === 'HEAD') return key === '' ? 'HeadBucket' : 'HeadObject';
  if (method === 'PUT') return isPart ? 'UploadPart' : 'PutObject';
  if (method === 'DELETE') return isPart ? 'AbortMultipartUpload' : 'DeleteObject';
  if (method === 'POST') {
    if (query.has('delete')) return 'DeleteObjects';
    return query.has('uploads') ? 'CreateMultipartUpload' : 'CompleteMultipartUpload';
  }
  if (key !== '') return 'GetObject';
  if (query.has('versions')) return 'ListObjectVersions';
  return query.has('uploads') ? 'ListMultipartUploads' : 'ListObjectsV2';
}

/** The parts that the end of an upload names. */
export function partsIn(xml: string) {
  return [...xml.matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, part]) => {
    const of = (name: string) => unescaped(new RegExp(`<${name}>([^<]*)</${name}>`).exec(part)?.[1] ?? '');
    return { number: Number(of('PartNumber')), etag: of('ETag'), checksum: of('ChecksumCRC32') };
  });
}

/** Takes some of the body, or gives half a head, and hangs up. */
export function cut(request: IncomingMessage, response: ServerResponse): void {
  if (request.method === 'GET' || request.method === 'HEAD') {
    response.writeHead(200, { 'content-length': 1_000 });
    response.write('half');
  }
  setTimeout(() => request.socket.destroy(), 5);
}

const XML = { 'content-type': 'application/xml' };
export const ok = (xml = ''): Answer => ({ status: 200, headers: XML, body: Buffer.from(xml) });
export const refusal = (status: number, code: string): Answer => ({
  status,
  headers: XML,
  body: Buffer.from(`<Error><Code>${code}</Code><Message>as the test wants it</Message></Error>`),
});
export const etag = (bytes: Buffer) => `"${createHash('md5').update(bytes).digest('hex')}"`;
export const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
export const unescaped = (text: string) =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');
