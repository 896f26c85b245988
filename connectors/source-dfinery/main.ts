#!/usr/bin/env node
import { runConnectorProcess } from '../../src/airbyte/protocol/connector-process.ts';
import { source } from '../../src/airbyte/source/source.ts';

await runConnectorProcess(source);
