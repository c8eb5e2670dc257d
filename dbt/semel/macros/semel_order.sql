{#- The columns of landing and effects: as the gate lands them, with the answer where `lands = "answer"`. -#}
{% macro semel_columns() -%}
  event_id, fingerprint, message_id, source, published_at, received_at, delivery_id, attempt, version, payload
  {{- ', answer_status, answer' if var('semel_answer', false) }}
{%- endmacro %}

{#- The total order: the same as that of `semel warehouse sql`. The least row of an event is its winner. -#}
{% macro semel_order() -%}
  {{ return(adapter.dispatch('semel_order', 'semel')()) }}
{%- endmacro %}

{% macro default__semel_order() -%}
  version desc, published_at, message_id, fingerprint, received_at, delivery_id
{%- endmacro %}

{#- Other databases order text by its bytes already. -#}
{% macro postgres__semel_order() -%}
  version desc, published_at, message_id collate "C", fingerprint collate "C", received_at, delivery_id collate "C"
{%- endmacro %}
