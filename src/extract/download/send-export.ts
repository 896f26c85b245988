import type { EventRequest } from '../../service/export/export-service.ts';
import type { SpooledDownload } from '../spool.ts';

/** Exports the day at hand, or with these changes to its request, until the answer is final. */
export type SendExport = (changes?: Partial<EventRequest>) => Promise<SpooledDownload>;
