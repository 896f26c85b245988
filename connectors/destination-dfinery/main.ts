#!/usr/bin/env node
import { runConnectorProcess } from '../../src/airbyte/entrypoint.ts';
import { destination } from '../../src/deletion/destination/connector.ts';

await runConnectorProcess(destination);
