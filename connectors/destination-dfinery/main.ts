#!/usr/bin/env node
import { runConnectorProcess } from '../../src/airbyte/process.ts';
import { destination } from '../../src/deletion/destination/connector.ts';

await runConnectorProcess(destination);
