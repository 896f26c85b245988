// This folder: what each command does, loaded only for the command that was chosen.

import { EXIT } from '../../base/errors.ts';
import { refuseUnknownNames } from '../../config/environment.ts';
import { DEFAULT_HISTORY_DAYS } from '../../config/source.ts';
import type { Target } from '../../sinks/target.ts';
import { flag, type Handler, text } from '../command.ts';
import { loadSourceConfig } from '../configuration.ts';
import { notificationOf, notify } from '../sync/notify.ts';
import { readSyncOptions, summaryOptions } from '../sync/options.ts';
import { pinnedTypes } from '../sync/pinned.ts';
import { summaryPrinter } from '../sync/summary-printer.ts';
import { sync } from '../sync/sync.ts';

/** `sync TARGET PLACE`. */
export const syncInto =
  (target: Target): Handler =>
  async (options, outer) => {
    const place = text(options, target.place.name) ?? '';
    const isStdout = target.isStdout?.(place) === true;
    // stdout carries only data: the summary goes to stderr.
    const onStderr = (line: string) => outer.terminal.result(line, 'stderr');
    const context = isStdout ? { ...outer, terminal: { ...outer.terminal, result: onStderr } } : outer;
    const printer = summaryPrinter(summaryOptions(options), context, isStdout ? 'the stream' : place);
    return printer.run(async () => {
      const notification = notificationOf(text(options, 'notify'), flag(options, 'notifyAlways'), context.env);
      context.redactor.add(notification?.url);
      // Used in the notification if the configuration cannot be read.
      let historyDays = DEFAULT_HISTORY_DAYS;
      if (notification !== undefined) {
        const named = `sync ${target.name} ${place}`;
        printer.notifyWith((summary) => notify(notification, { summary, target: named, historyDays }, context));
      }
      refuseUnknownNames(context.env);
      const given = readSyncOptions(options);
      const publish = text(options, 'publish');
      const config = loadSourceConfig(given.config, context);
      historyDays = config.historyDays;
      const pinned = pinnedTypes(given.schema);
      const { clock, logger, signal, env } = context;
      const run = { config, days: given, maxWaitMs: given.maxWaitMs, publish, onSummary: printer.update };
      const open = {
        ...config,
        publish,
        tables: given.tables,
        stdout: context.terminal.stdout ?? process.stdout,
        workers: context.workers,
        pinned,
        env,
        clock,
        logger,
        signal,
      };
      await sync(run, () => target.open(place, open), context);
      return EXIT.done;
    });
  };
