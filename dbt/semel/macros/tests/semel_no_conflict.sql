{#- No event was delivered with several inputs under one version: nobody re-used an identity. Of landing. Answers may
    differ: they are not compared. -#}
{% test semel_no_conflict(model) %}

select event_id, version, count(*) as deliveries
from {{ model }}
group by event_id, version
having min(fingerprint) <> max(fingerprint)

{% endtest %}
