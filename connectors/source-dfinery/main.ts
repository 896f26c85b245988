#!/usr/bin/env node
import { runConnectorProcess } from '../../src/airbyte/protocol/entrypoint.ts';
import { source } from '../../src/airbyte/source/connector.ts';

await runConnectorProcess(source);
