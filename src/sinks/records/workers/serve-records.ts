import { serveTasks } from '../../workers/serve-tasks.ts';
import { RecordRunner } from './record-runner.ts';

/** Writes records for another thread until this one is ended; does nothing in the main thread. */
export function serveRecords(): void {
  serveTasks(new RecordRunner());
}
