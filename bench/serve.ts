// Serves prepared exports as they are, in a process of its own: node dist/bench/serve.js DIR [FAULT]. Prints its address
// as JSON. FAULT breaks each body: {"kind":"cut"|"reset","at_byte":N} or {"kind":"wrong_length","by":N}.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { preparedFiles } from './prepared-files.ts';

interface Fault {
  readonly kind?: 'cut' | 'reset' | 'wrong_length';
  readonly at_byte?: number;
  readonly by?: number;
}

const [dir = '', fault = '{}'] = process.argv.slice(2);
const bodyOf = preparedFiles(dir);
const broken: Fault = JSON.parse(fault);

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  const { from_date: from, to_date: to = from } = JSON.parse(text);
  const body = bodyOf(from, to);
  if (body === undefined) {
    response.writeHead(400, { 'Content-Type': 'application/json' });
    response.end('{"code":"exceed_date_range_limit","message":"no such day"}');
    return;
  }
  response.writeHead(200, { 'Content-Type': 'text/csv', ...(await lengthOf(from, to)) });
  let bytesLeft = broken.at_byte ?? Number.POSITIVE_INFINITY;
  for await (const chunk of body) {
    const part = chunk.subarray(0, bytesLeft);
    bytesLeft -= part.length;
    if (!response.write(part)) await once(response, 'drain');
    if (bytesLeft === 0) break;
  }
  if (broken.kind === 'reset') response.socket?.resetAndDestroy();
  else if (broken.kind === 'wrong_length') response.socket?.end();
  else response.end();
}

/** A Content-Length that the body does not have, if that is the fault. */
async function lengthOf(from: string, to: string): Promise<{ 'Content-Length'?: number }> {
  if (broken.kind !== 'wrong_length') return {};
  let length = broken.by ?? 0;
  for await (const chunk of bodyOf(from, to) ?? []) length += chunk.length;
  return { 'Content-Length': length };
}

const server = createServer((request, response) => {
  answer(request, response).catch((error: unknown) => {
    console.error(error);
    response.destroy();
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') console.log(`{"url":"http://127.0.0.1:${address.port}"}`);
});
