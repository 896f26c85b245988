import { existsSync, readdirSync } from 'node:fs';
import type { Day } from '../../src/base/days.ts';
import type { Simulator } from '../../src/simulator/index.ts';
import { type Action, actionOf, isDeletion, type Step } from './actions.ts';
import { HOUR } from './common.ts';
import { finalProblems, otherProblems, problemsOf } from './invariants.ts';
import { isCapped, People, type Planned } from './people.ts';
import { type Held, NOTHING } from './places.ts';
import { Reads } from './reads.ts';
import { configure, lineOf, otherLine } from './settings.ts';
import { type Ended, Simulation, type SpawnOptions } from './simulation.ts';
import type { TestCase } from './test-case.ts';
import { tracesOf } from './traces.ts';

/** The result of executing a test case. */
export interface Outcome {
  readonly problems: readonly string[];
  /** Each run and how it ended, oldest first. */
  readonly history: readonly string[];
  /** Number of events of the simulation: the same for the same test case. */
  readonly events: number;
  readonly requests: number;
  readonly kills: number;
}

const UNDISTURBED = actionOf('sync');
const UNDISTURBED_DAYS = 2;

/** Executes a test case and stops at the first step after which an invariant is violated. */
export async function execute(testCase: TestCase): Promise<Outcome> {
  const simulation = await Simulation.start(testCase);
  const execution = new Execution(simulation);
  let problems: readonly string[] = [];
  try {
    problems = await execution.run();
  } catch (error) {
    problems = [`broke off: ${error instanceof Error ? error.stack : String(error)}`];
  } finally {
    await simulation.close();
  }
  const { history, scheduler } = simulation;
  return {
    problems,
    history,
    events: scheduler.events,
    requests: simulation.service.requests().length,
    kills: execution.kills,
  };
}

