import { isMainThread, parentPort } from 'node:worker_threads';
import { messageOf } from '../../base/errors.ts';
import { type FileJob, RecordRunner, type Task, type TaskResult } from './record-runner.ts';

/** A request: the files of the coming tasks, a task with memory for its result, or that no task follows. */
export type WorkerRequest =
  | { readonly kind: 'open'; readonly files: readonly FileJob[] }
  | { readonly kind: 'run'; readonly task: Task; readonly buffer: ArrayBuffer | undefined }
  | { readonly kind: 'close' };

export type WorkerAnswer = { readonly result: TaskResult } | { readonly failed: string };

// The module with which a thread starts: it runs the tasks of the main thread until it is ended. In the main thread it
// does nothing.
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
