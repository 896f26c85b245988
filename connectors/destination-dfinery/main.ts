#!/usr/bin/env node
import { destination } from '../../src/airbyte/destination/destination.ts';
import { runConnectorProcess } from '../../src/airbyte/protocol/connector-process.ts';

await runConnectorProcess(destination);
