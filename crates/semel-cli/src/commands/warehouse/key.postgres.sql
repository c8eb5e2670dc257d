-- semel.key is what `semel migrate` installs; here it is alone, for a database that is only a warehouse.
CREATE SCHEMA IF NOT EXISTS semel;

