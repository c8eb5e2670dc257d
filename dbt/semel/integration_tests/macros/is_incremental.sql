{#- Whether a relation is there can be asked only of a database; a test that compiles without one says it. -#}
{% macro is_incremental() %}
  {%- set said = var('pretend_incremental', none) -%}
  {{ return(dbt.is_incremental() if said is none else said and execute) }}
{% endmacro %}
