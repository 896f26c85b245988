import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../../base/errors.ts';
import type { Task } from './task.ts';
import { TaskRunner } from './task-runner.ts';
import type { WorkerData } from './worker-pool.ts';

/** True in a thread that was started to write records: the entry then calls `serveTasks` and nothing else. */
export function isRecordsWorker(): boolean {
  return !isMainThread && isWorkerData(workerData);
}

/** Answers tasks until the thread is ended. */
export function serveTasks(): void {
  if (!isWorkerData(workerData) || parentPort === null) return;
  const port = parentPort;
  const runner = new TaskRunner(workerData.recordFiles);
  port.on('message', (task: Task) => {
    try {
      const result = runner.run(task);
      port.postMessage(result, [result.buffer]);
    } catch (error) {
      port.postMessage({ failed: messageOf(error) });
    }
  });
}

function isWorkerData(data: unknown): data is WorkerData {
  return typeof data === 'object' && data !== null && 'recordFiles' in data;
}
