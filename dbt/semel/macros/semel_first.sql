{#- The winner of each event among the rows of a relation. -#}
{% macro semel_first(relation) -%}
  {{ return(adapter.dispatch('semel_first', 'semel')(relation)) }}
{%- endmacro %}

{% macro default__semel_first(relation) -%}
select {{ semel.semel_columns() }}
from {{ relation }}
where true
qualify row_number() over (partition by event_id order by {{ semel.semel_order() }}) = 1
{%- endmacro %}

{% macro postgres__semel_first(relation) -%}
select distinct on (event_id) {{ semel.semel_columns() }}
from {{ relation }}
order by event_id, {{ semel.semel_order() }}
{%- endmacro %}
