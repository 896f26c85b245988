// Serves prepared exports as they are, in a process of its own: node dist/bench/serve.js DIR [LATENCY_MS] [FAULTS]. Prints its address as JSON.
import { systemClock } from '../src/base/clock.ts';
import { startTestService } from '../test/support/service/test-service.ts';
import { preparedFiles } from './prepared-files.ts';

const [dir, latency = '0', faults = '[]'] = process.argv.slice(2);
const service = await startTestService({
  clock: systemClock,
  serviceId: 'bench',
  tokens: { export: 'bench-export', import: 'bench-import' },
  latencyMs: Number(latency),
  ...(dir !== undefined && dir !== '' && { bodyOf: preparedFiles(dir) }),
});
service.setScenario({
  days: { history_days: 60 },
  limits: { exports_per_hour: 100_000 },
  faults: JSON.parse(faults),
});
console.log(JSON.stringify({ url: service.url }));
