import { type FaultyServerOptions, gzip, type Script, type Step, serve } from './faulty-server.ts';
import { answerOf, exportService } from './service.ts';

export const CSV = `df_api_version,df_unified_id\n${Array.from({ length: 400 }, (_, i) => `1,"user, ${i}"\n`).join('')}`;
export const GZIP = gzip(CSV);
export const CSV_HEAD = { 'Content-Type': 'text/csv' };

/** Headers that declare the length of `bytes`, wrong `by` so many. */
export const length = (bytes: string | Uint8Array, by = 0) => ({
  ...CSV_HEAD,
  'Content-Length': Buffer.byteLength(bytes) + by,
});

/** One export from a server that does as it is told. */
export async function ask(script: Script | readonly Step[], options?: FaultyServerOptions) {
  const { url } = await serve(typeof script === 'function' ? script : () => script, options);
  const { service, quota } = exportService(url);
  const answer = await answerOf(service);
  return { answer, quota, service };
}
