import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { printGoal, run } from './measure.ts';
import { COMMAND, scratch, serving } from './serving.ts';

const LATENCY_MS = 100;
const RATES = [5_000, 9_500] as const;

/** Measures one minute of deletions at the configured rate, against a service that takes 100 ms for each. */
export async function benchErase(): Promise<void> {
  for (const rate of RATES) {
    await serving(
      '',
      (url) =>
        scratch(url, {}, async (dir) => {
          const config = join(dir, 'destination.json');
          const value = {
            base_url: url,
            service_id: 'bench',
            import_token: 'bench-import',
            ledger_dir: join(dir, 'ledger'),
            max_deletions_per_sync: rate,
            requests_per_minute: rate,
          };
          writeFileSync(config, JSON.stringify(value));
          const list = join(dir, 'ids.txt');
          writeFileSync(list, Array.from({ length: rate }, (_, i) => `person-${i}\n`).join(''));
          const forget = [COMMAND, 'forget', '--file', list, '--config', config, '--json', '--log-level', 'error'];
          const plan = await run(forget);
          const { answer, peakMb } = await run([...forget, '--execute', '--confirm', String(plan.answer.hash)]);
          const reached = (Number(answer.done) * 60) / Number(answer.seconds);
          const detail = `${Math.round(reached)} a minute, ${String(answer.requests)} requests, peak ${peakMb} MB`;
          printGoal({ name: `deletions at ${rate} a minute`, ratio: reached / rate, wanted: ['>=', 0.95], detail });
        }),
      LATENCY_MS,
    );
  }
}
