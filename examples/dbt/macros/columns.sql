{#- A column of event_logs by its name in the export, as a value of that type; NULL of that type where there is none. -#}
{% macro event_column(name, type) -%}
  {{ column_or_null(source('dfinery', 'event_logs'), name, type) }}
{%- endmacro %}

{#- The same of event_items, whose item columns have no prefix. -#}
{% macro item_column(name, type) -%}
  {{ column_or_null(source('dfinery', 'event_items'), name.removeprefix('df_items_'), type) }}
{%- endmacro %}

{% macro column_or_null(relation, name, type) -%}
  {%- set found = namespace(type=none) -%}
  {%- if execute -%}
    {%- for column in adapter.get_columns_in_relation(relation) if column.name == name -%}
      {%- set found.type = column.data_type -%}
    {%- endfor -%}
  {%- endif -%}
  {%- if found.type is none -%} CAST(NULL AS {{ type }})
  {%- elif found.type == type or type.startswith('TIMESTAMP') -%} "{{ name }}"
  {%- else -%} TRY_CAST("{{ name }}" AS {{ type }})
  {%- endif -%}
{%- endmacro %}

{#- Around an instant: its wall-clock time in the zone of the file. -#}
{% macro wall_clock_begin() -%}{%- if var('timezone') -%} timezone('{{ var('timezone') }}', {%- else -%} ( {%- endif -%}{%- endmacro %}
{% macro wall_clock_end() -%} ) {%- endmacro %}

{#- Names of the columns of event_logs, neither ids nor system columns, that hold a value. -#}
{% macro filled_properties() -%}
  {%- set system = ['df_unified_id', 'df_api_version', 'df_event_name', 'df_server_datetime', 'df_correction_datetime', 'df_event_detail_log_id', 'df_event_log_id', '_rescued'] -%}
  {%- set filled = [] -%}
  {%- if execute -%}
    {%- for column in adapter.get_columns_in_relation(source('dfinery', 'event_logs')) if column.name not in system -%}
      {%- do filled.append('CASE WHEN count("' ~ column.name.replace('"', '""') ~ '") > 0 THEN \'' ~ column.name.replace("'", "''") ~ "' END") -%}
    {%- endfor -%}
  {%- endif -%}
  list_filter(CAST([{{ filled | join(', ') }}] AS VARCHAR[]), lambda name: name IS NOT NULL)
{%- endmacro %}
