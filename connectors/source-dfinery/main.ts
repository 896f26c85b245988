#!/usr/bin/env node
import { isMainThread } from 'node:worker_threads';
import { runConnectorProcess } from '../../src/airbyte/protocol/entrypoint.ts';
import { sourceConnector } from '../../src/airbyte/source/index.ts';

// The same file serves as the worker's: the image carries one file and no other.
if (isMainThread) await runConnectorProcess(sourceConnector({ entry: new URL(import.meta.url) }));
else await import('../../src/targets/records/worker.ts');
