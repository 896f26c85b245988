import type { Metadata } from '../../sql/files/parquet-file.ts';
import { WRITER } from '../domains.ts';

/** What every data file says of itself; the rest is in the log. */
export const METADATA: Metadata = { 'dfinery.version': WRITER };
