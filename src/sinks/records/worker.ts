import { isMainThread, parentPort } from 'node:worker_threads';
import { messageOf } from '../../base/errors.ts';
import { type FileJob, RecordRunner, type Task, type TaskResult } from './record-runner.ts';

/** What a worker is sent: the files of the tasks to come, a task with memory for its result, or that there are no more. */
export type WorkerRequest =
  | { readonly kind: 'open'; readonly files: readonly FileJob[] }
  | { readonly kind: 'run'; readonly task: Task; readonly buffer: ArrayBuffer | undefined }
  | { readonly kind: 'close' };

/** What it answers to a task. */
export type WorkerAnswer = { readonly result: TaskResult } | { readonly failed: string };

// The module that a thread starts with: it does the tasks of another one until it is ended. It does nothing in the main thread.
if (!isMainThread && parentPort !== null) {
  const port = parentPort;
  const runner = new RecordRunner();
  const answer = (answered: WorkerAnswer, transferred: ArrayBuffer[]) => port.postMessage(answered, transferred);
  port.on('message', (request: WorkerRequest) => {
    try {
      if (request.kind === 'open') return runner.open(request.files);
      if (request.kind === 'close') return runner.close();
      const result = runner.run(request.task, request.buffer);
      answer({ result }, [result.buffer]);
    } catch (error) {
      answer({ failed: messageOf(error) }, []);
    }
  });
}
