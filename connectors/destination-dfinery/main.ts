#!/usr/bin/env node
import { runConnectorProcess } from '../../src/airbyte/process.ts';
import { destination } from '../../src/erase/destination/connector.ts';

await runConnectorProcess(destination);
