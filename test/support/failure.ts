import { UserError } from '../../src/base/errors.ts';
import { MalformedCsv } from '../../src/cells/csv/malformed.ts';

/** The UserError with which work fails. Throws what else it fails with, or if it succeeds. */
export async function failureOf(work: Promise<unknown>): Promise<UserError> {
  const error = await work.then(
    () => new Error('the work succeeded'),
    (thrown: unknown) => thrown,
  );
  if (error instanceof UserError) return error;
  throw error;
}

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
