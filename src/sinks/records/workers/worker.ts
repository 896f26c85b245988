import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../../base/errors.ts';
import type { WorkerRequest } from './task.ts';
import { TaskRunner } from './task-runner.ts';

/** The `workerData` of a records worker: how the entry knows what it was started for. */
export const RECORDS_WORKER = { records: true } as const;

/** True in a thread that was started to write records: the entry then calls `serveTasks` and nothing else. */
export function isRecordsWorker(): boolean {
  return !isMainThread && typeof workerData === 'object' && workerData !== null && 'records' in workerData;
}

/** Answers tasks until the thread is ended. */
export function serveTasks(): void {
  if (!isRecordsWorker() || parentPort === null) return;
  const port = parentPort;
  const runner = new TaskRunner();
  port.on('message', (request: WorkerRequest) => {
    try {
      if (request.kind === 'files') return runner.setFiles(request.files);
      const result = runner.run(request);
      port.postMessage(result, [result.buffer]);
    } catch (error) {
      port.postMessage({ failed: messageOf(error) });
    }
  });
}
