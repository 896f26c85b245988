import { configError, transientError, type UserError } from '../../base/errors.ts';
import { sentenceOf } from '../../base/visible-text.ts';
import type { CheckedBody } from '../../service/export/checked-body.ts';
import type { ExportRefusal, ExportRequest } from '../../service/export/protocol.ts';
import type { FileOutput } from '../spool.ts';

/** A checked body that lies in a file. */
export type CheckedFile = CheckedBody<FileOutput>;

/** What one export came to, after all attempts: a checked file, or a refusal. */
export type ExportResult = CheckedFile | ExportRefusal;

/** Exports the day at hand, or with these changes to its request. */
export type SendExport = (changes?: Partial<ExportRequest>) => Promise<ExportResult>;

/** Removes the files of results. */
export async function discard(...results: readonly ExportResult[]): Promise<void> {
  for (const result of results) if (result.kind === 'checked') await result.output.discard();
}

/** The failure of a refused export; `days` names the days of its request. */
export function refusalError(days: string, { kind, code, clause, where, emptyAs }: ExportRefusal): UserError {
  const details = { where: { ...where, day: days }, technical: code };
  if (emptyAs !== undefined) return transientError(`${days} was answered with ${emptyAs}.`, details);
  switch (kind) {
    case 'retry':
    case 'wait':
      return transientError(`${sentenceOf(clause)} Run again later.`, details);
    case 'retry_or_split':
      return transientError(`The service does not export ${days}: ${clause}. Run again later.`, details);
    default:
      return configError(`The service does not export ${days}: ${sentenceOf(clause)}`, details);
  }
}
