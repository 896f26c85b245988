#!/usr/bin/env node
import { destination } from '../../src/airbyte/destination/destination.ts';
import { runConnectorProcess } from '../../src/airbyte/protocol/entrypoint.ts';

await runConnectorProcess(destination);
