const MOST_BYTES = 1024 * 1024;
const LF = 0x0a;
const QUOTE = 0x22;

/** The first line of a CSV body as text, its line end dropped; undefined when there is none within 1 MiB. Hangs up behind it. */
export async function firstLine(bytes: AsyncIterable<Uint8Array>): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  let quoted = false;
  for await (const chunk of bytes) {
    for (let i = 0; i < chunk.length; i++) {
      if (chunk[i] === QUOTE) quoted = !quoted;
      if (chunk[i] === LF && !quoted) return textOf([...chunks, chunk.subarray(0, i)]);
    }
    chunks.push(chunk);
    length += chunk.length;
    if (length > MOST_BYTES) return undefined;
  }
  return length === 0 ? undefined : textOf(chunks);
}

const textOf = (chunks: readonly Uint8Array[]): string =>
  Buffer.concat(chunks)
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .replace(/\r$/, '');

const CELL = /"((?:[^"]|"")*)"|([^,]*)/y;

/** The cells of one line. */
export function namesIn(line: string): string[] {
  const names: string[] = [];
  for (let at = 0; at <= line.length; ) {
    CELL.lastIndex = at;
    const match = CELL.exec(line);
    names.push(match?.[1]?.replaceAll('""', '"') ?? match?.[2] ?? '');
    at = CELL.lastIndex + 1;
    if (match === null) break;
  }
  return names;
}

const ALWAYS = [
  'df_unified_id',
  'df_api_version',
  'df_server_datetime',
  'df_correction_datetime',
  'df_event_detail_log_id',
  'df_event_log_id',
];
const EITHER = ['event_name', 'df_event_name'];

/** Columns that the service promises and that a header lacks. */
export function missingColumns(names: readonly string[]): string[] {
  const missing = ALWAYS.filter((name) => !names.includes(name));
  return EITHER.some((name) => names.includes(name)) ? missing : [...missing, EITHER.join(' or ')];
}
