import type { Day } from '../../../base/days.ts';
import { codeOf } from '../../../base/errors.ts';
import { jsonOf } from '../../../base/json.ts';
import { literal } from '../../../cells/types/sql.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import { pathLiteral } from '../../../engine/session/quote.ts';
import type { StoredReceipt } from '../../../table/receipts.ts';
import { fingerprint, RECEIPT_KEY } from '../parquet-file.ts';
import { describeFile } from '../rows.ts';
import { receiptOf } from '../stored.ts';
import { type FolderFile, filePath, schemaOf } from './state-file.ts';

/** What a file of a day says of itself. */
interface DayFileFacts {
  readonly file: Omit<FolderFile, 'bytes' | 'modified'>;
  readonly receipt: StoredReceipt;
}

/** Reads the receipt and the columns of a file; undefined if it cannot be read, or this program did not write it. */
export async function readDayFile(
  engine: Engine,
  { day, path }: { readonly day: Day; readonly path: string },
): Promise<DayFileFacts | undefined> {
  try {
    const { receipt: text } = await engine.row(
      `SELECT decode(value) AS receipt FROM parquet_kv_metadata(${pathLiteral(path)}) WHERE decode(key) = ${literal(RECEIPT_KEY)}`,
    );
    const receipt = receiptOf(jsonOf(String(text)), path);
    const { n } = await engine.row(`SELECT num_rows AS n FROM parquet_file_metadata(${pathLiteral(path)})`);
    const described = await describeFile(engine, path);
    if (receipt.day !== day || Number(n) !== receipt.rows_stored) return undefined;
    const columns = new Set(described.map(({ name }) => name));
    const sha256 = await fingerprint(path);
    return {
      file: { day, path: filePath(day), rows: receipt.rows_stored, sha256, schema: schemaOf(described), columns },
      receipt,
    };
  } catch (error) {
    engine.options.signal?.throwIfAborted();
    if (codeOf(error) === 'EACCES') throw error;
    return undefined;
  }
}
