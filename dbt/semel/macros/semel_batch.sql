{#- From when on deliveries are read, as a value; none for all of them. -#}
{% macro semel_since() %}
  {%- if var('semel_since', none) -%}
    {{ return(semel.semel_time(var('semel_since'))) }}
  {%- endif -%}
  {%- set last = semel.semel_micros_of('max(received_at)', this) -%}
  {%- if last[0] is none -%}
    {{ return(none) }}
  {%- endif -%}
  {{ return(semel.semel_time_of_micros(last[0] - 1000000 * var('semel_overlap_seconds', 3600))) }}
{% endmacro %}

{#- Between which times the batch's events may have been published, as values, so that partitions are pruned: counted from the
    batch's own rows, because a pause makes it span days. None without a horizon. -#}
{% macro semel_bounds(since) %}
  {%- if var('semel_horizon_hours', none) is none -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set horizon = 3600000000 * var('semel_horizon_hours') | int -%}
  {%- set batch = source('semel', 'landing') ~ (' where received_at >= ' ~ since if since is not none else '') -%}
  {%- set found = semel.semel_micros_of('min(published_at)', batch) + semel.semel_micros_of('max(published_at)', batch) -%}
  {%- if found[0] is none -%}
    {{ return(none) }}
  {%- endif -%}
  {{ return([semel.semel_time_of_micros(found[0] - horizon), semel.semel_time_of_micros(found[1] + horizon)]) }}
{% endmacro %}

{#- A time that the database computes, in microseconds since 1970, as a list of one. -#}
{% macro semel_micros_of(expression, relation) %}
  {%- set rows = run_query('select ' ~ semel.semel_micros(expression) ~ ' as micros from ' ~ relation) -%}
  {%- set micros = rows.columns[0].values()[0] -%}
  {{ return([none if micros is none else micros | int]) }}
{% endmacro %}

{% macro semel_micros(time) -%}
  {{ return(adapter.dispatch('semel_micros', 'semel')(time)) }}
{%- endmacro %}

{% macro default__semel_micros(time) -%} epoch_us({{ time }}) {%- endmacro %}
{% macro postgres__semel_micros(time) -%} cast(extract(epoch from {{ time }}) * 1000000 as bigint) {%- endmacro %}
{% macro bigquery__semel_micros(time) -%} unix_micros({{ time }}) {%- endmacro %}

{% macro semel_time_of_micros(micros) -%}
  {{ return(adapter.dispatch('semel_time_of_micros', 'semel')(micros)) }}
{%- endmacro %}

{% macro default__semel_time_of_micros(micros) -%} make_timestamptz({{ micros }}) {%- endmacro %}
{% macro postgres__semel_time_of_micros(micros) -%} (timestamptz 'epoch' + {{ micros }} * interval '1 microsecond') {%- endmacro %}
{% macro bigquery__semel_time_of_micros(micros) -%} timestamp_micros({{ micros }}) {%- endmacro %}

{% macro semel_time(text) -%}
  {{ return(adapter.dispatch('semel_time', 'semel')(text)) }}
{%- endmacro %}

{% macro default__semel_time(text) -%} timestamptz '{{ text }}' {%- endmacro %}
{% macro bigquery__semel_time(text) -%} timestamp '{{ text }}' {%- endmacro %}
