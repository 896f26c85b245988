import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../base/errors.ts';
import { type CrewData, RunnerSet } from './crew.ts';
import type { Task } from './task.ts';

/** True in a thread that was started to write records: the entry then calls `serveTasks` and nothing else. */
export function isRecordsWorker(): boolean {
  return !isMainThread && isCrewData(workerData);
}

/** Answers tasks until the thread is ended. */
export function serveTasks(): void {
  if (!isCrewData(workerData) || parentPort === null) return;
  const port = parentPort;
  const runners = new RunnerSet(workerData.recordsCrew);
  port.on('message', (task: Task) => {
    try {
      const done = runners.run(task);
      port.postMessage(done, [done.buffer]);
    } catch (error) {
      port.postMessage({ failed: messageOf(error) });
    }
  });
}

function isCrewData(data: unknown): data is CrewData {
  return typeof data === 'object' && data !== null && 'recordsCrew' in data;
}
