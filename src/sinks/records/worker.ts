import { isMainThread, parentPort } from 'node:worker_threads';
import { messageOf } from '../../base/errors.ts';
import { RecordRunner } from './record-runner.ts';
import type { WorkerAnswer, WorkerRequest } from './tasks.ts';

// The module that a thread starts with: it does the tasks of another one until it is ended. It does nothing in the main thread.
if (!isMainThread && parentPort !== null) {
  const port = parentPort;
  const runner = new RecordRunner();
  const answer = (answered: WorkerAnswer, transferred: ArrayBuffer[]) => port.postMessage(answered, transferred);
  port.on('message', (request: WorkerRequest) => {
    try {
      if (request.kind === 'open') return runner.open(request.jobs);
      if (request.kind === 'close') return runner.close();
      const result = runner.run(request.task, request.buffer);
      answer({ result }, [result.buffer]);
    } catch (error) {
      answer({ failed: messageOf(error) }, []);
    }
  });
}
