import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { CliFixture, daysBack, summaryIn } from '../../support/processes/cli-child.ts';
import { onDay, onNth, STALL } from '../../support/service/faults.ts';
import { until } from '../../support/wait.ts';

let fixture: CliFixture;
afterEach(() => fixture.close());

/** A program whose stderr is a pipe that is full and that nobody reads. */
function withFullStderr(argv: readonly string[]) {
  const pipe = join(fixture.dir, 'stderr');
  spawnSync('mkfifo', [pipe]);
  const fill = 'exec 9<>"$0"; timeout 1 dd if=/dev/zero of="$0" bs=4096 oflag=nonblock status=none; exec "$@" 2>"$0"';
  return fixture.startWords(['bash', '-c', fill, pipe], argv);
}

/** Seconds of processor time that a process has used. */
function processorSeconds(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

describe.runIf(process.platform === 'linux')('a blocked reader of stderr', () => {
  it('costs no processor time, and a signal still stops the run', async () => {
    fixture = await CliFixture.start({ fault: onNth(2, STALL) });
    const child = withFullStderr(fixture.syncArgs({ max_concurrent_exports: 1 }, ['--log-level', 'debug']));
    await until(() => fixture.sim.isStalled);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const before = processorSeconds(child.process.pid);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(processorSeconds(child.process.pid) - before).toBeLessThan(0.8);
    const asked = performance.now();
    child.process.kill('SIGTERM');
    expect((await child.ended).signal).toBe('SIGTERM');
    expect(performance.now() - asked).toBeLessThan(5_500);
  });

  it('does not keep the run from ending with its result', async () => {
    fixture = await CliFixture.start();
    const ended = await withFullStderr(fixture.syncArgs({}, ['--log-level', 'debug'])).ended;
    expect(ended.code).toBe(0);
    expect(summaryIn(ended)).toMatchObject({ next_from_date: daysBack(1) });
  });
});

describe('an Arrow stream on stdout', () => {
  it('whose reader leaves before the first day says that, and counts nothing as taken', async () => {
    fixture = await CliFixture.start();
    const child = fixture.start(fixture.syncInto('arrow', '-', {}));
    child.process.stdout?.destroy();
    const { code, stderr } = await child.ended;
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('closed the Arrow stream before its end, after 0 whole'),
    ]);
    expect(stderr).toContain('Nothing was committed to the stream');
    const summary = JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '');
    expect(summary).toMatchObject({ exit: 0, error: null, days: 0, rows: 0, columns_added: [], rescued_cells: 0 });
    expect(summary.exports).toBeGreaterThan(0);
  });

  it('with a given schema ends at once when its reader leaves, and waits for no download', async () => {
    fixture = await CliFixture.start({ fault: onDay(daysBack(6), STALL) });
    const schema = join(fixture.dir, 'schema.json');
    writeFileSync(schema, JSON.stringify({ columns: [] }));
    const config = { to_date_inclusive: true, max_concurrent_exports: 2 };
    const child = fixture.start(fixture.syncInto('arrow', '-', config, ['--schema', schema]));
    child.process.stdout?.destroy();
    const { code, stderr } = await child.ended;
    expect([code, stderr]).toEqual([0, expect.stringContaining('before its end, after 0 whole days')]);
    expect(fixture.spooled()).toEqual([]);
  });
});
