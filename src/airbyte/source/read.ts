import { UserError } from '../../base/errors.ts';
import { parseSourceConfig, type SourceConfig } from '../../config/source.ts';
import { Downloads, logPlan } from '../../extract/extract.ts';
import type { Plan } from '../../extract/plan/which-days.ts';
import { openConfig, type ReadVerb, type VerbContext } from '../protocol/connector.ts';
import { USER_PROFILES } from '../records/property-names.ts';
import { EventStreams } from './event-streams.ts';
import { withService } from './heartbeat.ts';
import { readProfiles } from './profiles-stream.ts';
import { StreamFailures } from './stream-failures.ts';
import { planForAll } from './stream-plans.ts';

/** The verb `read`: downloads each day that a stream wants once, and writes its records and states. */
export const read: ReadVerb = async (value, catalog, saved, context) => {
  const config = openConfig(parseSourceConfig(value, context.env), context);
  const failures = new StreamFailures(context);
  const profiles = catalog.streams.find(
    ({ name, namespace }) => config.userProfiles && namespace === undefined && name === USER_PROFILES,
  );
  if (profiles !== undefined) await readProfiles(profiles, config, context, failures);
  const streams = new EventStreams(config, context, failures);
  const ofEvents = catalog.streams.filter((stream) => stream !== profiles);
  await streams.start(ofEvents, saved);
  if (streams.planned.length > 0) {
    const plan = planForAll(streams.planned.map((stream) => stream.plan));
    logPlan(plan, context);
    if (plan.days.length > 0) await readDays(plan, streams, config, context);
  }
  failures.throwAny(catalog.streams.length);
};

async function readDays(plan: Plan, streams: EventStreams, config: SourceConfig, context: VerbContext): Promise<void> {
  try {
    await withService(config, context, streams.beat, async (deps, heartbeat) => {
      const downloads = await Downloads.open(plan, deps);
      try {
        const results = downloads.results();
        while (streams.unfinished.length > 0) {
          const { value: result, done } = await heartbeat.during(results.next());
          if (done === true) break;
          await streams.take(result, downloads.run);
        }
      } finally {
        await downloads.close();
      }
    });
  } catch (error) {
    // A failure is reported for each stream that still wants a day. A stop, or a closed stdout, only ends them.
    if (!context.signal.aborted && error instanceof UserError) return await streams.fail(streams.unfinished, error);
    for (const stream of streams.unfinished) await stream.end('INCOMPLETE').catch(() => {});
    throw error;
  }
}