class Execution {
  readonly #simulation: Simulation;
  readonly #people: People;
  readonly #reads: Reads;
  #held: Held = NOTHING;
  /** True once a clock was wrong, a disk full, or the service gave a wrong number of remaining exports: the quota may be wrong then. */
  #isMisled = false;
  /** True once a clock was wrong. */
  #isMistimed = false;
  kills = 0;
  /** True if a run was killed or failed since the last successful load. */
  #isBrokenOff = false;
  /** When the last undisturbed run began, ms. */
  #began = 0;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.#people = new People(simulation);
    this.#reads = new Reads(simulation.testCase);
  }

  async run(): Promise<readonly string[]> {
    for (const step of this.#simulation.testCase.steps) {
      const problems = await this.#step(step);
      if (problems.length > 0) return problems;
    }
    for (let day = 0; day < UNDISTURBED_DAYS; day++) {
      const problems = await this.#undisturbedDay();
      if (problems.length > 0) return problems;
    }
    return [...finalProblems(this.#held, this.#simulation, this.#people, this.#began), ...this.#leftovers()];
  }

  async #step(step: Step): Promise<readonly string[]> {
    const simulation = this.#simulation;
    simulation.pass(step.hours, step.beforeNoonMs);
    configure(simulation, Math.max(...step.actions.map(({ cap }) => cap)));
    simulation.history.push(`-- ${new Date(simulation.scheduler.now).toISOString()}`);
    if (isMistimed(step)) this.#isMistimed = true;
    if (this.#isMistimed) this.#isMisled = true;
    if (step.faults.some((fault) => 'remaining' in fault)) this.#isMisled = true;
    if (step.actions.some(({ disk, end }) => disk !== undefined || end?.how === 'power')) this.#isMisled = true;
    const clock = this.#skewed(step);
    simulation.service.setScenario({ faults: [] });
    const planned: (Planned | undefined)[] = [];
    for (const action of step.actions)
      planned.push(isDeletion(action) ? await this.#people.plan(action, this.#held, {}) : undefined);
    this.#people.isConcurrent = step.actions.filter(isDeletion).length > 1;
    if (step.isReissued) this.#reissue();
    simulation.service.setScenario({ faults: step.faults });
    const before = this.#people.counts();
    const requests = simulation.service.requests().length;
    const lines = step.actions.map((action, i) => ({
      line: planned[i]?.line ?? lineOf(simulation, action),
      how: { ...action, clock },
    }));
    const began = simulation.scheduler.now;
    const ended = await simulation.run(lines);
    simulation.service.setScenario({ faults: [] });
    configure(simulation);
    if (!isMistimed(step)) for (const [i, action] of step.actions.entries()) this.#noteRead(action, ended[i], began);
    const problems = [
      ...step.actions.flatMap((action, i) => codeProblems(action, ended[i], step, planned[i])),
      ...step.actions.flatMap((_, i) => this.#deletionProblems(planned[i], ended[i], before)),
      ...this.#quotaProblems(simulation.service.requests().slice(requests)),
      ...this.#falseAlarms(ended),
    ];
    const alone = step.actions.length === 1 && ended[0].code === 0 ? planned[0] : undefined;
    if (alone !== undefined) problems.push(...(await tracesOf(simulation, alone)));
    return problems.length > 0 ? problems : this.#check(ended);
  }

  #isLoad({ what }: Ended): boolean {
    return what.startsWith(`sync ${this.#simulation.testCase.target}`) || what === 'read';
  }

  #noteRead(action: Action, { code }: Ended, began: number): void {
    const reads = this.#simulation.testCase.target === 'airbyte' && !isDeletion(action);
    const loads = reads || action.what === 'sync' || action.what === 'refresh' || action.what === 'part';
    if (loads && code === 0)
      this.#reads.note(reads ? UNDISTURBED : action, this.#held.cursor as Day | undefined, began);
  }

  #deletionProblems(planned: Planned | undefined, ended: Ended, before: ReadonlyMap<string, number>): string[] {
    return planned === undefined ? [] : this.#people.ended(planned, ended, before, !this.#isMistimed);
  }

  async #undisturbedDay(): Promise<readonly string[]> {
    const simulation = this.#simulation;
    simulation.pass(25);
    const requests = simulation.service.requests().length;
    this.#began = simulation.scheduler.now;
    const ended = await simulation.runOne(lineOf(simulation, UNDISTURBED));
    if (ended.code !== 0) return [`an undisturbed run ended with ${ended.code}: ${ended.log.slice(-4).join('\n')}`];
    this.#noteRead(UNDISTURBED, ended, this.#began);
    const problems = [
      ...this.#quotaProblems(simulation.service.requests().slice(requests)),
      ...this.#falseAlarms([ended]),
    ];
    return problems.length > 0 ? problems : this.#check([ended]);
  }

  /** After a kill another writer runs first, since it finishes a change that was left half-way; then the invariants are checked. */
  async #check(ended: readonly Ended[]): Promise<readonly string[]> {
    const simulation = this.#simulation;
    const killed = ended.filter(({ code }) => code === undefined).length;
    this.kills += killed;
    // Until a load has ended well again.
    this.#isBrokenOff =
      ended.some(({ code }) => code !== 0) || (this.#isBrokenOff && !ended.some((one) => this.#isLoad(one)));
    const isMidway = this.#isBrokenOff && simulation.target?.isAtomic === false;
    if (isMidway && existsSync(simulation.place)) {
      const repair = await simulation.runOne(lineOf(simulation, { what: 'compact' }));
      if (repair.code !== 0 && !isNothing(repair))
        return [`after a kill, compact ends with ${repair.code}: ${repair.log.slice(-3).join('\n')}`];
    }
    const { held, problems } = await problemsOf(simulation, this.#people, this.#reads, isMidway);
    this.#held = held;
    return [...problems, ...(await this.#checkOther(killed > 0))];
  }

  /** Checks the place of the other user. */
  async #checkOther(isKilled: boolean): Promise<readonly string[]> {
    const simulation = this.#simulation;
    if (!existsSync(simulation.other)) return [];
    const repair = isKilled ? await simulation.runOne(otherLine(simulation, 'compact')) : undefined;
    const isRepaired = repair === undefined || repair.code === 0 || isNothing(repair);
    return isRepaired
      ? otherProblems(simulation, this.#people)
      : [`compact of the other place ends with ${repair.code}`];
  }

  #skewed({ skewHours, jumpHours }: Step): Required<SpawnOptions>['clock'] {
    let asked = 0;
    // The clock jumps during the run.
    return { skewMs: () => (skewHours + (++asked > 20 ? jumpHours : 0)) * HOUR };
  }

  #reissue(): void {
    const simulation = this.#simulation;
    const number = Number(simulation.tokens.export.split('-').at(-1)) + 1;
    simulation.tokens = { export: `export-token-${number}`, import: `import-token-${number}` };
    simulation.service.setTokens(simulation.tokens);
  }

  /** The service never has to refuse a request for its limits. */
  #quotaProblems(seen: ReturnType<Simulator['requests']>): string[] {
    if (this.#isMisled) return [];
    const refused = seen.filter(({ status, fault }) => status === 429 && fault === undefined);
    return refused.map(({ outcome, operation }) => `the quota was exceeded: ${operation} ${outcome}`);
  }

  /** Warnings that rows are gone at the service, if no row ever goes there. */
  #falseAlarms(ended: readonly Ended[]): string[] {
    if (!this.#simulation.testCase.keepsRows) return [];
    const lines = ended.flatMap(({ log }) => log);
    return lines.filter((line) => /rows? now and had \d+ when it was read before/.test(line));
  }

  /**
   * Nothing stays in the spool folder but the state of the quota. Downloads of a run that did not end well, which nobody asks
   * for any more, are removed by a load; a platform's read leaves them for seven days, since they may be another stream's.
   */
  #leftovers(): string[] {
    const { spool, testCase, history } = this.#simulation;
    // A power cut takes back removals, too.
    const isCut = testCase.steps.some(({ actions }) => actions.some(({ end }) => end?.how === 'power'));
    if (testCase.target === 'airbyte' && (isCut || history.some((line) => /^read: (?!0$)/.test(line)))) return [];
    const names = existsSync(spool) ? readdirSync(spool, { recursive: true }).map(String) : [];
    const left = names.filter((name) => /\.(csv|json|part|tmp|lease)$/.test(name));
    return left
      .filter((name) => !/quota-[0-9a-f]+\.json|malformed-|\.(time|owner)-/.test(name))
      .map((name) => `${name} was left`);
  }
}

