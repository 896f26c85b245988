// The entry of a thread that builds columns.
import { serveTasks } from '../../workers/serve-tasks.ts';
import { ArrowRunner } from './arrow-runner.ts';

serveTasks(new ArrowRunner());
