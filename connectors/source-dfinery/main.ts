#!/usr/bin/env node
import { runConnectorProcess } from '../../src/airbyte/protocol/entrypoint.ts';
import { SOURCE } from '../../src/airbyte/source/index.ts';

await runConnectorProcess(SOURCE);