/** True if nothing was loaded yet, so that nothing can be compacted. */
const isNothing = ({ log }: Ended): boolean => log.join(' ').includes('holds no table of this program');

const isMistimed = ({ skewHours, jumpHours }: Step): boolean => skewHours !== 0 || jumpHours !== 0;

/** True if nothing can make the run of a step fail: it waits for the service's limit at most. */
function isCalm(step: Step): boolean {
  const { actions, hours, faults } = step;
  const isUndisturbed = actions.every(({ end, disk }) => end === undefined && disk === undefined);
  const isLimit = ({ kind, when }: Step['faults'][number]) =>
    kind === 'rate_limit' && (when as { operation?: string }).operation === 'delete';
  // A lock file that a power cut has truncated is respected for a minute.
  const isAlone = actions.length === 1 && hours > 0;
  return isUndisturbed && isAlone && !step.isReissued && !isMistimed(step) && faults.every(isLimit);
}

/** A run succeeds or fails with an expected exit code, never by a defect. */
function codeProblems(action: Action, { code, log, what }: Ended, step: Step, planned: Planned | undefined): string[] {
  const allowed = new Set<number | undefined>(isCalm(step) ? [0] : [undefined, 0, 3]);
  if (step.isReissued) allowed.add(2);
  // A platform gets 2 for an exceeded cap.
  if (planned !== undefined && (isCapped(planned) || isMistimed(step))) allowed.add(action.what === 'write' ? 2 : 5);
  if (action.what === 'compact') allowed.add(2);
  // Days were named that the service does not have yet.
  if (action.what === 'part' && /not over everywhere yet/.test(log.join(' '))) allowed.add(2);
  if (isMistimed(step)) allowed.add(2);
  return allowed.has(code) ? [] : [`${what} ended with ${code}: ${log.slice(-4).join('\n')}`];
}
