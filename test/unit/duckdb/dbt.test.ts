import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { MODELS } from '../../../src/targets/duckdb/models/models.ts';

const PROJECT = resolve(import.meta.dirname, '../../../examples/dbt');

/** Column whose values are never missing and never twice, by model. */
const KEYS: Readonly<Record<string, string>> = {
  users: 'df_unified_id',
  daily_active: 'day',
  weekly_active: 'week',
  monthly_active: 'month',
};

const views = MODELS.filter(({ parameters }) => parameters === undefined);
const macros = MODELS.filter(({ parameters }) => parameters !== undefined);

describe('the dbt project', () => {
  it.each(views)('has the SQL of $name', async (model) => {
    await expect(model.sql).toMatchFileSnapshot(`${PROJECT}/models/${model.name}.sql`);
  });

  it.each(macros)('has the macro $name', async (model) => {
    const parameters = (model.parameters ?? []).join(', ');
    const file = `{% macro ${model.name}(${parameters}) -%}\n${model.sql}{%- endmacro %}\n`;
    await expect(file).toMatchFileSnapshot(`${PROJECT}/macros/${model.name}.sql`);
  });

  it('describes every model and column', async () => {
    const models = views.map(({ name, grain, columns }) => ({
      name,
      description: grain,
      columns: Object.entries(columns).map(([column, description]) => ({
        name: column,
        description,
        ...(KEYS[name] === column && { data_tests: ['not_null', 'unique'] }),
      })),
    }));
    await expect(stringify({ version: 2, models })).toMatchFileSnapshot(`${PROJECT}/models/models.yml`);
  });
});
