-- {landing} gets a row for every delivery, repeats among them, and is never updated or deleted from.
-- {landing}_faults gets what could not land there. {effects} gets one row per event: the merge's.
{schema}CREATE TABLE IF NOT EXISTS {landing} (
{declarations}
){landing_layout};

CREATE TABLE IF NOT EXISTS {landing}_faults (
{faults}
){faults_layout};

CREATE TABLE IF NOT EXISTS {effects} (
{declarations}{primary_key}
){effects_layout};
