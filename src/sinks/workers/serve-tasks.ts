import { isMainThread, parentPort } from 'node:worker_threads';
import { messageOf } from '../../base/errors.ts';
import type { PoolResult, PoolTask, Runner, WorkerAnswer, WorkerRequest } from './runner.ts';

/** Answers tasks until the thread is ended; does nothing in the main thread. */
export function serveTasks<Job, Task extends PoolTask, Result extends PoolResult>(
  runner: Runner<Job, Task, Result>,
): void {
  if (isMainThread || parentPort === null) return;
  const port = parentPort;
  const answer = (answered: WorkerAnswer<Result>, transferred: ArrayBuffer[]) =>
    port.postMessage(answered, transferred);
  port.on('message', (request: WorkerRequest<Job, Task>) => {
    try {
      if (request.kind === 'open') return runner.open(request.job);
      if (request.kind === 'close') return runner.close();
      const result = runner.run(request.task);
      answer({ result }, [result.buffer, ...(result.more ?? [])]);
    } catch (error) {
      answer({ failed: messageOf(error) }, []);
    }
  });
}
