import { UserError } from '../../src/base/errors.ts';
import { MalformedCsv } from '../../src/cells/csv/malformed.ts';

/** The message with which work is refused, as usage or configuration. */
export function refusalOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof UserError && error.exitCode === 2) return error.message;
    throw error;
  }
  throw new Error('nothing was refused');
}

/** The defect of a CSV for which work throws. Throws what else it throws, or if it throws nothing. */
export function malformedOf(work: () => unknown): MalformedCsv {
  try {
    work();
  } catch (error) {
    if (error instanceof MalformedCsv) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}
