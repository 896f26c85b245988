import { serveTasks } from '../../workers/serve-tasks.ts';
import { RecordRunner } from './record-runner.ts';

// The module that a thread starts with: it encodes records for another one until it is ended.
serveTasks(new RecordRunner());
